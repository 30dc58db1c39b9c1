import { describe, expect, it } from 'vitest';
import { distanceM, RISK_DISTANCE_M } from '../fleet/avoidance';
import { aircraft, avoiding, flying, neverSeen, stateOf, status } from '../fleet/samples';
import { conditionsOf } from '../fleet/conditions';
import { Homes } from '../fleet/homes';
import type { FleetState } from '../fleet/state';
import { circle, extent, missionFeatures, siteFeatures } from './features';
import { avoidanceFeatures } from './avoidance';
import { marksOf, Motion, type Looks } from './marks';
import { nearest } from './overlay';
import { cellMetres, decimals, latitudeLabel, lines, longitudeLabel, spacingDeg } from './graticule';

describe('the graticule', () => {
  it('steps in 1, 2, 5 and never closer than asked', () => {
    for (let degPerPx = 1e-8; degPerPx < 0.5; degPerPx *= 1.37) {
      const spacing = spacingDeg(degPerPx, 90);
      expect(spacing / degPerPx).toBeGreaterThanOrEqual(Math.min(90, 50 / degPerPx) * 0.999);
      expect(spacing / degPerPx).toBeLessThanOrEqual(Math.max(90 * 2.5, 2e-7 / degPerPx) * 1.001);
      expect(Number(String(spacing).replace(/^0\.0*|e.*$|0+$|\./g, '').charAt(0))).toBeOneOf([1, 2, 5]);
    }
  });

  it('has lines at the multiples, without rounding dust', () => {
    expect(lines(-0.3478, -0.3449, 0.001)).toEqual([-0.347, -0.346, -0.345]);
    expect(lines(39.4818, 39.4831, 0.0005)).toEqual([39.482, 39.4825, 39.483]);
    expect(lines(1, 1.5, 2)).toEqual([]);
  });

  it('is bounded whatever the view', () => {
    expect(lines(-180, 180, 1e-6)).toHaveLength(200);
  });

  it('labels carry the hemisphere and just enough decimals', () => {
    expect([1, 0.5, 0.002, 20].map(decimals)).toEqual([0, 1, 3, 0]);
    expect(latitudeLabel(-39.482, 0.001)).toBe('39.482°S');
    expect(longitudeLabel(-0.3465, 0.0005)).toBe('0.3465°W');
    expect(longitudeLabel(181, 1)).toBe('179°W');
  });

  it('gives the size of a cell, smaller along a parallel', () => {
    expect(cellMetres(0.001, 39.48, 'meridian')).toBe('111 m');
    expect(cellMetres(0.001, 39.48, 'parallel')).toBe('86 m');
    expect(cellMetres(1, 0, 'meridian')).toBe('111 km');
    expect(cellMetres(0.00001, 0, 'meridian')).toBe('1.1 m');
  });
});

function marks(state: FleetState, change: Partial<Looks> = {}) {
  const around = { known: new Map(), absences: new Map(), held: new Map(), nowMs: 0, groundLive: true };
  const conditions = new Map(state.aircraft.map((one) => [one.fleet.address, conditionsOf(one, around)]));
  const looks: Looks = { absences: new Map(), colours: new Map(), numbers: new Map(), conditions, selected: new Set(), nowMs: 0, groundLive: true, ...change };
  return marksOf(state.aircraft, looks);
}

describe('aircraft on the map', () => {
  const target = { latitude_deg: 39.5, longitude_deg: -0.3, altitude_m: 20 };

  it('are drawn where they have a position, with a target where they have one', () => {
    const calm = status(2).navigation;
    if (!calm) throw new Error('the sample has a position');
    const state = stateOf([flying(1), aircraft(2, { navigation: { ...calm, target } }), aircraft(3, { navigation: null }), neverSeen(4)]);
    const drawn = marks(state, { selected: new Set(['http://10.0.0.1:8080']) });
    expect(drawn.map(({ label, selected, armed, target }) => [label, selected, armed, target])).toEqual([
      ['UAV 1 20.0\u202fm', true, true, undefined],
      ['', false, false, target],
    ]);
  });

  it('show stale aircraft and lost flight controllers apart', () => {
    const lost = { ...status(2).flight_controller, link: 'lost' as const };
    const drawn = marks(stateOf([aircraft(1, {}, { link: 'lost' }), aircraft(2, { flight_controller: lost })]));
    expect(drawn.map(({ stale, crossed, level }) => [stale, crossed, level])).toEqual([[true, false, 'caution'], [false, true, 'alarm']]);
  });

  const places = (motion: Motion, nowMs: number) => [...motion.now(nowMs)].map(([, { longitude_deg }, heading]) => [longitude_deg, heading]);
  const moved = (longitude_deg: number, heading_deg: number, latitude_deg = 39.48) => {
    const calm = status(1).navigation;
    if (!calm) throw new Error('the sample has a position');
    return marks(stateOf([aircraft(1, { navigation: { ...calm, heading_deg, position: { ...calm.position, longitude_deg, latitude_deg } } })]));
  };

  it('move from update to update, and turn the short way', () => {
    const motion = new Motion();
    motion.set(moved(0, 350), 0);
    expect(places(motion, 50)).toEqual([[0, 350]]);
    motion.set(moved(0.0001, 10), 200);
    expect(motion.moving(300)).toBe(true);
    expect(places(motion, 300)).toEqual([[0.00005, 0]]);
    expect(places(motion, 400)).toEqual([[0.0001, 10]]);
    expect(motion.moving(400)).toBe(false);
  });

  it('jump where they are found elsewhere', () => {
    const motion = new Motion();
    motion.set(moved(0, 0), 0);
    motion.set(moved(0, 0, 39.6), 200);
    expect(motion.moving(201)).toBe(false);
  });

  it('are found by the nearest', () => {
    const drawn = [{ address: 'a', x: 10, y: 10 }, { address: 'b', x: 18, y: 10 }];
    expect(nearest(drawn, { x: 15, y: 10 }, 20)).toBe('b');
    expect(nearest(drawn, { x: 100, y: 10 }, 20)).toBeUndefined();
  });
});

describe('features', () => {
  it('homes are where aircraft stood before they were armed, each place once', () => {
    const homes = new Homes();
    homes.add(stateOf([aircraft(1), flying(2)]).aircraft);
    const state = stateOf([flying(1), flying(2)]);
    homes.add(state.aircraft);
    const drawn = siteFeatures(state.aircraft, homes, { address: 'http://10.0.0.1:8080', radiusM: 100 });
    expect(drawn.features.map(({ properties }) => properties?.['kind'] as string)).toEqual(['home', 'fence']);
    expect(siteFeatures(state.aircraft, homes, { address: 'http://10.0.0.2:8080', radiusM: 100 }).features).toHaveLength(1);
  });

  it('number waypoints from 1, and draw no line through a single one', () => {
    const waypoint = { latitude_deg: 1, longitude_deg: 2, altitude_m: 0 };
    const one = missionFeatures([{ hash: 'a', name: 'a', holders: [], waypoints: [waypoint] }], new Set());
    expect(one.features.map(({ geometry, properties }) => [geometry.type, properties?.['number']])).toEqual([['Point', 'number/1']]);
    const two = missionFeatures([{ hash: 'a', name: 'a', holders: [], waypoints: [waypoint, waypoint] }], new Set());
    expect(two.features.map(({ geometry }) => geometry.type)).toEqual(['LineString', 'Point', 'Point']);
  });

  it('extent holds aircraft and missions, or is undefined', () => {
    expect(extent([], [])).toBeUndefined();
    const waypoint = { latitude_deg: 40, longitude_deg: 1, altitude_m: 0 };
    expect(extent(stateOf([aircraft(1)]).aircraft, [{ hash: 'a', name: 'a', holders: [], waypoints: [waypoint] }])).toEqual([-0.34, 39.4801, 1, 40]);
  });
});

describe('avoidance on the map', () => {
  const place = (northM: number) => ({ latitude_deg: 39.48 + northM / 111_195, longitude_deg: -0.34, altitude_m: 20 });
  const none = new Set<string>();
  const kinds = (features: ReturnType<typeof avoidanceFeatures>) => features.collection.features.map(({ properties }) => properties?.['kind'] as string);
  const two = [
    avoiding(1, { state: 'MovingAside', avoiding: status(2).id, risk: place(0), aside: place(30) }, 3, 25),
    avoiding(2, { state: 'StandStill', avoiding: status(1).id, risk: place(0) }, 3, 25),
  ];

  it('draws circles of true size', () => {
    const centre = { latitude_deg: 60, longitude_deg: 5, altitude_m: 0 };
    for (const [longitude_deg, latitude_deg] of circle(centre, RISK_DISTANCE_M)) {
      expect(distanceM(centre, { longitude_deg, latitude_deg, altitude_m: 0 })).toBeCloseTo(RISK_DISTANCE_M, 2);
    }
  });

  it('draws an aircraft in conflict with positions, risk, position aside, and one line for the pair', () => {
    const features = avoidanceFeatures(stateOf(two).aircraft, new Map(), none, 'some', true);
    expect(features).toMatchObject({ circles: 6, conflicts: 1 });
    expect(kinds(features).toSorted()).toEqual(
      ['place', 'place', 'place', 'place', 'place', 'place', 'way', 'way', 'aside-way', 'mark', 'mark', 'mark', 'pair'].toSorted(),
    );
  });

  it('marks aircraft in conflict at any scale', () => {
    expect(marks(stateOf([...two, avoiding(3)])).map(({ conflict }) => conflict)).toEqual([true, true, false]);
  });

  it('draws others when they are selected, or all', () => {
    const calm = stateOf([avoiding(1), avoiding(2)]).aircraft;
    const draw = (selected: ReadonlySet<string>, shown: 'some' | 'all') => avoidanceFeatures(calm, new Map(), selected, shown, true).circles;
    expect([draw(none, 'some'), draw(new Set(['http://10.0.0.2:8080']), 'some'), draw(none, 'all')]).toEqual([0, 2, 4]);
  });

  it('predicts nothing for an aircraft out of contact, on the ground, or when the service is gone', () => {
    const [one] = two;
    if (!one?.status) throw new Error('the sample has a status');
    const draw = (change: object, live: boolean) =>
      avoidanceFeatures(stateOf([{ ...one, ...change }]).aircraft, new Map(), none, 'all', live).collection.features.length;
    expect(draw({}, true)).toBeGreaterThan(0);
    expect(draw({ link: 'lost' }, true)).toBe(0);
    expect(draw({ status: { ...one.status, phase: 'finished' } }, true)).toBe(0);
    expect(draw({}, false)).toBe(0);
  });

  it('stays small with 100 aircraft that report 59 positions each', () => {
    const many = stateOf(Array.from({ length: 100 }, (_, index) => avoiding(index + 1, {}, 59, 5))).aircraft;
    const { circles } = avoidanceFeatures(many, new Map(), none, 'all', true);
    expect(circles).toBeGreaterThan(300);
    expect(circles).toBeLessThanOrEqual(700);
  });

  it('draws many missions only for selected aircraft', () => {
    const waypoint = { latitude_deg: 1, longitude_deg: 2, altitude_m: 0 };
    const missions = Array.from({ length: 13 }, (_, index) => ({
      hash: String(index), name: 'a', holders: [status(index + 1).id], waypoints: [waypoint, waypoint],
    }));
    const drawn = (count: number, selected: ReadonlySet<string>) => missionFeatures(missions.slice(0, count), selected).features.length;
    expect([drawn(12, none), drawn(13, none), drawn(13, new Set([status(3).id]))]).toEqual([36, 0, 3]);
  });
});
