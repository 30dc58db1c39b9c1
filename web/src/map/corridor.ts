/**
 * Corridors: the strips along routes in which their aircraft are. Where the corridors of two missions overlap, their aircraft may come
 * nearer to each other than MBCAP's distance of a risk.
 */
import type { FleetMission, GeoPoint, SwarmPlan } from '../api/model';
import { distanceM, RISK_DISTANCE_M } from '../fleet/avoidance';
import { nearDeg } from './longitude';

/** To both sides of a route: two corridors that touch are a risk's distance apart. */
const HALF_WIDTH_M = RISK_DISTANCE_M / 2;
/** Legs that are compared with each other: more take longer than a redraw may. */
const LEGS_MAX = 3_000;
const METRES_PER_DEGREE = 111_195;

/**
 * How far the slots of the swarm that flies a mission are from its middle, metres; 0 of one that flies alone, and once each member has
 * a route of its own.
 */
function spreadM(mission: FleetMission, missions: readonly FleetMission[], plans: readonly SwarmPlan[]): number {
  const plan = plans.find(({ slots }) => slots.length > 1 && slots.some(({ vehicle }) => mission.holders.includes(vehicle)));
  const isOther = (one: FleetMission) => one !== mission && one.waypoints.length > 1 && plan?.slots.some(({ vehicle }) => one.holders.includes(vehicle));
  if (!plan || missions.some(isOther)) return 0;
  const mean = (part: (place: GeoPoint) => number) => plan.slots.reduce((sum, { place }) => sum + part(place), 0) / plan.slots.length;
  const first = plan.slots[0]?.place.longitude_deg ?? 0;
  const longitude_deg = nearDeg(mean((at) => nearDeg(at.longitude_deg, first)), 0);
  const middle = { latitude_deg: mean((at) => at.latitude_deg), longitude_deg, altitude_m: 0 };
  return Math.max(...plan.slots.map(({ place }) => distanceM(middle, place)));
}

interface Leg {
  readonly mission: number;
  /** Of the swarm whose members have it, where there is one. */
  readonly leader: string | undefined;
  readonly index: number;
  readonly halfM: number;
  /** East and north of the first waypoint of all, metres. */
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
  readonly heights: readonly [number, number];
}

/** A strip of this width over these places. */
export interface Strip {
  readonly places: readonly GeoPoint[];
  readonly widthM: number;
}

export interface Corridors {
  readonly strips: readonly Strip[];
  /** Of the legs that another mission's come too near to. */
  readonly crossed: readonly Strip[];
  /** Legs that have a leg of another mission in their corridor. */
  readonly crossings: number;
}

/**
 * `chosen` tells whether a mission is drawn; crossings are those of all. `leaders`, by the id of an aircraft of a swarm: the members of
 * one keep apart by their places, and their routes cross none of each other's.
 */
export function corridorsOf(
  missions: readonly FleetMission[], plans: readonly SwarmPlan[], leaders: ReadonlyMap<string, string>, chosen: (mission: FleetMission) => boolean,
): Corridors {
  const widths = missions.map((mission) => HALF_WIDTH_M + spreadM(mission, missions, plans));
  const found = crossings(legsOf(missions, widths, leaders));
  const [strips, crossed]: [Strip[], Strip[]] = [[], []];
  for (const [number, mission] of missions.entries()) {
    const { waypoints } = mission;
    if (waypoints.length < 2 || !chosen(mission)) continue;
    const widthM = 2 * (widths[number] ?? 0);
    strips.push({ places: waypoints, widthM });
    for (const index of found[number] ?? []) crossed.push({ places: waypoints.slice(index, index + 2), widthM });
  }
  return { strips, crossed, crossings: found.reduce((sum, legs) => sum + legs.size, 0) };
}

function legsOf(missions: readonly FleetMission[], widths: readonly number[], leaders: ReadonlyMap<string, string>): Leg[] {
  const origin = missions.find(({ waypoints }) => waypoints.length > 0)?.waypoints[0];
  if (!origin) return [];
  const across = METRES_PER_DEGREE * Math.cos((origin.latitude_deg * Math.PI) / 180);
  const local = ({ longitude_deg, latitude_deg }: GeoPoint) =>
    [(nearDeg(longitude_deg, origin.longitude_deg) - origin.longitude_deg) * across, (latitude_deg - origin.latitude_deg) * METRES_PER_DEGREE] as const;
  return missions.flatMap(({ waypoints, holders }, mission) => {
    const leader = holders.map((id) => leaders.get(id)).find((id) => id !== undefined);
    return waypoints.slice(1).map((to, index) => {
      const from = waypoints[index] ?? to;
      return { mission, leader, index, halfM: widths[mission] ?? 0, from: local(from), to: local(to), heights: [from.altitude_m, to.altitude_m] as const };
    });
  });
}

/** By mission: the legs that come too near to one of another mission. */
function crossings(legs: readonly Leg[]): Set<number>[] {
  const found: Set<number>[] = [];
  if (legs.length > LEGS_MAX) return found;
  const add = ({ mission, index }: Leg) => (found[mission] ??= new Set()).add(index);
  for (const [number, a] of legs.entries()) {
    for (const b of legs.slice(number + 1)) {
      if (a.mission === b.mission || (a.leader !== undefined && a.leader === b.leader) || !areNear(a, b)) continue;
      add(a);
      add(b);
    }
  }
  // Missions without a crossing have no entry.
  return Array.from(found, (legsOfOne) => legsOfOne ?? new Set<number>());
}

function areNear(a: Leg, b: Leg): boolean {
  const withinM = a.halfM + b.halfM;
  const [lowA, highA, lowB, highB] = [Math.min(...a.heights), Math.max(...a.heights), Math.min(...b.heights), Math.max(...b.heights)];
  if (lowA - highB >= RISK_DISTANCE_M || lowB - highA >= RISK_DISTANCE_M) return false;
  for (const axis of [0, 1] as const) {
    if (Math.min(a.from[axis], a.to[axis]) - Math.max(b.from[axis], b.to[axis]) >= withinM) return false;
    if (Math.min(b.from[axis], b.to[axis]) - Math.max(a.from[axis], a.to[axis]) >= withinM) return false;
  }
  return cross(a, b) || [apartM(a.from, b), apartM(a.to, b), apartM(b.from, a), apartM(b.to, a)].some((m) => m < withinM);
}

type Pair = readonly [number, number];

const side = (a: Pair, b: Pair, c: Pair): number => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));

const cross = (a: Leg, b: Leg): boolean => side(a.from, a.to, b.from) * side(a.from, a.to, b.to) < 0 && side(b.from, b.to, a.from) * side(b.from, b.to, a.to) < 0;

/** From a point to the nearest one of a leg. */
function apartM(point: Pair, { from, to }: Leg): number {
  const [east, north] = [to[0] - from[0], to[1] - from[1]];
  const length2 = east * east + north * north;
  const share = length2 === 0 ? 0 : Math.min(1, Math.max(0, ((point[0] - from[0]) * east + (point[1] - from[1]) * north) / length2));
  return Math.hypot(point[0] - from[0] - share * east, point[1] - from[1] - share * north);
}
