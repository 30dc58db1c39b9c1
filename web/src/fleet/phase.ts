/** How far the fleet has come on its way from a plan to the ground, in six steps with counts. */
import type { Checklist } from '../api/model';
import { progress } from './checklist';
import { plural } from './format';
import { FLYING_HEIGHT_M, hasLanded, isArmed, isFlying } from './conditions';
import { hasLeft, type Absences } from './members';
import type { Aircraft } from './state';

export const STEPS = ['plan', 'check', 'setup', 'ready', 'fly', 'land'] as const;
export type Step = (typeof STEPS)[number];

export const STEP_NAMES: Readonly<Record<Step, string>> = {
  plan: 'Plan', check: 'Check', setup: 'Set up', ready: 'Ready', fly: 'Fly', land: 'Land',
};

export interface FleetPhase {
  readonly step: Step;
  /** "Taking off 3 of 5". */
  readonly text: string;
  /** The last step is over: all are down. */
  readonly over: boolean;
}

/** Whether it is coming down, or flies home to come down. */
function isComingDown({ fleet: { status } }: Aircraft): boolean {
  if (!status?.flight_controller.armed) return false;
  return status.phase === 'ending' || ['LAND', 'RTL', 'SMART_RTL'].includes(status.flight_controller.mode ?? '');
}

const isBlocked = ({ fleet: { status, link } }: Aircraft): boolean =>
  link !== 'up' || status == null || status.checks.some(({ passed, is_required }) => !passed && is_required);

/** An aircraft that needs no mission of its own has none: a swarm's members wait for their leader's. */
const needsMission = ({ fleet: { status } }: Aircraft): boolean =>
  status != null && status.mission == null && (status.swarm == null || status.swarm.leader) && status.protocol !== 'follow_me';

export function fleetPhase(fleet: readonly Aircraft[], absences: Absences, checklist?: Checklist): FleetPhase {
  const known = fleet.filter(({ fleet: { status } }) => status);
  if (known.length === 0) return { step: 'plan', text: fleet.length === 0 ? 'No aircraft' : `${plural(fleet.length, 'aircraft', 'aircraft')} not seen yet`, over: false };
  // What a swarm has given up holds up no step, but for landing it is still counted.
  const members = known.filter(({ fleet: { status } }) => !hasLeft(absences.get(status?.id ?? '')));
  const count = (list: readonly Aircraft[], test: (aircraft: Aircraft) => boolean) => list.filter(test).length;
  const inPhase = (...phases: string[]) => (aircraft: Aircraft) => phases.includes(aircraft.fleet.status?.phase ?? '');
  const of = (number: number, total: number) => `${number} of ${total}`;
  const total = known.length;

  const down = count(known, hasLanded);
  const landing = count(known, isComingDown);
  const moving = count(members, (one) => isArmed(one) && inPhase('moving', 'waiting')(one) && !isComingDown(one));
  if (moving > 0) {
    const waiting = count(members, (one) => isArmed(one) && inPhase('waiting')(one));
    return { step: 'fly', text: `Flying ${of(count(known, isFlying), total)}${waiting > 0 ? `, ${waiting} waiting` : ''}`, over: false };
  }
  if (landing > 0) return { step: 'land', text: `Landing, ${of(down, total)} down`, over: false };
  if (known.some((one) => inPhase('aborted')(one) && isArmed(one))) {
    return { step: 'land', text: `Holding ${of(count(known, (one) => inPhase('aborted')(one) && isArmed(one)), total)}`, over: false };
  }
  const preparing = count(members, inPhase('preparing'));
  const ready = count(members, inPhase('ready'));
  if (preparing > 0) {
    if (!members.some(isArmed)) return { step: 'setup', text: `Setting up ${of(ready, members.length)}`, over: false };
    const up = count(members, (one) => isArmed(one) && (one.fleet.status?.navigation?.height_m ?? 0) > FLYING_HEIGHT_M);
    return { step: 'setup', text: up < members.length ? `Taking off ${of(up, members.length)}` : `Taking places ${of(ready, members.length)}`, over: false };
  }
  if (ready > 0) return { step: 'ready', text: `Ready ${of(ready, members.length)}`, over: false };
  if (down > 0) return { step: 'land', text: `Landed ${of(down, total)}`, over: down === total };
  if (known.some(needsMission)) return { step: 'plan', text: 'No mission yet', over: false };
  const blocked = count(fleet, isBlocked);
  if (blocked > 0) return { step: 'check', text: `Checks passed ${of(fleet.length - blocked, fleet.length)}`, over: false };
  if (checklist) {
    const { ticked, total } = progress(checklist, fleet.flatMap(({ fleet: { status } }) => status?.id ?? []));
    if (ticked < total) return { step: 'check', text: `Checklist ${of(ticked, total)}`, over: false };
  }
  return { step: 'setup', text: 'Ready to set up', over: false };
}
