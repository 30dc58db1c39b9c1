// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { RecordedTrack } from '../api/model';
import { readRecords, readTrack } from '../api/records';
import { advanced, extentOf, flightOf, lastUpTo, momentAt, nearestOf, pathUpTo, receivedAt, samplesFor, type Track } from './flight';
import ReplayBar from './ReplayBar.svelte';
import { Replay } from './replay.svelte';

/** Ten samples a second apart, from 5 s of the agent's time on, flying north at 1e-7 degree a second. */
function log(change: Partial<RecordedTrack> = {}): RecordedTrack {
  const all = Array.from({ length: 10 }, (_, index) => index);
  const fill = <T>(value: T): T[] => all.map(() => value);
  return {
    file: 'flight/uav-001.mcap', aircraft: '000000000000000a', name: 'UAV 1', version: '1', zero_unix_ms: 1_000_000, flaw: '', every: 1,
    time_ms: all.map((index) => 5_000 + index * 1_000), latitude_e7: all.map((index) => 394_000_000 + index * 10), longitude_e7: fill(-3_000_000),
    altitude_mm: fill(50_000), height_cm: all.map((index) => index * 100), speed_cm_s: fill(500), heading_deg: all.map((index) => (355 + index * 2) % 360),
    battery_percent: fill(90), armed: all.map((index) => index > 0), engaged: fill(true), mode_number: fill(4), waypoint_reached: fill(null),
    state: all.map((index) => (index < 4 ? 0 : 1)), nearest: all.map((index) => (index < 5 ? null : 0)), nearest_cm: all.map((index) => (index < 5 ? null : 1_250)),
    states: ['Start', 'Flying'], peers: ['000000000000000b'],
    received: { period_ms: 1_000, time_ms: [6_000, 7_000], from: [0, 0], kind: [0, 0], latitude_e7: [394_000_500, null], longitude_e7: [-3_000_100, null], kinds: ['Beacon'] },
    events: [{ time_ms: 6_500, kind: 'log', severity: 'warning', text: 'gust' }], events_left_out: 0, ...change,
  } as RecordedTrack;
}
const only = (data = log()): Track => {
  const [track] = flightOf([data]).tracks;
  if (!track) throw new Error('no track');
  return track;
};

describe('the time base', () => {
  it('is UTC where all logs state it', () => {
    const flight = flightOf([log(), log({ zero_unix_ms: 1_002_000 })]);
    expect(flight.onOneClock).toBe(true);
    expect(flight.zeroUnixMs).toBe(1_005_000);
    expect(flight.tracks.map(({ offsetMs }) => offsetMs)).toEqual([-5_000, -3_000]);
    expect(flight.durationMs).toBe(11_000);
    expect(flight.events.map(({ atMs, track }) => [atMs, track])).toEqual([[1_500, 0], [3_500, 1]]);
  });

  it('is the start of the agents where one does not', () => {
    const flight = flightOf([log(), log({ zero_unix_ms: null, time_ms: log().time_ms.map((time) => time + 3_000) })]);
    expect([flight.onOneClock, flight.zeroUnixMs, flight.durationMs]).toEqual([false, undefined, 12_000]);
    expect(flight.tracks.map((track) => momentAt(track, 4_000)?.heightM)).toEqual([4, 1]);
  });

  it('of no log has no length', () => expect([flightOf([]).durationMs, extentOf(flightOf([]))]).toEqual([0, undefined]));
});

describe('a moment', () => {
  it('lies between two samples, and turns the short way round', () => {
    const moment = momentAt(only(), 2_500);
    expect(moment?.place?.latitude_deg).toBeCloseTo(39.4000025, 9);
    expect([moment?.heightM, moment?.headingDeg, moment?.state, moment?.armed, moment?.stale]).toEqual([2.5, 0, 'Start', true, false]);
    expect(momentAt(only(), 4_000)?.state).toBe('Flying');
  });

  it('does not exist before the log, and is marked after it', () => {
    expect(momentAt(only(), -1)).toBeUndefined();
    expect([momentAt(only(), 9_500)?.stale, momentAt(only(), 60_000)?.stale, momentAt(only(), 60_000)?.heightM]).toEqual([false, true, 9]);
  });

  it('knows the separation only where the log does', () => {
    expect(momentAt(only(), 4_999)?.nearest).toBeUndefined();
    expect(momentAt(only(), 5_000)?.nearest).toEqual({ id: '000000000000000b', distanceM: 12.5 });
  });

  it('flies over no hole in the log', () => {
    const holed = log({ time_ms: log().time_ms.map((time, index) => (index < 5 ? time : time + 60_000)) });
    expect([momentAt(only(holed), 30_000)?.heightM, momentAt(only(holed), 30_000)?.stale]).toEqual([4, true]);
    expect(pathUpTo(only(holed), 70_000).map((piece) => piece.length)).toEqual([5, 5]);
  });
});

it('knows how near two are, by their own positions, in space', () => {
  const north = log({ latitude_e7: log().latitude_e7.map((value) => (value ?? 0) + 899), altitude_mm: log().altitude_mm.map(() => 60_000) });
  const moments = [momentAt(only(), 1_000), undefined, momentAt(only(north), 1_000)];
  const [first, none, last] = nearestOf(moments);
  expect([first?.index, none, last?.index]).toEqual([2, undefined, 0]);
  expect(first?.distanceM).toBeCloseTo(Math.hypot(10, 10), 1);
  expect(nearestOf([momentAt(only(), 1_000), momentAt(only(north), 99_000)])).toEqual([undefined, undefined]);
});

it('names the senders that are received, and forgets those that are not', () => {
  expect(receivedAt(only(), 500)).toEqual([]);
  expect(receivedAt(only(), 1_500)).toMatchObject([{ id: '000000000000000b', kind: 'Beacon', ageMs: 500, place: { latitude_deg: 39.40005 } }]);
  expect(receivedAt(only(), 2_100)).toMatchObject([{ ageMs: 100, place: undefined }]);
  expect(receivedAt(only(), 5_100)).toEqual([]);
});

it('draws the path up to the moment, forwards and back', () => {
  expect(pathUpTo(only(), 3_000)[0]).toHaveLength(4);
  expect(pathUpTo(only(), 0)).toEqual([]);
});

it('finds by halving what a search from the beginning finds', () => {
  const values = [0, 1, 1, 4, 9];
  for (let at = -1; at < 11; at += 0.5) expect(lastUpTo(values, at)).toBe(values.findLastIndex((value) => value <= at));
});

it('plays at each speed in both directions, and stops at the ends', () => {
  expect(advanced(1_000, 100, 16, 9_000)).toEqual({ atMs: 2_600, ended: false });
  expect(advanced(1_000, 100, -0.25, 9_000)).toEqual({ atMs: 975, ended: false });
  expect(advanced(8_999, 100, 1, 9_000)).toEqual({ atMs: 9_000, ended: true });
  expect(advanced(10, 100, -1, 9_000)).toEqual({ atMs: 0, ended: true });
});

it('asks for fewer samples of each of many', () => expect([1, 20, 100, 1_000].map(samplesFor)).toEqual([20_000, 20_000, 4_000, 1_000]));

describe('the bar', () => {
  afterEach(cleanup);

  it('is worked by slider, button and clock', async () => {
    const replay = new Replay();
    replay.flight = flightOf([log()]);
    render(ReplayBar, { replay });
    const bar = screen.getByTestId('replay-bar');
    await fireEvent.input(screen.getByTestId('replay-slider'), { target: { value: '4000' } });
    expect(bar.dataset['at']).toBe('4000');
    await fireEvent.click(screen.getByTestId('replay-play'));
    replay.tick(1_000);
    replay.tick(1_500);
    expect([replay.atMs, replay.playing]).toEqual([4_500, true]);
    await fireEvent.click(screen.getByTestId('replay-backwards'));
    await fireEvent.change(screen.getByTestId('replay-speed'), { target: { value: '4' } });
    replay.tick(1_600);
    expect(replay.atMs).toBe(4_100);
    replay.tick(9_000);
    expect([replay.atMs, replay.playing]).toEqual([0, false]);
    // At its end it begins again.
    replay.play();
    expect(replay.atMs).toBe(9_000);
  });
});

it('says what the service answers', async () => {
  const answer = (body: string, status = 200) => vi.fn(async () => new Response(body, { status })) as unknown as typeof fetch;
  expect(await readRecords(answer('{"logs":[],"results":[],"left_out":0}'))).toEqual({ ok: true, value: { logs: [], results: [], left_out: 0 } });
  const none = await readRecords(answer('{"code":"not_found","message":"no directory (--records)"}', 404));
  expect(none).toEqual({ ok: false, status: 404, reason: 'no directory (--records)' });
  const request = answer('{}');
  await readTrack('a b/ü&.mcap', 100, request);
  expect(request).toHaveBeenCalledWith('/api/v1/records/track?file=a%20b%2F%C3%BC%26.mcap&samples=100', expect.objectContaining({ method: 'GET' }));
  const gone = (async () => Promise.reject(new Error('x'))) as unknown as typeof fetch;
  expect(await readRecords(gone)).toMatchObject({ ok: false, status: 0 });
});

/** The page's sources, by their path below `src`. */
const SOURCES = new Map(
  Object.entries(import.meta.glob<string>('../**/*.{ts,svelte}', { query: '?raw', import: 'default', eager: true })).map(([path, text]) => [
    path.startsWith('../') ? path.slice(3) : path.replace(/^\.\//, 'replay/'), text,
  ]),
);

/** Every module that a file of the page loads, types left out. */
function reached(from: string, found = new Set<string>()): Set<string> {
  const text = SOURCES.get(from);
  if (text === undefined) throw new Error(`no ${from}`);
  if (found.has(from)) return found;
  found.add(from);
  for (const [whole, path] of text.matchAll(/import\s[^;]*?['"](\.[^'"]+)['"]/g)) {
    if (/^import\s+type\s/.test(whole) || path === undefined || path.endsWith('.css')) continue;
    const { pathname } = new URL(path, `file:///${from}`);
    const file = [pathname.slice(1), `${pathname.slice(1)}.ts`].find((one) => SOURCES.has(one));
    if (file === undefined) throw new Error(`${from}: no ${path}`);
    reached(file, found);
  }
  return found;
}

it('reaches nothing that commands an aircraft, or changes anything', () => {
  const modules = [...reached('replay/ReplayPage.svelte')];
  expect(modules.length).toBeGreaterThan(10);
  expect(modules).toContain('api/records.ts');
  const changes = /'(POST|PUT|DELETE|PATCH)'/;
  expect(modules.filter((file) => changes.test(SOURCES.get(file) ?? ''))).toEqual([]);
  expect(modules.filter((file) => /^api\/(send|missions|stream|access|links|aircraft)\.ts$|console\.svelte/.test(file))).toEqual([]);
  // The test finds what it looks for where it is: the live page reaches it.
  expect([...reached('App.svelte')].filter((file) => changes.test(SOURCES.get(file) ?? ''))).toContain('api/send.ts');
});
