/**
 * What is wrong with an aircraft, worst first: the one place from which the cards, the map and the alarms have it, so that they
 * never disagree.
 */
import { isRecovery } from '../api/commands';
import type { AircraftStatus } from '../api/model';
import { avoidanceOf, inConflict, nameOf, type ById } from './avoidance';
import { ABSENT, age, metres, charge as chargeText, percent, stateWords } from './format';
import { health } from './health';
import { hasLeft, type Absences } from './members';
import { missionMatch, type Holdings } from './mission';
import type { Aircraft } from './state';
import type { Low } from './voltages';

/** `alarm`: act now. `caution`: act soon. `notice`: know it. */
export type Level = 'alarm' | 'caution' | 'notice';

export type Kind =
  | 'lost' | 'controller' | 'failsafe' | 'takeover' | 'separation' | 'battery' | 'voltage' | 'companion' | 'radio' | 'keys'
  | 'holding' | 'ended' | 'conflict' | 'mission' | 'excluded' | 'problem' | 'unseen' | 'service';

export interface Condition {
  readonly kind: Kind;
  readonly level: Level;
  /** For a card: one or two words. */
  readonly short: string;
  /** For an alarm: one sentence without the name. */
  readonly text: string;
}

/** Shown as a caution and as an alarm from here down; the aircraft's own failsafes are set in its autopilot. */
export const BATTERY_CAUTION_PERCENT = 25;
export const BATTERY_ALARM_PERCENT = 15;

/** An armed aircraft above this height flies; position noise on the ground stays below. */
export const FLYING_HEIGHT_M = 0.5;

export const isArmed = ({ fleet }: Aircraft): boolean => fleet.status?.flight_controller.armed ?? false;

export const isFlying = (aircraft: Aircraft): boolean =>
  isArmed(aircraft) && (aircraft.fleet.status?.navigation?.height_m ?? 0) > FLYING_HEIGHT_M;

/** Down after a flight, whatever its protocol's last state was called. */
export const hasLanded = ({ fleet: { status } }: Aircraft): boolean =>
  status !== undefined && status !== null && !status.flight_controller.armed && ['ending', 'finished', 'aborted'].includes(status.phase);

/** What the operator has asked for is no trouble. */
function wasOrdered(status: AircraftStatus): boolean {
  const last = status.commands.findLast(({ command, stage }) => isRecovery(command) && stage !== 'failed');
  return last !== undefined;
}

/** What it does, in a few words: after its mission by its flight mode, and of one that is down that it is. */
export function doing(aircraft: Aircraft): string {
  const { status } = aircraft.fleet;
  if (!status) return ABSENT;
  if (hasLanded(aircraft)) return 'Landed';
  if (status.phase !== 'aborted') return stateWords(status.state);
  if (status.avoidance?.avoiding) return 'Returning, in conflict';
  return { BRAKE: 'Holding', RTL: 'Returning', SMART_RTL: 'Returning', LAND: 'Landing' }[status.flight_controller.mode ?? ''] ?? stateWords(status.state);
}

/** What set off a failsafe, from the autopilot's own text. */
export function failsafeCause(detail: string): string {
  const text = detail.toLowerCase();
  const causes: readonly [RegExp, string][] = [
    [/batt/, 'battery'],
    [/ekf|dead ?reckon|gps glitch/, 'EKF'],
    [/fence/, 'fence'],
    [/gcs|ground station/, 'ground station'],
    [/radio|throttle|\brc\b/, 'radio'],
  ];
  return causes.find(([pattern]) => pattern.test(text))?.[1] ?? 'flight controller';
}

export interface Around {
  readonly known: ById;
  readonly absences: Absences;
  readonly held: Holdings;
  readonly nowMs: number;
  readonly groundLive: boolean;
  /** By id: batteries at or below a limit of their flight controllers. */
  readonly voltages?: ReadonlyMap<string, Low>;
}

/** Flight modes in which the aircraft follows its last target or its mission, and no landing ends the flight. */
const UNSTEERED_MODES: readonly string[] = ['GUIDED', 'GUIDED_NOGPS', 'AUTO', 'BRAKE'];

/** The card's word and the alarm's sentence for an aircraft that the companion computer does not command. */
function takeoverTexts(armed: boolean, mode: string): [short: string, text: string] {
  if (!armed) return ['Pilot', 'the companion computer commands nothing; Engage lets it command again'];
  if (UNSTEERED_MODES.includes(mode)) {
    return ['No command', `neither pilot nor companion computer commands it in mode ${mode}: switch the flight mode on the transmitter`];
  }
  if (mode === '') return ['Not commanded', 'the companion computer commands nothing, and the flight mode is not known'];
  return ['Pilot', `the pilot has control, mode ${mode}`];
}

/** The ground service itself, where the page has lost it. */
export const SERVICE_LOST: Condition = {
  kind: 'service', level: 'alarm', short: 'Lost', text: 'not reachable: all values are old, and commands wait until it answers',
};

/** Worst first; empty where all is well. */
export function conditionsOf(aircraft: Aircraft, around: Around): Condition[] {
  const { fleet } = aircraft;
  const { status } = fleet;
  const found: Condition[] = [];
  const add = (level: Level, kind: Kind, short: string, text: string) => found.push({ kind, level, short, text });
  if (fleet.link === 'lost') {
    // On the ground, motors off, it endangers nothing.
    add(isArmed(aircraft) ? 'alarm' : 'caution', 'lost', 'Lost', isArmed(aircraft) ? 'out of contact, armed when last received' : 'out of contact, disarmed when last received');
  }
  if (fleet.link === 'never_seen') add('notice', 'unseen', 'Never seen', 'has never answered');
  if (fleet.problem && fleet.link === 'up') add('caution', 'problem', 'Not commandable', fleet.problem);
  if (status) statusConditions(aircraft, status, around, add);
  const rank = { alarm: 0, caution: 1, notice: 2 } as const;
  return found.sort((a, b) => rank[a.level] - rank[b.level]);
}

function statusConditions(
  aircraft: Aircraft,
  status: AircraftStatus,
  { known, absences, held, nowMs, groundLive, voltages }: Around,
  add: (level: Level, kind: Kind, short: string, text: string) => void,
): void {
  const live = aircraft.fleet.link === 'up';
  const armed = status.flight_controller.armed;
  const mode = status.flight_controller.mode ?? '';
  if (status.failsafe) {
    const cause = failsafeCause(status.detail);
    add('alarm', 'failsafe', `Failsafe ${mode}`.trim(), `${cause} failsafe of the flight controller, mode ${mode || 'unknown'}`);
  } else if (!status.engaged) {
    add('alarm', 'takeover', ...takeoverTexts(armed, mode));
  }
  if (status.separation?.alarmed && armed && live) {
    const { nearest } = status.separation;
    add('alarm', 'separation', 'Too near', nearest ? `too near to ${nameOf(nearest.id, known)}: ${metres(nearest.distance_m)}` : 'too near to another aircraft');
  }
  const links = health(aircraft, nowMs, groundLive);
  if (live && status.flight_controller.link === 'lost') {
    add('alarm', 'controller', 'No flight controller', `its flight controller sends nothing for ${age(links.flightControllerAgeMs)}`);
  }
  const charge = status.battery?.remaining_percent;
  const low = voltages?.get(status.id);
  const level = low === 'critical' || (charge != null && charge <= BATTERY_ALARM_PERCENT) ? 'alarm' : 'caution';
  if (low !== undefined) {
    const text = chargeText(status.battery);
    add(armed ? level : 'caution', 'voltage', `Battery ${text}`, `battery at ${text}, its flight controller's limit of a ${low} battery`);
  } else if (charge != null && charge <= BATTERY_CAUTION_PERCENT) {
    add(armed ? level : 'caution', 'battery', `Battery ${percent(charge)}`, `battery at ${percent(charge)}`);
  }
  const guard = status.checks.find(({ name, passed }) => name === 'companion loss' && !passed);
  if (guard && armed) add('alarm', 'companion', 'No guardian', guard.detail);
  if (status.radio.down != null) add(armed ? 'alarm' : 'caution', 'radio', 'Radio down', status.radio.down);
  // Absent is not known, and no condition.
  const avoidance = armed && live ? avoidanceOf(status) : undefined;
  if (avoidance?.receives === false) add('alarm', 'radio', 'Deaf', 'receives no other aircraft any more: land it soon');
  if (avoidance?.is_received === false) add('alarm', 'radio', 'Not received', 'another aircraft flies on as if it did not receive this one: check the radio');
  if (status.radio.keys?.validity === 'expired') add('caution', 'keys', 'Keys expired', 'its keys have expired: no setup begins');
  else if (!status.radio.secured) add('notice', 'keys', 'No keys', 'has no keys: any transmitter in reach flies it');
  if (inConflict(status) && live && armed) {
    const other = status.avoidance?.avoiding;
    add('caution', 'conflict', 'Conflict', other == null ? 'in conflict' : `in conflict with ${nameOf(other, known)}`);
  }
  const absence = absences.get(status.id);
  if (absence && hasLeft(absence)) add('caution', 'excluded', absence.excluded > 0 ? 'Excluded' : 'Left swarm', absence.excluded > 0 ? 'excluded from its swarm' : `leaves its swarm: ${absence.leaves}`);
  else if (absence && absence.silent > 0) add('caution', 'excluded', 'Not heard', `not received by ${absence.silent} of ${absence.asked} others`);
  if (armed && status.engaged && !status.failsafe) {
    if (status.can_resume || status.state === 'Holding') add('caution', 'holding', 'Holding', status.detail || 'holds its position');
    else if (status.phase === 'aborted' && !wasOrdered(status)) add('caution', 'ended', 'Ended by itself', status.detail || `its mission was ended, mode ${mode}`);
  }
  if (missionMatch(aircraft, held) === 'differs') add('caution', 'mission', 'Other mission', 'holds another mission than its leader');
}

/** The level of the worst; undefined where all is well. */
export const worst = (conditions: readonly Condition[]): Level | undefined => conditions[0]?.level;
