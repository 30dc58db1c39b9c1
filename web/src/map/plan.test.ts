import { describe, expect, it } from 'vitest';
import type { PlanPreview } from '../api/model';
import { byId } from '../fleet/avoidance';
import { aircraft, stateOf, status } from '../fleet/samples';
import { planFeatures, plannedPlaces, type Planned } from './plan';

const at = (north: number) => ({ latitude_deg: 39.48 + north / 111_195, longitude_deg: -0.34, height_m: 20 });
const known = byId(stateOf([aircraft(1), aircraft(2)]).aircraft);
const drawn = (...places: number[]) => ({ mission: { name: 'm', waypoints: places.map(at) }, notes: [] });
const planned = (change: Partial<Planned>): Planned => ({ drawn: [], current: 0, chosen: undefined, tool: undefined, sketch: [], lanes: [], preview: undefined, ...change });
const kinds = (change: Partial<Planned>) => planFeatures(planned(change), known, new Map()).features.map(({ properties }) => properties?.['kind'] as string);

describe('what is planned, on the map', () => {
  it('is a route with its waypoints; of several the edited one stands out', () => {
    expect(kinds({ drawn: [drawn(0, 50), drawn(100, 150)], current: 1 })).toEqual(['other', 'waypoint', 'waypoint', 'route', 'waypoint', 'waypoint']);
    const { features } = planFeatures(planned({ drawn: [drawn(0, 50)], chosen: 1 }), known, new Map());
    expect(features.filter(({ properties }) => properties?.['chosen']).length).toBe(1);
    expect(kinds({ drawn: [drawn(0)] })).toEqual(['waypoint']);
  });

  it('has a red line from the aircraft where it must not be sent, also where there is no route', () => {
    const preview: PlanPreview = { problems: [{ stops: true, text: 'far' }], notes: [], flights: [{ vehicle: status(2).id, route: [], distance_m: 113_000 }] };
    const { features } = planFeatures(planned({ drawn: [drawn(113_000, 113_100)], preview }), known, new Map());
    const line = features.find(({ properties }) => properties?.['kind'] === 'approach');
    expect(line?.properties?.['stops']).toBe(true);
    expect(line?.geometry).toMatchObject({ type: 'LineString', coordinates: [[-0.34, status(2).navigation?.position.latitude_deg], [-0.34, at(113_000).latitude_deg]] });
  });

  it('shows the formation, and counts it to what is to be seen', () => {
    const place = { ...at(10), altitude_m: 40 };
    const preview: PlanPreview = { problems: [], notes: [], flights: [], formation: { name: 'linear', heading_deg: 0, slots: [{ place, vehicle: status(1).id }] } };
    expect(kinds({ preview })).toEqual(['slot']);
    expect(plannedPlaces({ drawn: [drawn(0, 50)], preview }).length).toBe(3);
  });

  it('marks where two would come near to each other, the nearest pair on top', () => {
    const pair = (north: number, apart_m: number) => ({ vehicles: [status(1).id, status(2).id], places: [north, north + apart_m].map((n) => ({ ...at(n), altitude_m: 40 })), apart_m, after_s: 12 });
    const preview: PlanPreview = { problems: [], notes: [], flights: [], conflicts: [pair(0, 4), pair(50, 15)] };
    const { features } = planFeatures(planned({ preview }), known, new Map());
    const marks = features.filter(({ properties }) => properties?.['kind'] === 'conflict');
    expect(marks.map(({ geometry, properties }) => [geometry.type, properties?.['apart_m']])).toEqual([
      ['LineString', undefined], ['Point', 15], ['Point', 15], ['LineString', undefined], ['Point', 4], ['Point', 4],
    ]);
    expect(marks.at(-1)?.geometry).toMatchObject({ coordinates: [-0.34, at(4).latitude_deg] });
  });

  it('shows the sketch of an area closed, and its lanes', () => {
    expect(kinds({ tool: 'area', sketch: [at(0), at(10), at(20)], lanes: [at(1), at(2)] })).toEqual(['area', 'sketch', 'corner', 'corner', 'corner', 'lanes']);
    expect(kinds({ tool: 'line', sketch: [at(0)] })).toEqual(['corner']);
  });
});
