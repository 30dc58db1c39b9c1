/** Fences and rally points as GeoJSON: those that the aircraft hold, and the one that is drawn. */
import type { Feature, FeatureCollection } from 'geojson';
import type { FenceArea, FleetRegions, RallyPoint } from '../api/model';
import type { Place } from '../plan/draft';
import { circle, collection, feature } from './features';

interface Shown {
  readonly areas: readonly FenceArea[];
  readonly rally: readonly RallyPoint[];
  readonly corners: readonly Place[] | undefined;
  readonly held: FleetRegions | undefined;
  /** What can be moved. */
  readonly grips: readonly Place[];
}

const at = ({ longitude_deg, latitude_deg }: Place): [number, number] => [longitude_deg, latitude_deg];

function ring(area: FenceArea): [number, number][] {
  if (area.shape === 'circle') return circle({ ...area.centre, altitude_m: 0 }, area.radius_m);
  return [...area.corners, ...area.corners.slice(0, 1)].map(at);
}

export function regionFeatures({ areas, rally, corners, held, grips }: Shown): FeatureCollection {
  const features: Feature[] = [];
  const add = (area: FenceArea, drawn: boolean) => {
    features.push(feature({ type: 'Polygon', coordinates: [ring(area)] }, { kind: area.inclusion ? 'inclusion' : 'exclusion', drawn }));
  };
  const point = (one: RallyPoint, drawn: boolean) => {
    features.push(feature({ type: 'Point', coordinates: at(one) }, { kind: 'rally', drawn }));
  };
  // A hundred aircraft hold one fence: it is drawn once.
  const seen = new Set<string>();
  for (const { state } of held?.vehicles ?? []) {
    const key = JSON.stringify([state?.fence, state?.rally]);
    if (seen.has(key)) continue;
    seen.add(key);
    for (const area of state?.fence ?? []) add(area, false);
    for (const one of state?.rally ?? []) point(one, false);
  }
  for (const area of areas) add(area, true);
  for (const one of rally) point(one, true);
  if (corners !== undefined && corners.length > 1) {
    features.push(feature({ type: 'LineString', coordinates: corners.map(at) }, { kind: 'sketch', drawn: true }));
  }
  for (const grip of grips) features.push(feature({ type: 'Point', coordinates: at(grip) }, { kind: 'corner', drawn: true }));
  return collection(features);
}
