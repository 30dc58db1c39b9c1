import { describe, expect, it } from 'vitest';
import { conditionsOf, doing, failsafeCause, hasLanded } from './conditions';
import { byId } from './avoidance';
import { absences } from './members';
import { holdings } from './mission';
import { fleetPhase } from './phase';
import { aircraft, avoiding, flying, neverSeen, stateOf, status } from './samples';
import type { AircraftStatus, FleetAircraft } from '../api/model';

function conditions(...list: FleetAircraft[]) {
  const fleet = stateOf(list).aircraft;
  const around = { known: byId(fleet), absences: absences(fleet), held: holdings(fleet), nowMs: 0, groundLive: true };
  return fleet.map((one) => conditionsOf(one, around).map(({ kind, level, short }) => `${level} ${kind}: ${short}`));
}
const up = (index: number, change: Partial<AircraftStatus> = {}): FleetAircraft => {
  const one = flying(index);
  return { ...one, status: one.status ? { ...one.status, ...change } : null };
};

describe('what is wrong with an aircraft', () => {
  it('is nothing with a healthy one', () => {
    expect(conditions(aircraft(1), up(2))).toEqual([[], []]);
  });

  it('tells the pilot from a failsafe, and a failsafe by its cause', () => {
    const mode = (name: string) => ({ flight_controller: { ...status(1).flight_controller, mode: name, armed: true } });
    expect(conditions(up(1, { engaged: false, ...mode('LOITER') }))).toEqual([['alarm takeover: Pilot']]);
    // After *Recover control* it flies on to its last target: the pilot must switch first.
    expect(conditions(up(1, { engaged: false, ...mode('GUIDED') }))).toEqual([['alarm takeover: No command']]);
    expect(conditions(up(1, { engaged: false, ...mode('') }))).toEqual([['alarm takeover: Not commanded']]);
    const rtl = { ...status(1).flight_controller, mode: 'RTL', armed: true };
    expect(conditions(up(1, { engaged: false, failsafe: true, detail: 'Low battery', flight_controller: rtl }))).toEqual([['alarm failsafe: Failsafe RTL']]);
    expect(['Radio Failsafe', 'GCS Failsafe', 'EKF variance', 'Fence breach', 'Battery Failsafe', '?'].map(failsafeCause)).toEqual([
      'radio', 'ground station', 'EKF', 'fence', 'battery', 'flight controller',
    ]);
  });

  it('lost in flight is an alarm, on the ground a caution, never seen neither', () => {
    const lost = { ...up(1), link: 'lost' as const };
    expect(conditions(lost, aircraft(2, {}, { link: 'lost' }), neverSeen(3))).toEqual([['alarm lost: Lost'], ['caution lost: Lost'], ['notice unseen: Never seen']]);
  });

  it('a battery at a limit of its flight controller is one whatever its charge', () => {
    const battery = (remaining_percent: number | null) => ({ remaining_percent, voltage_v: 10.1 });
    const fleet = stateOf([up(1, { battery: battery(null) }), up(2, { battery: battery(60) }), up(3, { battery: battery(10) }), aircraft(4, { battery: battery(null) })]).aircraft;
    const voltages = new Map(fleet.map(({ fleet: { status } }, index) => [status?.id ?? '', index === 0 || index === 3 ? 'critical' as const : 'low' as const]));
    const around = { known: byId(fleet), absences: absences(fleet), held: holdings(fleet), nowMs: 0, groundLive: true, voltages };
    expect(fleet.flatMap((one) => conditionsOf(one, around)).map(({ level, short }) => `${level}: ${short}`)).toEqual([
      'alarm: Battery 10.1\u202fV', 'caution: Battery 60\u202f%, 10.1\u202fV', 'alarm: Battery 10\u202f%, 10.1\u202fV', 'caution: Battery 10.1\u202fV',
    ]);
  });

  it('a low battery grows into an alarm in flight', () => {
    const battery = (remaining_percent: number) => ({ remaining_percent, voltage_v: 10 });
    expect(conditions(up(1, { battery: battery(20) }), up(2, { battery: battery(10) }), aircraft(3, { battery: battery(10) }))).toEqual([
      ['caution battery: Battery 20\u202f%'], ['alarm battery: Battery 10\u202f%'], ['caution battery: Battery 10\u202f%'],
    ]);
  });

  it('a deaf or mute radio is an alarm in flight, and an unknown one is none', () => {
    const radio = (change: Partial<NonNullable<AircraftStatus['avoidance']>>) => {
      const one = avoiding(1, { state: 'Normal', avoiding: null, ...change });
      return { ...one, status: { ...(one.status as AircraftStatus), flight_controller: { ...status(1).flight_controller, armed: true } } };
    };
    expect(conditions(radio({ receives: false }))[0]).toContain('alarm radio: Deaf');
    expect(conditions(radio({ is_received: false }))[0]).toContain('alarm radio: Not received');
    for (const known of [{}, { receives: null, is_received: null }, { receives: true, is_received: true }]) {
      expect(conditions(radio(known))[0]?.filter((text) => text.includes('radio'))).toEqual([]);
    }
  });

  it('the worst comes first', () => {
    const separation = { nearest: null, closest_approach: null, flight_minimum: null, alarmed: true, alarms: 1, collisions: 0, rule_collisions: 0 };
    const [found] = conditions({ ...avoiding(1, { state: 'StandStill' }), status: { ...status(1), ...(avoiding(1, { state: 'StandStill' }).status as AircraftStatus), separation } });
    expect(found).toEqual(['alarm separation: Too near', 'caution conflict: Conflict']);
  });

  it('a mission that ended by itself is a caution, and one that the operator ended is not', () => {
    const hold = { id: 'h', command: 'hold' as const, stage: 'effect_seen' as const, detail: '' };
    const brake = { ...status(1).flight_controller, mode: 'BRAKE', armed: true };
    const ended = { phase: 'aborted' as const, state: 'Aborted' as const, flight_controller: brake };
    expect(conditions(up(1, { ...ended, detail: 'arming failed' }), up(2, { ...ended, commands: [hold] }))).toEqual([['caution ended: Ended by itself'], []]);
    expect(stateOf([up(1, ended), up(2, { phase: 'moving' })]).aircraft.map(doing)).toEqual(['Holding', 'Moving to waypoint']);
    const avoidance = { state: 'StandStill' as const, avoiding: '00000000000000a2', predicted: [] };
    expect(stateOf([up(1, { ...ended, avoidance })]).aircraft.map(doing)).toEqual(['Returning, in conflict']);
  });

  it('one without keys has that said of it', () => {
    expect(conditions(aircraft(1, { radio: { secured: false, sent: 0, received: 0, refused: [] } }))).toEqual([['notice keys: No keys']]);
  });
});

describe('the phase of the fleet', () => {
  const phase = (...list: FleetAircraft[]) => {
    const { step, text } = fleetPhase(stateOf(list).aircraft, new Map());
    return `${step}: ${text}`;
  };
  const mission = { name: 'm', hash: 'aa', waypoints: 3, reached: null };
  const at = (index: number, phase: AircraftStatus['phase'], change: Partial<AircraftStatus> = {}) => up(index, { phase, mission, ...change });

  it('goes from a plan to the ground with counts', () => {
    const ground = { ...status(1).flight_controller };
    const failing = { name: 'gps', passed: false, is_required: true, detail: 'no fix' };
    expect(phase()).toBe('plan: No aircraft');
    expect(phase(aircraft(1))).toBe('plan: No mission yet');
    expect(phase(aircraft(1, { mission, checks: [failing] }), aircraft(2, { mission }))).toBe('check: Checks passed 1 of 2');
    expect(phase(aircraft(1, { mission }))).toBe('setup: Ready to set up');
    const low = status(2).navigation ?? null;
    expect(phase(at(1, 'preparing'), at(2, 'preparing', { navigation: low }))).toBe('setup: Taking off 1 of 2');
    expect(phase(at(1, 'ready'), at(2, 'preparing'))).toBe('setup: Taking places 1 of 2');
    expect(phase(at(1, 'ready'), at(2, 'ready'))).toBe('ready: Ready 2 of 2');
    expect(phase(at(1, 'moving'), at(2, 'waiting'))).toBe('fly: Flying 2 of 2, 1 waiting');
    const land = { ...ground, mode: 'LAND', armed: true };
    expect(phase(at(1, 'finished', { flight_controller: ground }), at(2, 'ending', { flight_controller: land }))).toBe('land: Landing, 1 of 2 down');
    expect(phase(at(1, 'finished', { flight_controller: ground }))).toBe('land: Landed 1 of 1');
  });

  it('one that holds does not count as landed', () => {
    expect(phase(at(1, 'aborted'), at(2, 'finished', { flight_controller: status(2).flight_controller }))).toBe('land: Holding 1 of 2');
    expect(stateOf([at(1, 'aborted')]).aircraft.map(hasLanded)).toEqual([false]);
  });
});
