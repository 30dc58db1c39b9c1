/** What aircraft do to avoid one another, as GeoJSON: true-scale circles, the risk, the position aside, the pairs in conflict. */
import type { Feature, FeatureCollection } from 'geojson';
import type { GeoPoint } from '../api/model';
import { avoidanceOf, byId, inConflict, RISK_DISTANCE_M, thinned } from '../fleet/avoidance';
import type { Aircraft } from '../fleet/state';
import { circle, collection, feature } from './features';
import { asideId, RISK_ID } from './symbols';

/** Whose places are drawn: of those selected or in conflict, or of all. */
export type Shown = 'some' | 'all';

/** Neighbouring circles overlap by half for selected aircraft, and stand apart for the others. */
const NEAR_EVERY_M = RISK_DISTANCE_M;
const FAR_EVERY_M = 3 * RISK_DISTANCE_M;
const at = ({ longitude_deg, latitude_deg }: GeoPoint): [number, number] => [longitude_deg, latitude_deg];

export interface AvoidanceFeatures {
  readonly collection: FeatureCollection;
  /** Circles drawn, and pairs in conflict. */
  readonly circles: number;
  readonly conflicts: number;
}

export function avoidanceFeatures(
  fleet: readonly Aircraft[],
  colours: ReadonlyMap<string, number>,
  selected: ReadonlySet<string>,
  shown: Shown,
  groundLive: boolean,
): AvoidanceFeatures {
  const known = byId(fleet);
  const features: Feature[] = [];
  const pairs = new Set<string>();
  let circles = 0;
  for (const { fleet: aircraft } of fleet) {
    const { status, address } = aircraft;
    const avoidance = avoidanceOf(status);
    // A prediction of an aircraft out of contact is out of date.
    if (!status || !avoidance || aircraft.link !== 'up' || !groundLive) continue;
    const chosen = selected.has(address);
    const conflict = inConflict(status);
    const colour = colours.get(address) ?? 0;
    const here = status.navigation?.position;
    if (chosen || conflict || shown === 'all') {
      const near = chosen || conflict;
      const places = thinned(avoidance.predicted, near ? NEAR_EVERY_M : FAR_EVERY_M);
      circles += places.length;
      features.push(
        ...places.map((place) =>
          feature({ type: 'Polygon', coordinates: [circle(place, RISK_DISTANCE_M)] }, { kind: 'place', colour, near }),
        ),
      );
      if (avoidance.predicted.length > 1) {
        features.push(feature({ type: 'LineString', coordinates: avoidance.predicted.map(at) }, { kind: 'way', colour, near }));
      }
    }
    if (!conflict) continue;
    if (avoidance.aside) {
      if (here) features.push(feature({ type: 'LineString', coordinates: [at(here), at(avoidance.aside)] }, { kind: 'aside-way', colour }));
      features.push(feature({ type: 'Point', coordinates: at(avoidance.aside) }, { kind: 'mark', symbol: asideId(colour) }));
    }
    if (avoidance.risk) features.push(feature({ type: 'Point', coordinates: at(avoidance.risk) }, { kind: 'mark', symbol: RISK_ID }));
    if (avoidance.avoiding == null) continue;
    const pair = [status.id, avoidance.avoiding].toSorted().join();
    if (pairs.has(pair)) continue;
    pairs.add(pair);
    const there = known.get(avoidance.avoiding)?.fleet.status?.navigation?.position;
    if (here && there) features.push(feature({ type: 'LineString', coordinates: [at(here), at(there)] }, { kind: 'pair' }));
  }
  return { collection: collection(features), circles, conflicts: pairs.size };
}
