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
  /** Seconds until the last has passed its last waypoint, at its mean progress of the last minute. */
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

/** The time over which progress is averaged, milliseconds: longer than a stop at a waypoint. */
const PROGRESS_MS = 60_000;
/** The shortest time from which a rate is taken, milliseconds. */
const PROGRESS_LEAST_MS = 10_000;

/**
 * The progress of each aircraft along its mission over the last minute. A ground speed alone would give no time at a waypoint
 * and too short a one on a leg.
 */
export class Progress {
  readonly #samples = new Map<string, readonly { readonly atMs: number; readonly leftM: number }[]>();

  /** Takes the way that is left, in metres; returns the seconds to go, or undefined while the progress is not known. */
  observe(address: string, leftM: number, nowMs: number): number | undefined {
    // A way that grows is another mission's.
    const before = (this.#samples.get(address) ?? []).filter((one) => nowMs - one.atMs <= PROGRESS_MS && one.leftM >= leftM - 1);
    this.#samples.set(address, [...before, { atMs: nowMs, leftM }]);
    const [first] = before;
    if (!first || nowMs - first.atMs < PROGRESS_LEAST_MS) return undefined;
    const rate = ((first.leftM - leftM) / (nowMs - first.atMs)) * 1000;
    return rate > MOVING_M_S / 10 ? leftM / rate : undefined;
  }

  /** Forgets all aircraft that are not among these. */
  keep(addresses: ReadonlySet<string>): void {
    for (const address of this.#samples.keys()) if (!addresses.has(address)) this.#samples.delete(address);
  }
}

/** Whether the values of an aircraft are those of now: it answers, and its flight controller sends. */
const isFresh = ({ fleet: { link, status } }: Aircraft): boolean =>
  link === 'up' && status != null && status.flight_controller.link === 'up';

export function overview(
  fleet: readonly Aircraft[],
  missions: readonly FleetMission[],
  progress = new Progress(),
  nowMs = 0,
): Overview {
  const live = fleet.filter(isFresh);
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
  const underWay = flying.filter(({ fleet: { status } }) => status?.phase === 'moving' || status?.phase === 'waiting');
  const moving = underWay.filter(({ fleet: { status } }) => status?.phase === 'moving' && (status.navigation?.ground_speed_m_s ?? 0) > MOVING_M_S);
  progress.keep(new Set(underWay.map((one) => one.fleet.address)));
  const times = underWay.flatMap((aircraft) => {
    const status = aircraft.fleet.status;
    const waypoints = byHolder.get(status?.id ?? '')?.waypoints;
    if (!status?.navigation || !waypoints || status.mission == null) return [];
    const left = leftM(status.navigation.position, waypoints, status.mission.reached);
    const seconds = progress.observe(aircraft.fleet.address, left, nowMs);
    return seconds === undefined ? [] : [figure(aircraft, seconds)];
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
