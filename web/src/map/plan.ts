/** What is planned and not yet sent, as GeoJSON: routes, waypoints, lanes, the way from each aircraft to its first waypoint, and where two would come near to each other. */
import type { Feature, FeatureCollection } from 'geojson';
import type { PlanPreview } from '../api/model';
import type { ById } from '../fleet/avoidance';
import type { Place } from '../plan/draft';
import type { Drawn, Tool } from '../plan/planner.svelte';
import { collection, feature } from './features';
import { numberId, slotId } from './symbols';

const at = ({ longitude_deg, latitude_deg }: Place): [number, number] => [longitude_deg, latitude_deg];

export interface Planned {
  readonly drawn: readonly Drawn[];
  readonly current: number;
  readonly chosen: number | undefined;
  readonly tool: Tool | undefined;
  readonly sketch: readonly Place[];
  readonly lanes: readonly Place[];
  readonly preview: PlanPreview | undefined;
}

export function planFeatures({ drawn, current, chosen, tool, sketch, lanes, preview }: Planned, known: ById, colours: ReadonlyMap<string, number>): FeatureCollection {
  const features: Feature[] = [];
  const line = (places: readonly Place[], kind: string, stops = false) => {
    if (places.length > 1) features.push(feature({ type: 'LineString', coordinates: places.map(at) }, { kind, stops }));
  };
  for (const [index, { mission: { waypoints } }] of drawn.entries()) {
    line(waypoints, index === current ? 'route' : 'other');
    for (const [number, waypoint] of waypoints.entries()) {
      const here = index === current;
      features.push(feature({ type: 'Point', coordinates: at(waypoint) }, { kind: 'waypoint', here, chosen: here && number === chosen, number: numberId(number) }));
    }
  }
  if (tool === 'area' && sketch.length > 2) features.push(feature({ type: 'Polygon', coordinates: [[...sketch, ...sketch.slice(0, 1)].map(at)] }, { kind: 'area' }));
  line(tool === 'area' ? [...sketch, ...sketch.slice(0, 1)] : sketch, 'sketch');
  for (const corner of sketch) features.push(feature({ type: 'Point', coordinates: at(corner) }, { kind: 'corner', here: true, chosen: false }));
  line(lanes, 'lanes');
  const stops = preview?.problems.some((problem) => problem.stops) ?? false;
  for (const { vehicle, route, distance_m } of preview?.flights ?? []) {
    const place = known.get(vehicle)?.fleet.status?.navigation?.position;
    // A mission that is too far away has no route: then its first waypoint itself.
    const first = route[0] ?? drawn[Math.max(0, preview?.flights.findIndex((flight) => flight.vehicle === vehicle) ?? 0)]?.mission.waypoints[0];
    if (place && first && distance_m != null) line([place, first], 'approach', stops);
  }
  for (const [slot, { place, vehicle }] of (preview?.formation?.slots ?? []).entries()) {
    const colour = colours.get(known.get(vehicle)?.fleet.address ?? '') ?? 0;
    features.push(feature({ type: 'Point', coordinates: at(place) }, { kind: 'slot', slot: slotId(colour, slot, false) }));
  }
  // Above everything else: where two would come near to each other, the nearest pair on top.
  for (const { vehicles, places, apart_m, after_s } of (preview?.conflicts ?? []).toReversed()) {
    line(places, 'conflict');
    for (const place of places) features.push(feature({ type: 'Point', coordinates: at(place) }, { kind: 'conflict', vehicles: vehicles.join(), apart_m, after_s }));
  }
  return collection(features);
}

/** Everything that is planned, for the extent of the map. */
export const plannedPlaces = ({ drawn, preview }: Pick<Planned, 'drawn' | 'preview'>): Place[] => [
  ...drawn.flatMap(({ mission }) => mission.waypoints), ...(preview?.formation?.slots.map(({ place }) => place) ?? []),
];
