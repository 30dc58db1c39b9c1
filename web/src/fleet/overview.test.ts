import { describe, expect, it } from 'vitest';
import { checkTable } from './checks';
import { olderCommands } from './commands';
import { Homes } from './homes';
import { nextFlight } from './next-flight';
import { overview, Progress } from './overview';
import { DEFAULTS, parsePreferences } from './preferences';
import { aircraft, flying, stateOf, status } from './samples';
import { numberOf } from './sort';
import { flightTime, utc } from './timeline';
import type { AircraftStatus, FleetAircraft } from '../api/model';

const up = (index: number, change: Partial<AircraftStatus>): FleetAircraft => {
  const one = flying(index);
  return { ...one, status: one.status ? { ...one.status, ...change } : null };
};

describe('the swarm in figures', () => {
  const position = (north: number, height = 20) => ({ latitude_deg: 39.48 + north / 111_195, longitude_deg: -0.34, altitude_m: height });
  const moving = (index: number, north: number, speed: number, charge: number) =>
    up(index, {
      navigation: { position: position(north), height_m: 20, ground_speed_m_s: speed, climb_m_s: 0, heading_deg: 0, target: null },
      battery: { remaining_percent: charge, voltage_v: 12 }, mission: { name: 'm', hash: 'aa', waypoints: 2, reached: 0 },
    });

  it('are of those in contact that fly, each with whom it is about', () => {
    const fleet = stateOf([
      moving(1, 0, 4, 80), moving(2, 30, 5, 60), moving(3, 100, 0.1, 70), { ...moving(4, 31, 1, 5), link: 'lost' },
      aircraft(5, { battery: { remaining_percent: 40, voltage_v: 12 } }),
    ]).aircraft;
    const missions = [{ hash: 'aa', name: 'm', holders: [1, 2, 3].map((index) => status(index).id), waypoints: [position(0), position(300)] }];
    const { battery, separation, slowest, toGo } = overview(fleet, missions);
    expect(toGo, 'one sample gives no progress').toBeUndefined();
    expect([battery?.value, battery?.name]).toEqual([40, 'UAV 5']);
    expect([Math.round(separation?.value ?? 0), separation?.name]).toEqual([30, 'UAV 1, UAV 2']);
    expect([slowest?.value, slowest?.name]).toEqual([4, 'UAV 1']);
  });

  it('give the time to go by the progress of the last minute, through a stop at a waypoint', () => {
    const progress = new Progress();
    expect(progress.observe('a', 400, 0)).toBeUndefined();
    expect(progress.observe('a', 380, 5_000), 'too short for a rate').toBeUndefined();
    expect(progress.observe('a', 350, 10_000)).toBe(70);
    // It stands: the time grows slowly and does not vanish.
    expect(progress.observe('a', 350, 12_000)).toBe(84);
    // Another mission begins its progress again, and so does an aircraft that is gone in between.
    expect(progress.observe('a', 900, 13_000)).toBeUndefined();
    progress.keep(new Set());
    expect(progress.observe('a', 100, 30_000)).toBeUndefined();
  });

  it('leave out an aircraft whose flight controller is silent', () => {
    const silent = moving(1, 0, 4, 20);
    const controller = silent.status?.flight_controller;
    const fleet = stateOf([
      silent.status && controller ? { ...silent, status: { ...silent.status, flight_controller: { ...controller, link: 'lost' } } } : silent,
      moving(2, 30, 5, 60),
    ]).aircraft;
    const { battery, separation } = overview(fleet, []);
    expect([battery?.value, separation]).toEqual([60, undefined]);
  });

  it('are absent where there is nothing to say', () => {
    expect(overview(stateOf([aircraft(1, { battery: null })]).aircraft, [])).toEqual({ battery: undefined, separation: undefined, slowest: undefined, toGo: undefined });
  });
});

describe('commands that the service does not know', () => {
  const progress = (id: string, stage: 'accepted' | 'effect_seen' | 'failed') => ({ id, command: 'land' as const, stage, detail: '' });

  it('are shown by what the aircraft report, and keep the time when they were first seen', () => {
    const fleet = stateOf([aircraft(1, { commands: [progress('a', 'effect_seen'), progress('b', 'accepted')] }), aircraft(2, { commands: [progress('a', 'failed')] })]).aircraft;
    const first = olderCommands(fleet, new Set(['b']), [], 100);
    expect(first).toMatchObject([{ id: 'a', command: 'land', seenAtMs: 100, bad: true, text: expect.stringContaining('1 failed, 1 effect seen') as string }]);
    expect(olderCommands(fleet, new Set(['b']), first, 900)[0]?.seenAtMs).toBe(100);
    expect(olderCommands(fleet, new Set(['a', 'b']), first, 900)).toEqual([]);
  });
});

describe('the next flight', () => {
  const landed = (index: number, phase: AircraftStatus['phase'] = 'finished') => aircraft(index, { phase });

  it('is prepared for all that have landed, once none flies', () => {
    expect(nextFlight(stateOf([landed(1), landed(2, 'aborted')]).aircraft)).toEqual({ vehicles: [status(1).id, status(2).id], short: 'all 2' });
    expect(nextFlight(stateOf([landed(1), flying(2)]).aircraft).vehicles, 'one still flies').toEqual([]);
    expect(nextFlight(stateOf([landed(1), aircraft(2)]).aircraft), 'the other has not flown').toEqual({ vehicles: [status(1).id], short: 'UAV 1' });
    expect(nextFlight(stateOf([aircraft(1)]).aircraft).vehicles).toEqual([]);
  });
});

describe('homes', () => {
  it('are where an aircraft last stood disarmed, and where it has landed', () => {
    const homes = new Homes();
    const at = (one: FleetAircraft, latitude: number): FleetAircraft => {
      const navigation = one.status?.navigation;
      return one.status && navigation ? { ...one, status: { ...one.status, navigation: { ...navigation, position: { ...navigation.position, latitude_deg: latitude } } } } : one;
    };
    const see = (one: FleetAircraft) => homes.add(stateOf([one]).aircraft);
    const { address } = aircraft(1);
    see(at(flying(1), 1));
    expect(homes.of(address), 'armed when the page was opened').toBeUndefined();
    see(at(aircraft(1, { phase: 'finished' }), 2));
    see(at(flying(1), 3));
    expect(homes.of(address)?.latitude_deg).toBe(2);
  });
});

describe('small things', () => {
  it('the number in a symbol is the name’s, or the place in the fleet', () => {
    const number = (name: string) => numberOf({ fleet: aircraft(1, { name }), receivedAtMs: 0 }, 6);
    expect(['UAV 3', 'drone-012', 'alpha7b', 'Blue', 'x1234'].map(number)).toEqual(['3', '12', '7', '7', '234']);
  });

  it('times are UTC, and of the flight while it lasts', () => {
    expect(utc(Date.UTC(2026, 0, 1, 10, 0, 0), 65_000)).toBe('10:01:05');
    const flight = { startedAtMs: 1_000, endedAtMs: 61_000, atLeast: false };
    expect([500, 31_000, 70_000].map((at) => flightTime(flight, at))).toEqual(['', 'T+00:30', '']);
  });

  it('preferences are read value by value, whatever is stored', () => {
    expect(parsePreferences(null)).toEqual(DEFAULTS);
    expect(parsePreferences('{"theme":"sun","sound":"no","hotKeys":false}')).toEqual({ theme: 'sun', sound: true, hotKeys: false });
    expect(['[', 'null', '7', '{"theme":"pink"}'].map(parsePreferences)).toEqual([DEFAULTS, DEFAULTS, DEFAULTS, DEFAULTS]);
  });

  it('another firmware than most is marked', () => {
    const firmware = (index: number, name: string) => aircraft(index, { flight_controller: { ...status(index).flight_controller, firmware: name } });
    const table = checkTable(stateOf([firmware(1, 'a'), firmware(2, 'b'), firmware(3, 'a')]).aircraft, new Map(), new Map());
    expect([table.firmware, ...table.columns.map(({ usual }) => usual)]).toEqual(['a', true, false, true]);
  });
});
