import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { picture, update } from '../fleet/samples';
import { shortcutOf } from '../view/shortcuts';
import { giveMission, readMissionFile } from './missions';
import { isRecovery } from './commands';
import { newCommandId, sendCommand } from './send';
import { ANSWER_MS, FleetStream, REOPEN_MS, SILENCE_MS } from './stream';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

class FakeSource {
  closed = false;
  readonly listeners = new Map<string, (event: Event) => void>();
  addEventListener = (name: string, listener: unknown) => void this.listeners.set(name, listener as (event: Event) => void);
  close = () => void (this.closed = true);
  send = (name: string, data: unknown) => this.raw(name, JSON.stringify(data));
  raw = (name: string, data: string) => this.listeners.get(name)?.({ data } as unknown as Event);
  fail = () => this.listeners.get('error')?.({} as Event);
}

describe('the stream', () => {
  function connect() {
    const sources: FakeSource[] = [];
    const seen: string[] = [];
    const stream = new FleetStream(
      {
        picture: (value) => seen.push(`picture ${value.version}`),
        update: () => seen.push('update'),
        log: () => seen.push('log'),
        live: (live) => seen.push(live ? 'live' : 'lost'),
        problem: () => seen.push('problem'),
      },
      () => {
        const source = new FakeSource();
        sources.push(source);
        return source;
      },
    );
    stream.start();
    const last = () => {
      const source = sources.at(-1);
      if (!source) throw new Error('nothing was opened');
      return source;
    };
    return { stream, sources, seen, last };
  }

  it('hands on what arrives', () => {
    const { last, seen } = connect();
    last().send('picture', picture([]));
    last().send('update', update([]));
    expect(seen).toEqual(['live', 'picture 1.0.0', 'live', 'update']);
  });

  it('reopens after an error, again and again', () => {
    const { last, seen, sources } = connect();
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      last().fail();
      expect(last().closed).toBe(true);
      vi.advanceTimersByTime(REOPEN_MS);
      expect(sources).toHaveLength(attempt + 1);
    }
    expect(new Set(seen)).toEqual(new Set(['lost']));
    last().send('picture', picture([]));
    expect(seen.at(-2)).toBe('live');
  });

  it('reopens a silent connection, and is lost only when that is not answered', () => {
    const { last, seen, sources } = connect();
    last().send('picture', picture([]));
    vi.advanceTimersByTime(SILENCE_MS);
    expect(sources).toHaveLength(2);
    expect(sources[0]?.closed).toBe(true);
    expect(seen).not.toContain('lost');
    vi.advanceTimersByTime(ANSWER_MS);
    expect(seen).toContain('lost');
  });

  it('ignores what a closed connection still delivers', () => {
    const { sources, seen, last } = connect();
    last().fail();
    vi.advanceTimersByTime(REOPEN_MS);
    sources[0]?.send('update', update([]));
    expect(seen).toEqual(['lost']);
  });

  it('reports an event that cannot be read, and asks for a new picture', () => {
    const { last, seen, sources } = connect();
    last().raw('update', '{"time_ms":');
    expect(seen).toEqual(['live', 'problem']);
    vi.advanceTimersByTime(REOPEN_MS);
    expect(sources).toHaveLength(2);
    last().send('picture', picture([]));
    expect(seen.slice(2)).toEqual(['live', 'picture 1.0.0']);
  });

  it('stops when it is aborted', () => {
    const { stream, sources } = connect();
    stream.stop();
    vi.advanceTimersByTime(60_000);
    expect(sources.map(({ closed }) => closed)).toEqual([true]);
  });
});

describe('sending a command', () => {
  const body = { id: 'x', command: 'land' as const, vehicles: [] };
  const answers = (...list: (Response | Error)[]) => {
    const request = vi.fn<typeof fetch>();
    for (const answer of list) {
      if (answer instanceof Error) request.mockRejectedValueOnce(answer);
      else request.mockResolvedValueOnce(answer);
    }
    return request;
  };
  const run = async (request: typeof fetch, command: 'land' | 'setup' = 'land', signal = new AbortController().signal) => {
    const result = sendCommand({ ...body, command }, { signal, request });
    await vi.advanceTimersByTimeAsync(120_000);
    return result;
  };

  it('repeats with the same id until answered', async () => {
    const request = answers(new Error('refused'), new Error('refused'), new Response('{}', { status: 202 }));
    expect(await run(request)).toEqual({ ok: true });
    expect(request).toHaveBeenCalledTimes(3);
    expect(new Set(request.mock.calls.map(([, init]) => init?.body)).size).toBe(1);
  });

  it('takes no for an answer, in the service’s words', async () => {
    const request = answers(new Response(JSON.stringify({ code: 'not_found', message: 'no aircraft 7' }), { status: 404 }));
    expect(await run(request)).toEqual({ ok: false, reason: 'no aircraft 7' });
    expect(request).toHaveBeenCalledTimes(1);
  });

  it('repeats when a proxy answers for a service that is down', async () => {
    const request = answers(new Response('<html>', { status: 502 }), new Response('{}', { status: 200 }));
    expect(await run(request)).toEqual({ ok: true });
  });

  it('stops retrying at its deadline, a set-up sooner than a landing', async () => {
    const never = () => vi.fn<typeof fetch>().mockRejectedValue(new Error('refused'));
    const [land, setup] = [never(), never()];
    expect(await run(land, 'land')).toEqual({ ok: false, reason: 'the ground service does not answer' });
    expect((await run(setup, 'setup')).ok).toBe(false);
    expect(land.mock.calls.length).toBeGreaterThan(5 * setup.mock.calls.length);
  });

  it('ends when a newer command replaces it', async () => {
    const abort = new AbortController();
    const request = vi.fn<typeof fetch>().mockRejectedValue(new Error('refused'));
    const result = sendCommand(body, { signal: abort.signal, request });
    await vi.advanceTimersByTimeAsync(1_200);
    const before = request.mock.calls.length;
    abort.abort();
    expect(await result).toEqual({ ok: false, reason: 'replaced by a newer command' });
    expect(request).toHaveBeenCalledTimes(before);
  });

  it('ids are fresh and of a length that the service takes', () => {
    const ids = new Set(Array.from({ length: 100 }, newCommandId));
    expect(ids.size).toBe(100);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
  });

  it('distinguishes the commands that end a flight', () => {
    expect((['setup', 'start', 'hold', 'return', 'land', 'recover_control', 'engage'] as const).filter(isRecovery)).toEqual([
      'hold', 'return', 'land', 'recover_control',
    ]);
  });
});

describe('shortcuts', () => {
  const event = (change: Partial<Parameters<typeof shortcutOf>[0]>) => ({
    key: 'L', repeat: false, ctrlKey: false, metaKey: false, altKey: false, target: null, ...change,
  });
  const element = (tagName: string, type = '') => ({ tagName, type }) as unknown as EventTarget;

  it('act from anywhere, a checkbox included', () => {
    expect(shortcutOf(event({}))).toBe('l');
    expect(shortcutOf(event({ target: element('INPUT', 'checkbox') }))).toBe('l');
  });

  it('do not act while typing, with a modifier, or held down', () => {
    expect(shortcutOf(event({ target: element('INPUT', 'text') }))).toBeUndefined();
    expect(shortcutOf(event({ target: element('SELECT') }))).toBeUndefined();
    expect(shortcutOf(event({ ctrlKey: true }))).toBeUndefined();
    expect(shortcutOf(event({ repeat: true }))).toBeUndefined();
  });
});

describe('missions', () => {
  const answer = (status: number, body: unknown) => async () => new Response(JSON.stringify(body), { status });

  it('are read by the service and given to one aircraft', async () => {
    const asked: [string, string, unknown][] = [];
    const request = (async (path: string, { method, body }: { method: string; body: string }) => {
      asked.push([path, method, JSON.parse(body)]);
      return new Response(JSON.stringify({ hash: 'ab' }));
    }) as unknown as typeof fetch;
    expect(await readMissionFile({ name: 'a.kml', text: '<kml/>', protocol: 'muscop' }, request)).toMatchObject({ ok: true });
    expect(await giveMission('0a', { name: 'a', waypoints: [] }, request)).toMatchObject({ ok: true, value: { hash: 'ab' } });
    expect(asked).toEqual([
      ['/api/v1/mission-files', 'POST', { name: 'a.kml', text: '<kml/>', protocol: 'muscop' }],
      ['/api/v1/fleet/mission', 'PUT', { vehicle: '0a', mission: { name: 'a', waypoints: [] } }],
    ]);
  });

  it('are refused with the service’s own words, once', async () => {
    const refused = answer(409, { code: 'conflict', message: 'a mission can be given in state Start, found Normal' }) as unknown as typeof fetch;
    expect(await giveMission('0a', { name: 'a', waypoints: [] }, refused)).toEqual({
      ok: false, reason: 'a mission can be given in state Start, found Normal',
    });
    const dead = (async () => Promise.reject(new TypeError('no network'))) as unknown as typeof fetch;
    expect(await readMissionFile({ name: 'a', text: '' }, dead)).toEqual({ ok: false, reason: 'the ground service does not answer' });
  });
});
