/**
 * Whom an aircraft avoids and what it does about it, in the words of MBCAP; and what of that the map draws
 * when there are many.
 */
import type { Actions, AircraftStatus, Avoidance, Checklist, GeoPoint, Phase } from '../api/model';
import { nearDeg } from '../map/longitude';
import { missingText } from './checklist';
import { displayName } from './sort';
import type { Aircraft } from './state';

/** Two predicted places nearer than this, at the same time, are a risk: the radius of a circle on the map. */
export const RISK_DISTANCE_M = 20;

/** On the ground nothing is predicted; the last status is of the flight before. */
const GROUNDED: readonly Phase[] = ['start', 'ready', 'finished'];

/** The avoidance in the aircraft's last status; absent on the ground and under other protocols. */
export function avoidanceOf(status: AircraftStatus | null | undefined): Avoidance | undefined {
  if (!status?.avoidance || GROUNDED.includes(status.phase)) return undefined;
  return status.avoidance;
}

export function inConflict(status: AircraftStatus | null | undefined): boolean {
  const avoidance = avoidanceOf(status);
  return avoidance !== undefined && (avoidance.avoiding != null || avoidance.state !== 'Normal');
}

/** Whether the aircraft flies a mission of its own, with no place in a swarm. */
export const isAlone = (status: AircraftStatus): boolean => status.swarm == null;

/** Whether every aircraft with a status does: then one can be set up and started without the others. */
export function everyoneAlone(fleet: readonly Aircraft[]): boolean {
  const withStatus = fleet.flatMap(({ fleet: { status } }) => (status ? [status] : []));
  return withStatus.length > 0 && withStatus.every(isAlone);
}

/** What the selected aircraft wait for, each flying for itself. Who is past it already is not asked again. */
export function readyAlone(fleet: readonly Aircraft[], selected: ReadonlySet<string>, checklist?: Checklist): Actions {
  const chosen = fleet.filter(({ fleet: { address, status } }) => status && selected.has(address));
  const phases = chosen.map(({ fleet: { status } }) => status?.phase);
  const waits = phases.includes('start');
  const inPhase = (phase: string) => chosen.flatMap((one) => (one.fleet.status?.phase === phase ? [{ id: one.fleet.status.id, name: displayName(one) }] : []));
  const setupMissing = missingText(checklist, 'setup', inPhase('start'));
  const setup = waits && setupMissing === '';
  const unready = chosen.find(({ fleet: { status } }) => status?.phase === 'start' || status?.phase === 'preparing');
  const startMissing = missingText(checklist, 'start', inPhase('ready'));
  const start = phases.includes('ready') && unready === undefined && startMissing === '';
  return {
    setup,
    setup_blocked: setup ? '' : waits ? setupMissing : 'Nobody selected waits for setup.',
    start,
    start_blocked: start ? '' : unready ? `${displayName(unready)} is not set up.` : phases.includes('ready') ? startMissing : 'Nobody selected waits for the start.',
  };
}

export type ById = ReadonlyMap<string, Aircraft>;

export function byId(fleet: readonly Aircraft[]): ById {
  return new Map(fleet.flatMap((aircraft) => (aircraft.fleet.status ? [[aircraft.fleet.status.id, aircraft] as const] : [])));
}

/** A name for an id: of one that this ground service does not follow, the end of the id. */
export function nameOf(id: string, known: ById): string {
  const aircraft = known.get(id);
  return aircraft ? displayName(aircraft) : `…${id.slice(-4)}`;
}

/** A sentence of an aircraft's with the names of those that are known in place of their ids. */
export const withNames = (text: string, known: ById): string =>
  text.replace(/\b[0-9a-f]{16}\b/g, (id) => (known.has(id) ? nameOf(id, known) : id));

const MEANINGS: Readonly<Record<string, string>> = {
  Normal: 'flies its mission',
  StandStill: 'has stopped, until it is its turn',
  MovingAside: 'gives way: flies to a place aside',
  GoOnPlease: 'gives way: waits until the other has passed',
  Overtaking: 'passes, on its mission',
  EmergencyLand: 'lands where it is: the conflict could not be solved',
};

/** What a state of the protocol means for the aircraft; empty for states of other protocols. */
export const meaning = (state: string): string => MEANINGS[state] ?? '';

const METRES_PER_DEGREE = 111_195;

/** Over ground; good to a centimetre at the distances of a conflict. */
export function distanceM(a: GeoPoint, b: GeoPoint): number {
  const north = (b.latitude_deg - a.latitude_deg) * METRES_PER_DEGREE;
  const east = (nearDeg(b.longitude_deg, a.longitude_deg) - a.longitude_deg) * METRES_PER_DEGREE * Math.cos((a.latitude_deg * Math.PI) / 180);
  return Math.hypot(north, east);
}

/** Length of the line through the predicted positions. */
export function lengthM(places: readonly GeoPoint[]): number {
  return places.slice(1).reduce((sum, place, index) => sum + distanceM(places[index] ?? place, place), 0);
}

/**
 * The places that get a circle: the first, the last, and between them no two nearer than `everyM`, so that
 * the circles of 59 places still touch and do not become a blot.
 */
export function thinned(places: readonly GeoPoint[], everyM: number): GeoPoint[] {
  const kept: GeoPoint[] = [];
  for (const [index, place] of places.entries()) {
    const before = kept.at(-1);
    const last = index === places.length - 1;
    if (before === undefined || last || distanceM(before, place) >= everyM) kept.push(place);
  }
  return kept;
}
