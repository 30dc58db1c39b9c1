import { describe, expect, it } from 'vitest';
import type { LogLine } from '../api/model';
import { ACTIONS, aircraft, command, flying, neverSeen, picture, update } from './samples';
import { applyLog, applyPicture, applyUpdate, EMPTY, LOG_LINES_MAX, type FleetState } from './state';

const addresses = (state: FleetState) => state.aircraft.map(({ fleet }) => fleet.address);

describe('a picture', () => {
  it('replaces the fleet: an aircraft that is not in it is gone', () => {
    const before = applyPicture(EMPTY, picture([aircraft(1), aircraft(2), aircraft(3)]), 10);
    const after = applyPicture(before, picture([aircraft(1), aircraft(3)]), 20);
    expect(addresses(after)).toEqual(['http://10.0.0.1:8080', 'http://10.0.0.3:8080']);
    expect(after.receivedAtMs).toBe(20);
  });

  it('keeps the log, which the service does not send again', () => {
    const line: LogLine = { id: '1', time_ms: 5, severity: 'info', text: 'armed' };
    const after = applyPicture(applyLog(EMPTY, line), picture([]), 10);
    expect(after.log.map((entry) => entry.line)).toEqual([line]);
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

  it('adds an aircraft that the page did not know', () => {
    expect(addresses(applyUpdate(before, update([aircraft(9)]), 30))).toHaveLength(3);
  });

  it('does not touch the value it came from', () => {
    applyUpdate(before, update([flying(1)]), 30);
    expect(before.aircraft[0]?.fleet.status?.state).toBe('Start');
  });
});

describe('the log', () => {
  const line = (time: number): LogLine => ({ id: '1', time_ms: time, severity: 'info', text: 'x' });

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
