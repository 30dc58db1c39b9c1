import { describe, expect, it } from 'vitest';
import type { FleetAircraft } from '../api/model';
import { aircraft, flying, stateOf } from './samples';
import { windOf, windText } from './wind';

const windy = (one: FleetAircraft, speed_m_s: number, from_deg: number): FleetAircraft => (one.status ? { ...one, status: { ...one.status, wind: { speed_m_s, from_deg } } } : one);
const of = (list: FleetAircraft[], selected?: ReadonlySet<string>) => windOf(stateOf(list).aircraft, selected);

describe('the wind', () => {
  it('is the mean of the vectors, across north too', () => {
    const wind = of([windy(flying(1), 4, 350), windy(flying(2), 4, 10)]);
    expect(wind?.fromDeg).toBeOneOf([expect.closeTo(0, 6), expect.closeTo(360, 6)]);
    expect(wind?.speedM_s).toBeCloseTo(4 * Math.cos(Math.PI / 18), 6);
    expect(wind && windText({ ...wind, fromDeg: 0 })).toBe('3.9\u202fm/s from 000°');
  });

  it('says how far the estimates differ, and no direction of a calm', () => {
    const text = (...list: FleetAircraft[]) => windText(of(list) ?? { speedM_s: NaN, fromDeg: NaN, leastM_s: NaN, mostM_s: NaN, aircraft: 0 });
    expect(text(windy(flying(1), 2, 90), windy(flying(2), 4, 90))).toBe('3.0\u202fm/s from 090°, of 2 aircraft 2.0 to 4.0\u202fm/s');
    expect(text(windy(flying(1), 0, 90), windy(flying(2), 0.01, 200))).toBe('0.0\u202fm/s calm');
  });

  it('is of those that fly, and of the selection where that reports it', () => {
    const list = [windy(flying(1), 5, 90), windy(flying(2), 3, 90), windy(aircraft(3), 20, 270), flying(4)];
    expect(of(list)?.speedM_s).toBeCloseTo(4, 6);
    expect(of(list, new Set([list[1]?.address ?? '']))?.speedM_s).toBeCloseTo(3, 6);
    // The fourth reports none: then it is that of all.
    expect(of(list, new Set([list[3]?.address ?? '']))?.aircraft).toBe(2);
    expect(of([windy(aircraft(3), 2, 270)])?.speedM_s).toBeCloseTo(2, 6);
  });

  it('is not known of aircraft that do not report it, or are out of contact', () => {
    expect(of([flying(1), aircraft(2)])).toBeUndefined();
    expect(of([{ ...windy(flying(1), 5, 90), link: 'lost' }])).toBeUndefined();
    expect(of([])).toBeUndefined();
  });
});
