// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { tick } from 'svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Checklist, FleetAircraft } from '../api/model';
import { readyAlone } from '../fleet/avoidance';
import { checklistBlockers, missingText } from '../fleet/checklist';
import { checkTable } from '../fleet/checks';
import { FleetConsole } from '../fleet/console.svelte';
import { fleetPhase } from '../fleet/phase';
import { aircraft, picture, status, stateOf, update } from '../fleet/samples';
import { applyPicture, applyUpdate, EMPTY } from '../fleet/state';
import { timeline } from '../fleet/timeline';
import Actions from './Actions.svelte';
import CheckPanel from './CheckPanel.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const item = (id: string, change: Partial<Checklist['items'][number]> = {}) => ({ id, text: `Text of ${id}`, required: true, per: 'fleet' as const, before: 'setup' as const, ticks: [], ...change });
const AT = Date.UTC(2026, 10, 26, 9, 30, 5);
const by = (vehicle?: string) => ({ by: 'anna', unix_ms: AT, ...(vehicle === undefined ? {} : { vehicle }) });
const list = (change: Partial<Checklist> = {}): Checklist => ({
  title: 'Field', hash: 'f'.repeat(64), last_result: null, problem: null,
  items: [item('area', { hint: 'Look around' }), item('note', { required: false }), item('props', { per: 'aircraft', ticks: [by(status(1).id)] }), item('go', { before: 'start' })],
  ...change,
});
const two = [aircraft(1), aircraft(2)];

function consoleOf(checklist: Checklist, all: FleetAircraft[] = two) {
  const fleet = new FleetConsole();
  fleet.fleet = stateOf(all, { checklist });
  fleet.live = true;
  return fleet;
}

/** What was asked; each is answered alike. */
function service(answer: () => Response) {
  const asked: { method: string; path: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', async (path: string, init: RequestInit = {}) => {
    asked.push({ method: init.method ?? 'GET', path, body: init.body === undefined ? undefined : JSON.parse(String(init.body)) });
    return answer();
  });
  return asked;
}

describe('the checklist', () => {
  it('stands in the way item by item, beside the automatic checks', () => {
    const fleet = consoleOf(list());
    render(CheckPanel, { fleet });
    expect(screen.getAllByTestId('blocker').map(({ textContent }) => textContent?.replace(/\s+/g, ' ').trim())).toEqual([
      'checklist Text of area', 'checklist Text of props UAV 2', 'checklist before Start: Text of go',
    ]);
    expect(screen.getByTestId('check-verdict').textContent).toContain('3 checks stand in the way');
    expect(screen.getByTestId('checklist-count').textContent).toBe('1 of 5 ticked');
    expect(screen.getByText('Look around')).toBeTruthy();
  });

  it('is ticked and unticked, each click on its own, with the hash of what is shown', async () => {
    const asked = service(() => Response.json(list()));
    render(CheckPanel, { fleet: consoleOf(list()) });
    const box = (name: string) => screen.getByRole('checkbox', { name });
    expect(box('UAV 1: Text of props').getAttribute('aria-checked')).toBe('true');
    expect(box('UAV 1: Text of props').title).toBe('UAV 1: anna, 09:30:05 UTC');
    await Promise.all([fireEvent.click(box('Text of area')), fireEvent.click(box('UAV 2: Text of props')), fireEvent.click(box('UAV 1: Text of props'))]);
    await waitFor(() => expect(asked.length).toBe(3));
    const hash = 'f'.repeat(64);
    expect(asked.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['PUT', '/api/v1/fleet/checklist', { hash, item: 'area', vehicles: [], ticked: true }],
      ['PUT', '/api/v1/fleet/checklist', { hash, item: 'props', vehicles: [status(2).id], ticked: true }],
      ['PUT', '/api/v1/fleet/checklist', { hash, item: 'props', vehicles: [status(1).id], ticked: false }],
    ]);
  });

  it('shows what the service refused, and no tick before it has one', async () => {
    service(() => Response.json({ code: 'conflict', message: 'found the console "tower" in charge, expected this one: tick it there' }, { status: 409 }));
    render(CheckPanel, { fleet: consoleOf(list()) });
    await fireEvent.click(screen.getByRole('checkbox', { name: 'Text of area' }));
    expect((await screen.findByTestId('checklist-problem')).textContent).toContain('found the console "tower" in charge');
    expect(screen.getByRole('checkbox', { name: 'Text of area' }).getAttribute('aria-checked')).toBe('false');
  });

  it('begins anew at the second press alone', async () => {
    const asked = service(() => Response.json(list()));
    render(CheckPanel, { fleet: consoleOf(list()) });
    await fireEvent.click(screen.getByTestId('checklist-anew'));
    expect(asked).toEqual([]);
    await fireEvent.click(screen.getByTestId('checklist-anew-sure'));
    await waitFor(() => expect(asked.map(({ method }) => method)).toEqual(['DELETE']));
  });

  it('is read by an observer and ticked by none', async () => {
    const fleet = consoleOf(list());
    fleet.access = { login: true, user: { name: 'olga', role: 'observer', ends_in_ms: 1e6 } };
    render(CheckPanel, { fleet });
    const block = within(screen.getByTestId('checklist'));
    expect(block.getAllByRole('checkbox').every((box) => (box as HTMLButtonElement).disabled)).toBe(true);
    expect((screen.getByTestId('checklist-anew') as HTMLButtonElement).disabled).toBe(true);
  });

  it('isolates what others wrote, and links what was kept', async () => {
    service(() => Response.json({ folder: '/data/checklists', results: [{ name: 'checklist-20261126T093005Z.json', bytes: 1_234, age_s: 5 }] }));
    render(CheckPanel, { fleet: consoleOf(list({ last_result: 'checklist-20261126T093005Z.json', problem: 'ticks could not be written' })) });
    expect(screen.getByText('Text of area', { selector: 'bdi' })).toBeTruthy();
    expect(screen.getByTestId('checklist-result').getAttribute('href')).toBe('/api/v1/fleet/checklist/result?file=checklist-20261126T093005Z.json');
    expect(screen.getByTestId('checklist-lost').textContent).toContain('could not be written');
    await fireEvent.click(screen.getByTestId('checklist-results'));
    expect((await screen.findByText('checklist-20261126T093005Z.json')).closest('li')?.textContent).toContain('1.2 kB');
  });

  it('is no part of the screen where there is none', () => {
    const fleet = new FleetConsole();
    fleet.fleet = stateOf(two);
    render(CheckPanel, { fleet });
    expect(screen.queryByTestId('checklist')).toBeNull();
    expect(screen.queryAllByTestId('blocker')).toEqual([]);
  });

  it('blocks Set up of a selection, and stops no Hold, Return or Land', async () => {
    const alone = [1, 2].map((index) => aircraft(index, { protocol: 'mission', swarm: null }));
    const blocked = { setup: false, setup_blocked: 'checklist: 2 not ticked: area, props (UAV 2)', start: false, start_blocked: 'x' };
    const fleet = new FleetConsole();
    fleet.fleet = stateOf(alone, { checklist: list(), actions: blocked });
    fleet.live = true;
    const send = vi.spyOn(fleet, 'send').mockResolvedValue();
    render(Actions, { fleet });
    expect(screen.queryByTestId('setup')).toBeNull();
    expect(screen.getByTestId('blocked').textContent).toContain('2 not ticked: area, props (UAV 2)');
    fleet.selectOnly(alone[0]?.address ?? '');
    await tick();
    expect(screen.queryByTestId('setup')).toBeNull();
    expect(screen.getByTestId('blocked').textContent).toContain('checklist: 1 not ticked: area');
    for (const name of ['hold', 'return', 'hold-all']) await fireEvent.click(screen.getByTestId(name));
    await fireEvent.click(screen.getByTestId('land'));
    await fireEvent.click(screen.getByTestId('confirm'), { detail: 1 });
    expect(send.mock.calls.map(([command]) => command)).toEqual(['hold', 'return', 'hold', 'land']);
  });
});

describe('what of it is missing', () => {
  it('is said as the service says it', () => {
    const named = [1, 2, 3, 4, 5].map((index) => ({ id: status(index).id, name: `UAV ${index}` }));
    expect(missingText(list(), 'setup', named)).toBe('checklist: 2 not ticked: area, props (UAV 2, UAV 3, UAV 4 and 1 more)');
    expect(missingText(list(), 'start', named.slice(0, 1))).toBe('checklist: 2 not ticked: area, go');
    expect(missingText(undefined, 'start', named)).toBe('');
    const { columns } = checkTable(stateOf(two).aircraft, new Map(), new Map());
    expect(checklistBlockers(list(), columns).map(({ of }) => of.map(({ name }) => name))).toEqual([[], ['UAV 2'], []]);
  });

  it('is a step of the way to the flight', () => {
    const flies = [1, 2].map((index) => aircraft(index, { protocol: 'follow_me' }));
    const phase = (checklist?: Checklist) => fleetPhase(stateOf(flies).aircraft, new Map(), checklist);
    expect(phase(list())).toEqual({ step: 'check', text: 'Checklist 1 of 3', over: false });
    const done = list({ items: [item('area', { ticks: [by()] }), item('go', { before: 'start' })] });
    expect(phase(done).step).toBe('setup');
    expect(readyAlone(stateOf(flies).aircraft, new Set(flies.map(({ address }) => address)), done).setup).toBe(true);
  });

  it('has its ticks in the timeline', () => {
    const entry = { number: 1, time: '2026-11-26T09:30:05.000Z', user: 'anna', role: 'operator' as const, address: '10.0.0.2', action: 'tick', what: 'area', status: 200 };
    const sources = { commands: [], older: [], log: [], alarms: [], known: new Map(), fleetSize: 2, console: 'lab', own: new Set<string>(), startedUnixMs: 0 };
    const texts = (refused?: string) => timeline({ ...sources, audit: [{ ...entry, ...(refused === undefined ? {} : { refused }) }] }).map(({ text }) => text);
    expect(texts()).toEqual(['ticked area']);
    expect(texts('the checklist is another now')).toEqual(['ticked area refused: the checklist is another now']);
  });

  it('follows the event stream', () => {
    const before = applyPicture(EMPTY, picture(two, { checklist: list() }), 0);
    const change = { items: { 0: { ticks: [by()] }, 2: { ticks: [] } } };
    const after = applyUpdate(before, update([], { checklist: change }), 1);
    expect(after.checklist?.items.map(({ ticks }) => ticks?.length)).toEqual([1, 0, 0, 0]);
    expect(after.checklist?.items[1], 'what did not change keeps its identity').toBe(before.checklist?.items[1]);
    expect(applyUpdate(after, update([]), 2).checklist).toBe(after.checklist);
  });
});
