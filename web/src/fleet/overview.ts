/** The swarm in four figures: the lowest battery, the least separation, the slowest, the time to go. */
import type { FleetMission, GeoPoint } from '../api/model';
import { distanceM } from './avoidance';
import { isFlying } from './conditions';
import { displayName } from './sort';
import type { Aircraft } from './state';

export interface Figure {
  readonly value: number;
  /** Addresses of those that it is about. */
  readonly of: readonly string[];
  readonly name: string;
}

export interface Overview {
  readonly battery: Figure | undefined;
  /** Metres in space between the nearest two that fly. */
  readonly separation: Figure | undefined;
  /** Metres per second; of those on their way to a place. */
  readonly slowest: Figure | undefined;
  /** Seconds until the last has passed its last waypoint at its present speed. */
  readonly toGo: Figure | undefined;
}

/** Slower than this an aircraft hovers, and a time to go from its speed would be none. */
const MOVING_M_S = 0.5;

export function spaceM(a: GeoPoint, b: GeoPoint): number {
  return Math.hypot(distanceM(a, b), a.altitude_m - b.altitude_m);
}

/** What is left of the way: to the next waypoint, and along those after it. */
export function leftM(here: GeoPoint, waypoints: readonly GeoPoint[], reached: number | null | undefined): number {
  const ahead = waypoints.slice(reached == null ? 0 : reached + 1);
  return [here, ...ahead].slice(1).reduce((sum, place, index) => sum + spaceM([here, ...ahead][index] ?? place, place), 0);
}

export function overview(fleet: readonly Aircraft[], missions: readonly FleetMission[]): Overview {
  const live = fleet.filter(({ fleet: { link, status } }) => link === 'up' && status);
  const least = (figures: readonly Figure[]) => figures.reduce<Figure | undefined>((a, b) => (a && a.value <= b.value ? a : b), undefined);
  const figure = (aircraft: Aircraft, value: number): Figure => ({ value, of: [aircraft.fleet.address], name: displayName(aircraft) });
  const flying = live.filter(isFlying);

  let separation: Figure | undefined;
  for (const [index, a] of flying.entries()) {
    const from = a.fleet.status?.navigation?.position;
    for (const b of flying.slice(index + 1)) {
      const to = b.fleet.status?.navigation?.position;
      if (!from || !to) continue;
      const value = spaceM(from, to);
      if (!separation || value < separation.value) {
        separation = { value, of: [a.fleet.address, b.fleet.address], name: `${displayName(a)}, ${displayName(b)}` };
      }
    }
  }
  const byHolder = new Map(missions.flatMap((mission) => mission.holders.map((id) => [id, mission] as const)));
  const moving = flying.filter(({ fleet: { status } }) => status?.phase === 'moving' && (status.navigation?.ground_speed_m_s ?? 0) > MOVING_M_S);
  const times = moving.flatMap((aircraft) => {
    const status = aircraft.fleet.status;
    const waypoints = byHolder.get(status?.id ?? '')?.waypoints;
    if (!status?.navigation || !waypoints || status.mission == null) return [];
    return [figure(aircraft, leftM(status.navigation.position, waypoints, status.mission.reached) / status.navigation.ground_speed_m_s)];
  });
  return {
    battery: least(live.flatMap((one) => {
      const charge = one.fleet.status?.battery?.remaining_percent;
      return charge == null ? [] : [figure(one, charge)];
    })),
    separation,
    slowest: least(moving.map((one) => figure(one, one.fleet.status?.navigation?.ground_speed_m_s ?? 0))),
    toGo: times.reduce<Figure | undefined>((a, b) => (a && a.value >= b.value ? a : b), undefined),
  };
}
