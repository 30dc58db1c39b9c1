import { describe, expect, it } from 'vitest';
import { announcements } from './announce';
import { allNotes, assign, receivers, sharedProtocol } from './assign';
import { avoidanceOf, byId, distanceM, everyoneAlone, inConflict, lengthM, nameOf, readyAlone, thinned } from './avoidance';
import { aircraft, avoiding, neverSeen, stateOf, status } from './samples';
import { sortAircraft } from './sort';
import { summarize } from './summary';

const swarm = { leader: true, leader_id: status(1).id, size: 2, formation: 'linear', slot: 0 };
const places = (...norths: number[]) => norths.map((north) => ({ latitude_deg: 39 + north / 111_195, longitude_deg: 0, altitude_m: 0 }));

describe('avoidance', () => {
  it('finds in conflict an aircraft that avoids another or does not fly its mission', () => {
    const conflict = (change: object) => inConflict(avoiding(1, change).status);
    expect([conflict({}), conflict({ avoiding: 'b' }), conflict({ state: 'StandStill' })]).toEqual([false, true, true]);
    expect(inConflict(status(1))).toBe(false);
  });

  it('is over on the ground', () => {
    const flown = avoiding(1, { state: 'EmergencyLand' }).status;
    if (!flown) throw new Error('the sample has a status');
    expect(avoidanceOf({ ...flown, phase: 'ending' })?.state).toBe('EmergencyLand');
    expect(avoidanceOf({ ...flown, phase: 'finished' })).toBeUndefined();
  });

  it('measures over ground', () => {
    const [a, b] = places(0, 100);
    if (!a || !b) throw new Error('two places');
    expect(distanceM(a, b)).toBeCloseTo(100, 6);
    expect(distanceM(a, { ...a, longitude_deg: 0.001 })).toBeCloseTo(111.195 * Math.cos((39 * Math.PI) / 180), 6);
    expect(lengthM(places(0, 50, 20))).toBeCloseTo(80, 6);
    expect(lengthM([])).toBe(0);
  });

  it('thins places but keeps both ends', () => {
    expect(thinned(places(0, 5, 10, 15, 20.1, 25), 20)).toEqual(places(0, 20.1, 25));
    expect(thinned(places(7), 20)).toEqual(places(7));
    expect(thinned([], 20)).toEqual([]);
  });

  it('names an aircraft that is followed, and gives the end of the id of one that is not', () => {
    const known = byId(stateOf([aircraft(2), neverSeen(3)]).aircraft);
    expect([nameOf(status(2).id, known), nameOf('00b827eb01020304', known)]).toEqual(['UAV 2', '…0304']);
  });

  it('is counted, sorted to the top and announced once', () => {
    const calm = stateOf([avoiding(1), avoiding(2), avoiding(3)]);
    const tense = stateOf([avoiding(1), avoiding(2), avoiding(3, { state: 'StandStill', avoiding: status(2).id })]);
    expect(summarize(tense.aircraft).inConflict).toBe(1);
    const sorted = sortAircraft(tense.aircraft, { column: 'avoids', descending: false }, new Map());
    expect(sorted[0]?.fleet.status?.name).toBe('UAV 3');
    expect(announcements(calm, tense)).toEqual(['UAV 3: in conflict with UAV 2.', 'UAV 3: Stand still.']);
    expect(announcements(tense, stateOf([avoiding(1), avoiding(2), avoiding(3, { state: 'StandStill', avoiding: status(2).id })]))).toEqual([]);
  });

  it('announces the aircraft that is too near, once', () => {
    const separation = { alarmed: true, alarms: 1, collisions: 0, rule_collisions: 0 };
    const calm = stateOf([avoiding(1), avoiding(2)]);
    const near = (one = avoiding(1)) => stateOf([one.status ? { ...one, status: { ...one.status, separation } } : one, avoiding(2)]);
    expect(summarize(near().aircraft).tooNear).toBe(1);
    expect(announcements(calm, near())).toEqual(['UAV 1: too near to another aircraft.']);
    expect(announcements(near(), near())).toEqual([]);
  });

  it('counts many new conflicts instead of listing them', () => {
    const fleet = (change: object) => stateOf([1, 2, 3, 4].map((index) => avoiding(index, change)));
    expect(announcements(fleet({}), fleet({ avoiding: status(9).id }))).toEqual(['4 aircraft more in conflict.']);
  });
});

describe('missions of their own', () => {
  const read = (name: string) => ({ mission: { name, waypoints: [] }, notes: [] });
  const three = stateOf([avoiding(10), avoiding(2), avoiding(1)]).aircraft;

  it('go to the selected aircraft, or all, in the order of their names', () => {
    const names = (selected: Set<string>) => receivers(three, selected).map(({ fleet }) => fleet.status?.name);
    expect(names(new Set())).toEqual(['UAV 1', 'UAV 2', 'UAV 10']);
    expect(names(new Set(['http://10.0.0.10:8080']))).toEqual(['UAV 10']);
  });

  it('go to the leader alone in a swarm', () => {
    const fleet = stateOf([aircraft(1, { swarm }), aircraft(2, { swarm: { ...swarm, leader: false } })]).aircraft;
    expect(everyoneAlone(fleet)).toBe(false);
    expect(receivers(fleet, new Set()).map(({ fleet }) => fleet.status?.name)).toEqual(['UAV 1']);
  });

  it('are never given twice or left over', () => {
    const pairs = assign(receivers(three, new Set()), [read('a'), read('b'), read('c')]);
    if (typeof pairs === 'string') throw new Error(pairs);
    expect(pairs.map(({ name, mission }) => [name, mission.mission.name])).toEqual([['UAV 1', 'a'], ['UAV 2', 'b'], ['UAV 10', 'c']]);
    expect(assign(three, [read('a')])).toContain('Found 1 mission, expected 3');
    expect(assign([], [read('a')])).toContain('No aircraft');
  });

  it('are read for the protocol of their aircraft, where that is one', () => {
    expect(sharedProtocol(three)).toBe('mbcap-e');
    expect(sharedProtocol([...three, ...stateOf([aircraft(4)]).aircraft])).toBeUndefined();
    expect(sharedProtocol([])).toBeUndefined();
  });

  it('show what was noted at reading and at upload once', () => {
    expect(allNotes(['fence', 'hold'], ['hold', 'speed'])).toEqual(['fence', 'hold', 'speed']);
    expect(allNotes(['fence'], undefined)).toEqual(['fence']);
  });

  it('let the selected be set up and started without the others', () => {
    const fleet = stateOf([
      aircraft(1, { phase: 'start' }), aircraft(2, { phase: 'ready' }), aircraft(3, { phase: 'moving' }), aircraft(4, { phase: 'ready' }),
    ]).aircraft;
    const can = (...indices: number[]) => {
      const { setup, start } = readyAlone(fleet, new Set(indices.map((index) => `http://10.0.0.${index}:8080`)));
      return [setup, start];
    };
    expect([can(1), can(2, 4), can(2, 3), can(3), can(1, 2)]).toEqual([
      [true, false], [false, true], [false, true], [false, false], [true, false],
    ]);
  });

  it('are no aircraft’s before a status was received', () => {
    expect(everyoneAlone(stateOf([neverSeen(1)]).aircraft)).toBe(false);
  });
});
