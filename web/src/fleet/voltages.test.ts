import { describe, expect, it } from 'vitest';
import type { FleetAircraft, Parameter } from '../api/model';
import { aircraft, flying, stateOf } from './samples';
import { limitsOf, Voltages } from './voltages';

const parameter = (name: string, value: number | null): Parameter => ({ name, value, detail: '' });
const LIMITS = [parameter('BATT_LOW_VOLT', 10.5), parameter('BATT_CRT_VOLT', 9.9)];

const at = (index: number, voltage_v: number): FleetAircraft => {
  const one = flying(index);
  return { ...one, status: one.status ? { ...one.status, battery: { remaining_percent: null, voltage_v, current_a: null } } : null };
};
const of = (...list: FleetAircraft[]) => stateOf(list).aircraft;
const id = (index: number) => aircraft(index).status?.id ?? '';

/** Aircraft that tell these parameters; how often each was asked. */
function told(parameters: Parameter[] | undefined) {
  const asked: string[] = [];
  const read = async (vehicle: string) => {
    asked.push(vehicle);
    const one = flying(1);
    if (!parameters || !one.status) return { ok: false as const, reason: 'it does not answer' };
    return { ok: true as const, value: { ...one, status: { ...one.status, flight_controller: { ...one.status.flight_controller, parameters } } } };
  };
  return { asked, read };
}

describe('a battery by its voltage', () => {
  it('has the limits of its flight controller, under the names of every version', () => {
    expect(limitsOf(LIMITS)).toEqual({ lowV: 10.5, criticalV: 9.9 });
    expect(limitsOf([parameter('FS_BATT_VOLTAGE', 10.5), parameter('BATT_CRT_VOLT', null)])).toEqual({ lowV: 10.5 });
    expect(limitsOf([parameter('BATT_LOW_VOLT', 0)]), 'a limit of 0 is none').toEqual({});
    expect([limitsOf([]), limitsOf(undefined)]).toEqual([undefined, undefined]);
  });

  it('is low once it has been at the limit for ten seconds, and not where it sags for a moment', async () => {
    const voltages = new Voltages();
    const { read } = told(LIMITS);
    await voltages.read(of(at(1, 11)), 0, read);
    const low = (volts: number, nowMs: number) => voltages.observe(of(at(1, volts)), nowMs).get(id(1));
    expect([low(10.4, 0), low(10.4, 9_000), low(11, 9_500), low(10.5, 10_000), low(10.5, 19_999)]).toEqual([undefined, undefined, undefined, undefined, undefined]);
    expect([low(10.5, 20_000), low(9.9, 21_000), low(10.2, 22_000), low(10.6, 23_000)]).toEqual(['low', 'critical', 'low', undefined]);
  });

  it('is not judged without limits, and those are asked for again, a few at a time', async () => {
    const voltages = new Voltages();
    const { asked, read } = told(undefined);
    const fleet = of(...[1, 2, 3, 4, 5, 6].map((index) => at(index, 5)), { ...at(7, 5), link: 'lost' });
    await voltages.read(fleet, 0, read);
    await voltages.read(fleet, 1_000, read);
    await voltages.read(fleet, 2_000, read);
    expect(asked).toEqual([1, 2, 3, 4, 5, 6].map(id));
    await voltages.read(fleet, 10_000, read);
    expect(asked).toHaveLength(10);
    expect(voltages.observe(fleet, 60_000).size).toBe(0);
    const known = told(LIMITS);
    await voltages.read(of(at(1, 5)), 20_000, known.read);
    await voltages.read(of(at(1, 5)), 300_000, known.read);
    await voltages.read(of(at(1, 5)), 320_000, known.read);
    expect(known.asked).toHaveLength(2);
  });
});
