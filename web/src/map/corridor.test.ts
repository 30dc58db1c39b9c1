import { describe, expect, it } from 'vitest';
import type { FleetMission, GeoPoint, SwarmPlan } from '../api/model';
import { corridorsOf } from './corridor';
import { pixels } from './corridor-canvas';

const LATITUDE = 39.48;
const ACROSS = 111_195 * Math.cos((LATITUDE * Math.PI) / 180);
const at = (eastM: number, northM: number, altitude_m = 20): GeoPoint => ({ latitude_deg: LATITUDE + northM / 111_195, longitude_deg: -0.34 + eastM / ACROSS, altitude_m });
const mission = (hash: string, waypoints: GeoPoint[], holders = [hash]): FleetMission => ({ hash, name: hash, waypoints, holders });
const all = () => true;
const ALONE = new Map<string, string>();

/** Legs that are drawn as crossings, by mission. */
const crossings = (...missions: FleetMission[]) => corridorsOf(missions, [], ALONE, all).crossings;

describe('corridors', () => {
  const east = mission('a', [at(0, 0), at(200, 0), at(400, 0)]);

  it('are 20 m wide, twice as many pixels at each closer zoom', () => {
    const { strips } = corridorsOf([east], [], ALONE, all);
    expect(strips).toEqual([{ places: east.waypoints, widthM: 20 }]);
    // At zoom 17 a pixel is 0.597 m on the equator.
    expect(pixels(20, 0, 17)).toBeCloseTo(33.5, 1);
    expect(pixels(20, 60, 18)).toBeCloseTo(4 * pixels(20, 0, 17), 6);
  });

  it('are wider by the formation that flies there', () => {
    const slots = [at(-30, 0), at(0, 0), at(30, 0)].map((place, index) => ({ place, vehicle: index === 1 ? 'a' : `f${index}` }));
    const plan = { planned: true, slots } as unknown as SwarmPlan;
    expect(corridorsOf([east], [plan], ALONE, all).strips[0]?.widthM).toBeCloseTo(80, 3);
    expect(corridorsOf([mission('b', east.waypoints)], [plan], ALONE, all).strips[0]?.widthM).toBe(20);
  });

  it('are those of each member once the swarm is set up, and cross none of each other', () => {
    const slots = [0, 15].map((north, index) => ({ place: at(0, north), vehicle: 'ab'[index] ?? '' }));
    const plan = { planned: true, slots } as unknown as SwarmPlan;
    const routes = [east, mission('b', [at(0, 15), at(200, 15)])];
    const leaders = new Map([['a', 'a'], ['b', 'a'], ['c', 'c']]);
    const { strips, crossings: found } = corridorsOf(routes, [plan], leaders, all);
    expect([found, strips.map(({ widthM }) => widthM)]).toEqual([0, [20, 20]]);
    // Another swarm's do.
    expect(corridorsOf([...routes, mission('c', [at(50, 5), at(50, 90)])], [plan], leaders, all).crossings).toBe(3);
  });

  it('mark the legs of two missions that cross, or come within 20 m of each other', () => {
    expect(crossings(east, mission('b', [at(100, -50), at(100, 50)]))).toBe(2);
    expect(crossings(east, mission('b', [at(50, 19), at(150, 19)]))).toBe(2);
    expect(crossings(east, mission('b', [at(200, 15), at(200, 60)])), 'both legs of the first are near').toBe(3);
    expect(crossings(east, mission('b', [at(50, 21), at(350, 21)]))).toBe(0);
  });

  it('mark none of one mission, none far above, and none of a mission without legs', () => {
    expect(crossings(mission('a', [at(0, 0), at(100, 0), at(50, 50), at(50, -50)]))).toBe(0);
    expect(crossings(east, mission('b', [at(100, -50, 40), at(100, 50, 45)]))).toBe(0);
    expect(crossings(east, mission('b', [at(100, -50, 39), at(100, 50, 45)])), 'less than 20 m above').toBe(2);
    expect(crossings(east, mission('b', [at(100, 0)]), mission('c', []))).toBe(0);
  });

  it('draw those that are chosen, with the crossings of those that are not', () => {
    const other = mission('b', [at(100, -50), at(100, 50)]);
    const { strips, crossed, crossings: found } = corridorsOf([east, other], [], ALONE, ({ hash }) => hash === 'b');
    expect([found, strips.length, crossed]).toEqual([2, 1, [{ places: other.waypoints, widthM: 20 }]]);
  });
});
