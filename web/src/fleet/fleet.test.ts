import { describe, expect, it } from 'vitest';
import { announcements } from './announce';
import { byId } from './avoidance';
import { history, reasons, summarizeCommand, unreported, type Sending } from './commands';
import { holdings, missionMatch } from './mission';
import { aircraft, command, flying, neverSeen, picture, stateOf, status, update } from './samples';
import { covers, scopeOf, scopeOfThose } from './scope';
import { displayName, roleText, sortAircraft, type Column } from './sort';
import { applyPicture, applyUpdate, EMPTY, type FleetState } from './state';
import { flightTimeMs, summarize, trackFlight, type FlightClock } from './summary';

const mission = (hash: string) => ({ name: 'm', hash, waypoints: 3, reached: null });
const swarm = (leader: boolean, slot: number | null) => ({ leader, leader_id: status(1).id, size: 3, formation: 'linear', slot });

describe('the fleet summary', () => {
  it('counts armed, flying, lost and without flight controller apart', () => {
    const state = stateOf([
      aircraft(1), flying(2), flying(3, 0.2), aircraft(4, {}, { link: 'lost' }), neverSeen(5),
      aircraft(6, { flight_controller: { ...status(6).flight_controller, link: 'lost' } }),
    ]);
    expect(summarize(state.aircraft)).toEqual({ total: 6, armed: 2, flying: 1, lost: 1, neverSeen: 1, flightControllerLost: 1, inConflict: 0, tooNear: 0 });
  });
});

describe('the flight clock', () => {
  const at = (time: number, armed: boolean, commands = [] as ReturnType<typeof command>[]) =>
    stateOf([armed ? flying(1) : aircraft(1)], { time_ms: time, commands });
  const run = (...states: FleetState[]) => states.reduce<FlightClock>(trackFlight, undefined);
  const time = (clock: FlightClock, now: number) => (typeof clock === 'object' ? flightTimeMs(clock, now) : undefined);

  it('runs from the first armed aircraft to the last disarmed one, then stands', () => {
    const clock = run(at(1_000, false), at(5_000, true), at(9_000, true));
    expect(time(clock, 9_000)).toBe(4_000);
    const ended = trackFlight(clock, at(12_000, false));
    expect(time(ended, 60_000)).toBe(7_000);
  });

  it('begins anew with the next flight', () => {
    const clock = run(at(1_000, false), at(5_000, true), at(12_000, false), at(20_000, true));
    expect(time(clock, 21_000)).toBe(1_000);
  });

  it('of a page that came late is taken from the Setup command, or is a lower bound', () => {
    const setup = command(['effect_seen'], { command: 'setup', time_ms: 2_000 });
    expect(run(at(30_000, true, [setup]))).toEqual({ startedAtMs: 2_000, endedAtMs: undefined, atLeast: false });
    expect(run(at(30_000, true))).toEqual({ startedAtMs: 30_000, endedAtMs: undefined, atLeast: true });
  });

  it('does not run backwards when the ground service restarts', () => {
    const clock = run(at(1_000, false), at(50_000, true), at(300, true));
    expect(time(clock, 400)).toBe(100);
  });

  it('does not run before there is a flight', () => {
    expect(run(EMPTY)).toBeUndefined();
    expect(run(at(1_000, false), at(2_000, false))).toBe('grounded');
  });
});

describe('sorting', () => {
  const order = (state: FleetState, column: Column, descending = false) =>
    sortAircraft(state.aircraft, { column, descending }, holdings(state.aircraft)).map(displayName);

  it('puts UAV 2 before UAV 10', () => {
    expect(order(stateOf([aircraft(10), aircraft(2), aircraft(1)]), 'name')).toEqual(['UAV 1', 'UAV 2', 'UAV 10']);
  });

  it('leaves what is absent at the end in both directions', () => {
    const state = stateOf([neverSeen(9), flying(1, 5), flying(2, 30)]);
    expect(order(state, 'height')).toEqual(['UAV 1', 'UAV 2', '10.0.0.9:8080']);
    expect(order(state, 'height', true)).toEqual(['UAV 2', 'UAV 1', '10.0.0.9:8080']);
  });

  it('breaks ties by name whatever the direction', () => {
    const state = stateOf([aircraft(3), aircraft(1), aircraft(2)]);
    expect(order(state, 'mode', true)).toEqual(['UAV 1', 'UAV 2', 'UAV 3']);
  });

  it('by role puts the leader first, then the slots', () => {
    const state = stateOf([aircraft(3, { swarm: swarm(false, 0) }), aircraft(2, { swarm: swarm(false, null) }), aircraft(1, { swarm: swarm(true, 4) })]);
    expect(order(state, 'role')).toEqual(['UAV 1', 'UAV 3', 'UAV 2']);
    expect(state.aircraft.map(roleText)).toEqual(['Slot 0', 'Slot –', 'Lead 4']);
  });

  it('by link puts trouble first', () => {
    const state = stateOf([aircraft(1), neverSeen(2), aircraft(3, {}, { link: 'lost' })]);
    expect(order(state, 'link')).toEqual(['UAV 3', '10.0.0.2:8080', 'UAV 1']);
  });
});

describe('the mission marker', () => {
  const match = (...list: Parameters<typeof stateOf>[0]) => {
    const state = stateOf(list);
    return state.aircraft.map((one) => missionMatch(one, holdings(state.aircraft)));
  };

  it('compares hashes with the leader’s, not names', () => {
    expect(match(
      aircraft(1, { mission: mission('aa'), swarm: swarm(true, 0) }),
      aircraft(2, { mission: mission('aa'), swarm: swarm(false, 1) }),
      aircraft(3, { mission: mission('bb'), swarm: swarm(false, 2) }),
      aircraft(4, { swarm: swarm(false, 3) }),
    )).toEqual(['same', 'same', 'differs', 'none']);
  });

  it('reports no difference where there is no leader to compare with', () => {
    expect(match(aircraft(2, { mission: mission('bb') }), aircraft(3, { mission: mission('cc'), swarm: swarm(false, 1) }))).toEqual(['own', 'own']);
  });
});

describe('the scope of a command', () => {
  const fleet = stateOf([aircraft(1), aircraft(2), neverSeen(3)]).aircraft;
  const select = (...indices: number[]) => new Set(indices.map((index) => `http://10.0.0.${index}:8080`));

  it('is all when none is selected', () => {
    expect(scopeOf(fleet, select())).toEqual({ kind: 'all', vehicles: [], short: 'all 3', long: 'Scope: all 3' });
  });

  it('is the selected ones by id', () => {
    const scope = scopeOf(fleet, select(2));
    expect([scope.kind, scope.vehicles, scope.short]).toEqual(['selected', [status(2).id], 'UAV 2']);
    expect(scopeOf(fleet, select(1, 2)).long).toBe('Scope: 2 selected of 3');
  });

  it('does not widen to all when the only selected aircraft has left', () => {
    const scope = scopeOf(fleet, select(9));
    expect(scope.kind).toBe('none');
    expect(scope.long).toContain('1 selected aircraft was never in contact or is gone');
  });

  it('names it when one of several cannot be addressed', () => {
    const scope = scopeOf(fleet, select(1, 3));
    expect(scope.vehicles).toEqual([status(1).id]);
    expect(scope.long).toContain('never in contact or is gone');
  });

  it('of a button for some is called after all only where it is all of them', () => {
    const those = (...indices: number[]) => fleet.filter(({ fleet: { address } }) => select(...indices).has(address));
    expect(scopeOfThose(fleet.slice(0, 2), those(1, 2))).toMatchObject({ kind: 'selected', vehicles: [status(1).id, status(2).id], short: 'all 2' });
    expect(scopeOfThose(fleet, those(1, 2)).short).toBe('2 aircraft');
    expect(scopeOfThose(fleet, those(2)).short).toBe('UAV 2');
    expect(scopeOfThose(fleet, []).kind).toBe('none');
  });

  it('is none in an empty fleet', () => {
    expect(scopeOf([], select()).kind).toBe('none');
  });

  it('of a newer command replaces an older one only where it covers it', () => {
    expect(covers([], ['a'])).toBe(true);
    expect(covers([], [])).toBe(true);
    expect(covers(['a'], [])).toBe(false);
    expect(covers(['a', 'b'], ['a'])).toBe(true);
    expect(covers(['a'], ['a', 'b'])).toBe(false);
  });
});

describe('what became of a command', () => {
  it('lists failures first and is bad when one aircraft failed', () => {
    const summary = summarizeCommand(command(['effect_seen', 'accepted', 'failed', 'expired', 'sending']));
    expect(summary.results.map(({ outcome }) => outcome)).toEqual(['failed', 'expired', 'sending', 'accepted', 'effect_seen']);
    expect(summary.verdict).toBe('bad');
    expect(summary.text).toBe('1 failed, 1 without a seen effect, 1 sending, 1 accepted, 1 effect seen');
  });

  it('is done only when the effect was seen everywhere', () => {
    expect(summarizeCommand(command(['effect_seen', 'accepted'])).verdict).toBe('busy');
    expect(summarizeCommand(command(['effect_seen', 'effect_seen'])).verdict).toBe('done');
    expect(summarizeCommand(command([])).verdict).toBe('busy');
  });

  it('shows newest first what the service and what only the page has, each once', () => {
    const sending = (id: string): Sending => ({ id, command: 'hold', vehicles: [], scope: 'all 9', state: 'sending', reason: '', atUnixMs: 2_000_000, serviceUnixMs: 0 });
    const items = history([command([], { id: 'a' }), command([], { id: 'b' })], [sending('b'), sending('c')], 1_000);
    expect(items.map(({ id }) => id)).toEqual(['c', 'b', 'a']);
    expect(items.map(({ local, remote }) => [local !== undefined, remote !== undefined])).toEqual([[true, false], [true, true], [false, true]]);
  });
});

describe('a command without an effect', () => {
  it('shows each reason once, with the aircraft by name', () => {
    const known = byId(stateOf([aircraft(1), aircraft(2), aircraft(3)]).aircraft);
    const results = [1, 2, 3].map((index) => ({ vehicle: status(index).id, outcome: index === 3 ? ('failed' as const) : ('expired' as const), detail: index === 3 ? 'no mission' : 'refused for 10 s: 409: order: found it stale' }));
    const found = { ...command([]), results };
    expect(reasons(found, known)).toEqual(['UAV 3: no mission', 'UAV 1, UAV 2: refused for 10 s: 409: order: found it stale']);
    expect(reasons(command(['sending', 'accepted', 'effect_seen']), known)).toEqual([]);
    const many = { ...found, results: [1, 2, 3].map((index) => ({ vehicle: status(index).id, outcome: 'failed' as const, detail: `reason ${index}` })) };
    expect(reasons(many, known)).toEqual(['UAV 1: reason 1', 'UAV 2: reason 2', '1 other reason below Each aircraft']);
  });

  it('is not called under way for ever where the service does not report it', () => {
    const sending: Sending = { id: 'a', command: 'start', vehicles: [], scope: 'all 3', state: 'sent', reason: '', atUnixMs: 0, sentAtMs: 1_000, serviceUnixMs: 1 };
    expect(unreported(sending, 5_999)).toEqual({ text: 'accepted by the ground service', bad: false });
    expect(unreported(sending, 6_000)).toMatchObject({ bad: true });
    expect(unreported(sending, 6_000).text).toContain('Check the states of the aircraft');
    expect(unreported({ ...sending, state: 'failed', reason: 'no' }, 0)).toEqual({ text: 'not sent: no', bad: true });
    expect(unreported({ ...sending, state: 'sending' }, 1e9).bad).toBe(false);
  });
});

describe('the last command after a restart of the ground service', () => {
  const START = 5_000;
  const sending = (id: string, change: Partial<Sending>): Sending => ({
    id, command: 'start', vehicles: [], scope: 'all 3', state: 'sent', reason: '', atUnixMs: 100, serviceUnixMs: 1_000, ...change,
  });

  it('is not one that the earlier service took', () => {
    const hold = command([], { id: 'hold', command: 'hold', time_ms: 10 });
    expect(history([hold], [sending('old', {})], START).map(({ id }) => id)).toEqual(['hold']);
    expect(history([], [sending('old', {})], START)).toEqual([]);
  });

  it('is the one that was pressed last, also where an older one failed or still waits', () => {
    const hold = command([], { id: 'hold', command: 'hold', time_ms: 10 });
    const older = [sending('failed', { state: 'failed' }), sending('waits', { state: 'sending', atUnixMs: START + 5 })];
    expect(history([hold], older, START).map(({ id }) => id)).toEqual(['hold', 'waits', 'failed']);
    const newer = sending('new', { state: 'sending', atUnixMs: START + 11 });
    expect(history([hold], [newer], START).map(({ id }) => id)).toEqual(['new', 'hold']);
    // Taken by this service, which has not reported it yet.
    const taken = sending('taken', { atUnixMs: START + 12, serviceUnixMs: START });
    expect(history([hold], [taken], START).map(({ id }) => id)).toEqual(['taken', 'hold']);
  });
});

describe('what a screen reader announces', () => {
  const before = stateOf([aircraft(1), aircraft(2), aircraft(3), aircraft(4), aircraft(5)]);
  const after = (...list: Parameters<typeof update>[0]) => announcements(before, applyUpdate(before, update(list), 5));

  it('nothing at the first picture, nor when only numbers change', () => {
    expect(announcements(EMPTY, before)).toEqual([]);
    expect(after(aircraft(1, { battery: { remaining_percent: 12, voltage_v: 10 } }))).toEqual([]);
  });

  it('states and links by name, many alike in one sentence', () => {
    expect(after(aircraft(2, {}, { link: 'lost' }))).toEqual(['UAV 2: contact lost.']);
    expect(after(aircraft(1, { engaged: false }))).toEqual(['UAV 1: taken over by the pilot.']);
    expect(after(aircraft(1, { engaged: false, failsafe: true }))).toEqual(['UAV 1: taken over by a failsafe of its flight controller.']);
    expect(after(...[1, 2, 3, 4].map((index) => flying(index)))).toEqual(['4 aircraft: Moving to waypoint.']);
    expect(after(...[1, 2, 3, 4, 5].map((index) => flying(index)))).toEqual(['All 5: Moving to waypoint.']);
  });

  it('a lost flight controller as such', () => {
    const lost = aircraft(3, { flight_controller: { ...status(3).flight_controller, link: 'lost' } });
    expect(after(lost)).toEqual(['UAV 3: flight controller lost.']);
  });

  it('a command when its verdict changes, not at every step', () => {
    const step = (state: FleetState, ...outcomes: Parameters<typeof command>[0]) => applyUpdate(state, update([], { commands: [command(outcomes)] }), 5);
    const first = step(before, 'sending', 'sending');
    expect(announcements(before, first)).toEqual(['Land: 2 sending.']);
    const second = step(first, 'accepted', 'sending');
    expect(announcements(first, second)).toEqual([]);
    expect(announcements(second, step(second, 'effect_seen', 'failed'))).toEqual(['Land: 1 failed, 1 effect seen.']);
  });

  it('new aircraft', () => {
    expect(announcements(before, applyPicture(before, picture([...before.aircraft.map(({ fleet }) => fleet), neverSeen(9)]), 5))).toEqual([
      '10.0.0.9:8080: new in the fleet.',
    ]);
  });
});
