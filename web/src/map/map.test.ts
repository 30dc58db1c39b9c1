import { describe, expect, it } from 'vitest';
import { aircraft, flying, neverSeen, stateOf, status } from '../fleet/samples';
import { aircraftFeatures, extent, missionFeatures } from './features';
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

  it('says how large a cell is, smaller along a parallel', () => {
    expect(cellMetres(0.001, 39.48, 'meridian')).toBe('111 m');
    expect(cellMetres(0.001, 39.48, 'parallel')).toBe('86 m');
    expect(cellMetres(1, 0, 'meridian')).toBe('111 km');
    expect(cellMetres(0.00001, 0, 'meridian')).toBe('1.1 m');
  });
});

describe('features', () => {
  it('draw every aircraft with a position, and a ring and a line for a target', () => {
    const calm = status(2).navigation;
    if (!calm) throw new Error('the sample has a position');
    const target = { latitude_deg: 39.5, longitude_deg: -0.3, altitude_m: 20 };
    const state = stateOf([flying(1), aircraft(2, { navigation: { ...calm, target } }), aircraft(3, { navigation: null }), neverSeen(4)]);
    const { aircraft: drawn, targets } = aircraftFeatures(state.aircraft, new Map(), new Set(['http://10.0.0.1:8080']), 0, true);
    expect(drawn.features.map(({ properties }) => [properties?.['label'], properties?.['selected'], properties?.['symbol']])).toEqual([
      ['label/UAV 1', true, 'aircraft/0/a'],
      ['label/UAV 2', false, 'aircraft/0/'],
    ]);
    expect(targets.features.map(({ geometry }) => geometry.type)).toEqual(['LineString', 'Point']);
  });

  it('mark stale aircraft and lost flight controllers apart', () => {
    const lost = { ...status(2).flight_controller, link: 'lost' as const };
    const state = stateOf([aircraft(1, {}, { link: 'lost' }), aircraft(2, { flight_controller: lost })]);
    const { aircraft: drawn } = aircraftFeatures(state.aircraft, new Map(), new Set(), 0, true);
    expect(drawn.features.map(({ properties }) => [properties?.['symbol'], properties?.['crossed']])).toEqual([
      ['aircraft/0/s', false],
      ['aircraft/0/', true],
    ]);
  });

  it('number waypoints from 1, and draw no line through a single one', () => {
    const waypoint = { latitude_deg: 1, longitude_deg: 2, altitude_m: 0 };
    const one = missionFeatures([{ hash: 'a', name: 'a', holders: [], waypoints: [waypoint] }]);
    expect(one.features.map(({ geometry, properties }) => [geometry.type, properties?.['number']])).toEqual([['Point', 'number/1']]);
    const two = missionFeatures([{ hash: 'a', name: 'a', holders: [], waypoints: [waypoint, waypoint] }]);
    expect(two.features.map(({ geometry }) => geometry.type)).toEqual(['LineString', 'Point', 'Point']);
  });

  it('extent holds aircraft and missions, or is undefined', () => {
    expect(extent([], [])).toBeUndefined();
    const waypoint = { latitude_deg: 40, longitude_deg: 1, altitude_m: 0 };
    expect(extent(stateOf([aircraft(1)]).aircraft, [{ hash: 'a', name: 'a', holders: [], waypoints: [waypoint] }])).toEqual([-0.34, 39.4801, 1, 40]);
  });
});
