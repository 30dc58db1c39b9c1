// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { tick } from 'svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Access } from '../api/model';
import { sendCommand } from '../api/send';
import { FleetConsole } from '../fleet/console.svelte';
import { flying, stateOf } from '../fleet/samples';
import { scopeOf } from '../fleet/scope';
import Actions from './Actions.svelte';
import SignIn from './SignIn.svelte';
import TopBar from './TopBar.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const answer = (status: number, body: unknown): Response => new Response(body === undefined ? null : JSON.stringify(body), { status });

/** A service that answers these, in their order, and the last of them for ever. */
function service(...answers: (() => Response)[]) {
  const fetching = vi.fn(async (_path: string, _init?: RequestInit) => (answers.length > 1 ? answers.shift()! : answers[0]!)());
  vi.stubGlobal('fetch', fetching);
  vi.stubGlobal('EventSource', class { addEventListener(): void {} close(): void {} });
  return fetching;
}

function consoleAs(access: Access): FleetConsole {
  const fleet = new FleetConsole();
  fleet.fleet = stateOf([flying(0), flying(1)]);
  fleet.live = true;
  fleet.access = access;
  return fleet;
}

const user = (role: 'observer' | 'operator' | 'administrator'): Access => ({ login: true, user: { name: 'anna', role, ends_in_ms: 3_600_000 } });

describe('who uses the page', () => {
  it('commands without users, as an operator and as an administrator, and not as an observer', async () => {
    for (const [access, may] of [[{ login: false }, true], [user('operator'), true], [user('administrator'), true], [user('observer'), false], [{ login: true }, false]] as const) {
      const fetching = service(() => answer(202, {}));
      const fleet = consoleAs(access);
      render(Actions, { fleet });
      for (const name of ['hold', 'return', 'land', 'hold-all']) {
        expect((screen.getByTestId(name) as HTMLButtonElement).disabled, `${name} as ${JSON.stringify(access)}`).toBe(!may);
      }
      await fleet.send('land', scopeOf(fleet.fleet.aircraft, new Set()));
      expect(fetching.mock.calls.length, JSON.stringify(access)).toBe(may ? 1 : 0);
      cleanup();
    }
  });

  it('is named on top', () => {
    render(TopBar, { fleet: consoleAs(user('observer')) });
    expect(screen.getByTestId('user').textContent).toBe('anna, observer');
  });
});

describe('a session that ends', () => {
  it('ends the repeats of a command, is told, and nothing is sent after the next one begins', async () => {
    const ended = 'found a session whose time is over, expected one that lasts: sign in again';
    const fetching = service(
      () => answer(401, { code: 'session_ended', message: ended }),
      () => answer(200, { login: true, ended }),
      () => answer(200, user('operator')),
      () => answer(500, {}),
    );
    const fleet = consoleAs(user('operator'));
    await fleet.send('land', scopeOf(fleet.fleet.aircraft, new Set()));
    await vi.waitFor(() => expect(fleet.signedOut).toBe(true));
    expect(fleet.sendings.at(-1)).toMatchObject({ state: 'failed', reason: ended });

    render(SignIn, { fleet });
    expect(screen.getByTestId('session-ended').textContent).toContain(ended);
    await fireEvent.input(screen.getByTestId('user-name'), { target: { value: ' anna ' } });
    await fireEvent.input(screen.getByTestId('password'), { target: { value: 'correct horse' } });
    await fireEvent.submit(screen.getByTestId('submit-sign-in').closest('form')!);
    await vi.waitFor(() => expect(fleet.signedOut).toBe(false));
    await tick();
    const sent = fetching.mock.calls.map(([path, init]) => `${init?.method ?? 'GET'} ${path}`);
    expect(sent).toEqual(['POST /api/v1/fleet/commands', 'GET /api/v1/session', 'POST /api/v1/session']);
    expect(fetching.mock.calls[2]?.[1]?.body).toBe(JSON.stringify({ name: 'anna', password: 'correct horse' }));
    expect(fleet.sendings).toHaveLength(1);
  });

  it('says why a password was not taken, and forgets it', async () => {
    const refused = 'sign in: found a name and a password that do not belong together, expected those of a user';
    service(() => answer(401, { code: 'wrong_password', message: refused }));
    render(SignIn, { fleet: consoleAs({ login: true }) });
    const password = screen.getByTestId('password') as HTMLInputElement;
    await fireEvent.input(screen.getByTestId('user-name'), { target: { value: 'anna' } });
    await fireEvent.input(password, { target: { value: 'wrong horse' } });
    await fireEvent.submit(password.closest('form')!);
    expect((await screen.findByTestId('sign-in-problem')).textContent).toBe(refused);
    expect(password.value).toBe('');
  });

  it('is seen by a command that is refused', async () => {
    const request = async () => answer(401, { code: 'signed_out', message: 'found no session' });
    const sent = await sendCommand({ id: 'a', command: 'land', vehicles: [] }, { signal: new AbortController().signal, request: request as typeof fetch });
    expect(sent).toEqual({ ok: false, reason: 'found no session', signedOut: true });
  });
});
