import { describe, expect, it } from 'vitest';
import type { FleetLogLine } from '../api/model';
import { ACTIONS, aircraft, command, flying, neverSeen, picture, status, update } from './samples';
import { applyLog, applyPicture, applyUpdate, EMPTY, LOG_LINES_MAX, type FleetState } from './state';

const addresses = (state: FleetState) => state.aircraft.map(({ fleet }) => fleet.address);

describe('a picture', () => {
  it('replaces the fleet: an aircraft that is not in it is gone', () => {
    const before = applyPicture(EMPTY, picture([aircraft(1), aircraft(2), aircraft(3)]), 10);
    const after = applyPicture(before, picture([aircraft(1), aircraft(3)]), 20);
    expect(addresses(after)).toEqual(['http://10.0.0.1:8080', 'http://10.0.0.3:8080']);
    expect(after.receivedAtMs).toBe(20);
  });

  it('adds to the log what the page has not received, and begins a new one with a new clock', () => {
    const line: FleetLogLine = { at_ms: 7, id: '1', time_ms: 5, severity: 'info', text: 'armed' };
    const missed = { ...line, at_ms: 9, text: 'disarmed' };
    const before = applyLog(applyPicture(EMPTY, picture([]), 0), line);
    const after = applyPicture(before, picture([], { log: [line, missed] }), 10);
    expect(after.log.map((entry) => entry.line)).toEqual([line, missed]);
    expect(applyPicture(after, picture([], { started_unix_ms: 5 }), 20).log).toEqual([]);
  });

  it('is of another version than the page where the service has been replaced meanwhile', () => {
    const before = applyPicture(EMPTY, picture([]), 0);
    const after = applyPicture(before, picture([], { version: '1.1.0' }), 10);
    expect([before, after].map(({ version, pageVersion }) => [version, pageVersion])).toEqual([['1.0.0', '1.0.0'], ['1.1.0', '1.0.0']]);
  });

  it('holds aircraft that have never answered', () => {
    const state = applyPicture(EMPTY, picture([neverSeen(7), aircraft(1)]), 0);
    expect(addresses(state)).toEqual(['http://10.0.0.7:8080', 'http://10.0.0.1:8080']);
  });

  it('shows an address once, as it was last in the list', () => {
    const state = applyPicture(EMPTY, picture([neverSeen(1), aircraft(1)]), 0);
    expect(state.aircraft.map(({ fleet }) => fleet.link)).toEqual(['up']);
  });
});

describe('an update', () => {
  const before = applyPicture(EMPTY, picture([aircraft(1), aircraft(2)], { missions: [{ hash: 'aa', name: 'm', waypoints: [], holders: [] }] }), 10);

  it('replaces changed aircraft in their place and leaves the others as they are', () => {
    const after = applyUpdate(before, update([flying(2)]), 30);
    expect(after.aircraft[0]).toBe(before.aircraft[0]);
    expect(after.aircraft[1]?.fleet.status?.state).toBe('MovingToWaypoint');
    expect(after.aircraft[1]?.receivedAtMs).toBe(30);
    expect(after.missions).toBe(before.missions);
    expect(after.version).toBe('1.0.0');
  });

  it('with no aircraft changes commands, actions and the clock only', () => {
    const after = applyUpdate(before, update([], { commands: [command(['sending'])], actions: { ...ACTIONS, start: true } }), 40);
    expect(after.aircraft).toBe(before.aircraft);
    expect(after.commands).toHaveLength(1);
    expect(after.actions.start).toBe(true);
    expect([after.timeMs, after.receivedAtMs]).toEqual([2000, 40]);
  });

  it('keeps the base station of the last update that had one', () => {
    const corrections = { source: 'tcp:10.0.0.2:2101', age_ms: 400, bytes_s: 640, frames: 9, refused: [] };
    const listening = { radio: 'wlan0:14600', datagrams: 7, received: 2, unanswered: [], refused: [] };
    expect([before.corrections, before.listening]).toEqual([undefined, undefined]);
    expect(applyUpdate(applyUpdate(before, update([], { listening }), 30), update([]), 31).listening).toEqual(listening);
    const based = applyUpdate(before, update([], { corrections }), 30);
    expect(applyUpdate(based, update([]), 31).corrections).toEqual(corrections);
  });

  it('changes what it names of an aircraft, and nothing else', () => {
    const after = applyUpdate(before, { time_ms: 5, aircraft: [{ address: aircraft(2).address, change: { status: { flight_controller: { armed: true } } } }] }, 30);
    expect(after.aircraft[1]?.fleet.status?.flight_controller).toEqual({ ...status(2).flight_controller, armed: true });
    expect(after.aircraft[1]?.fleet.status?.checks).toBe(before.aircraft[1]?.fleet.status?.checks);
    expect([after.commands, after.actions]).toEqual([before.commands, before.actions]);
  });

  it('of an aircraft that the page does not have cannot be applied', () => {
    expect(() => applyUpdate(before, update([aircraft(9)]), 30)).toThrow(/found a change of http:\/\/10.0.0.9:8080/);
  });

  it('keeps the commands that did not change, and no more than the service shows', () => {
    const first = applyUpdate(before, { time_ms: 1, commands: [command(['sending'], { id: 'a' }), command(['sending'], { id: 'b' })] }, 30);
    const second = applyUpdate(first, { time_ms: 2, commands: [command(['effect_seen'], { id: 'a' })] }, 31);
    expect(second.commands.map(({ id, results }) => [id, results[0]?.outcome])).toEqual([['a', 'effect_seen'], ['b', 'sending']]);
    const many = Array.from({ length: 20 }, (_, index) => command([], { id: `c${index}` }));
    expect(applyUpdate(second, { time_ms: 3, commands: many }, 32).commands.map(({ id }) => id).at(0)).toBe('c4');
  });

  it('does not touch the value it came from', () => {
    applyUpdate(before, update([flying(1)]), 30);
    expect(before.aircraft[0]?.fleet.status?.state).toBe('Start');
  });
});

describe('the log', () => {
  const line = (time: number): FleetLogLine => ({ at_ms: time, id: '1', time_ms: time, severity: 'info', text: 'x' });

  it('takes the same line once', () => {
    const once = applyLog(EMPTY, line(1));
    expect(applyLog(once, line(1))).toBe(once);
    expect(applyLog(once, line(2)).log).toHaveLength(2);
  });

  it('is bounded and drops the oldest', () => {
    let state = EMPTY;
    for (let time = 0; time < LOG_LINES_MAX + 20; time += 1) state = applyLog(state, line(time));
    expect(state.log).toHaveLength(LOG_LINES_MAX);
    expect(state.log[0]?.line.time_ms).toBe(20);
    expect(new Set(state.log.map(({ key }) => key)).size).toBe(LOG_LINES_MAX);
  });
});
