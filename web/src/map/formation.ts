/** The formation from the status of the aircraft that plans it: a ring per slot, and a line from the aircraft that flies there. */
import type { Feature, FeatureCollection } from 'geojson';
import type { GeoPoint, SwarmPlan } from '../api/model';
import type { ById } from '../fleet/avoidance';
import { hasLeft, type Absences } from '../fleet/members';
import type { Aircraft } from '../fleet/state';
import { collection, feature } from './features';
import { slotId } from './symbols';

/** The plans of all swarms whose planner is in contact; nothing that is out of date. */
export function plansOf(fleet: readonly Aircraft[], groundLive: boolean): SwarmPlan[] {
  if (!groundLive) return [];
  return fleet.flatMap(({ fleet: { link, status } }) => {
    const plan = status?.swarm?.plan;
    return plan && plan.slots.length > 0 && link === 'up' ? [plan] : [];
  });
}

/** Every place, for the extent of the map. */
export const placesOf = (plans: readonly SwarmPlan[]): GeoPoint[] => plans.flatMap(({ slots }) => slots.map(({ place }) => place));

const at = ({ longitude_deg, latitude_deg }: GeoPoint): [number, number] => [longitude_deg, latitude_deg];

export interface FormationFeatures {
  readonly collection: FeatureCollection;
  readonly slots: number;
}

export function formationFeatures(
  plans: readonly SwarmPlan[],
  known: ById,
  out: Absences,
  colours: ReadonlyMap<string, number>,
  selected: ReadonlySet<string>,
): FormationFeatures {
  const features: Feature[] = [];
  let drawn = 0;
  for (const { slots, planned } of plans) {
    for (const [slot, { place, vehicle }] of slots.entries()) {
      const aircraft = known.get(vehicle)?.fleet;
      const address = aircraft?.address ?? '';
      const colour = colours.get(address) ?? 0;
      const chosen = selected.has(address);
      const here = aircraft?.status?.navigation?.position;
      // Whom the swarm gave up does not fly there.
      if (here && !hasLeft(out.get(vehicle))) features.push(feature({ type: 'LineString', coordinates: [at(here), at(place)] }, { colour, chosen }));
      features.push(
        feature({ type: 'Point', coordinates: at(place) }, { colour, chosen, slot: slotId(colour, slot, planned) }),
      );
      drawn += 1;
    }
  }
  return { collection: collection(features), slots: drawn };
}
