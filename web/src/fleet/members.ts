/** The members of a swarm that the others do not wait for, from their statuses, and whether one can be excluded. */
import { nameOf, type ById } from './avoidance';
import { plural } from './format';
import type { Aircraft } from './state';

/** What the members in contact report of one that they do not wait for. */
export interface Absence {
  /** How many of them know that the operator excluded it. */
  readonly excluded: number;
  /** How many of them have received nothing from it for the time to live. */
  readonly silent: number;
  /** How it leaves, as it broadcast; empty if it has not. */
  readonly leaves: string;
  /** How many were asked: members in contact. */
  readonly asked: number;
}

export type Absences = ReadonlyMap<string, Absence>;

const swarmOf = ({ fleet }: Aircraft) => (fleet.link === 'up' ? fleet.status?.swarm : undefined);

/** By id of the absent one. */
export function absences(fleet: readonly Aircraft[]): Absences {
  const members = fleet.filter((aircraft) => swarmOf(aircraft)?.slot != null);
  const found = new Map<string, Absence>();
  for (const member of members) {
    for (const { id, silent, leaves, excluded_by } of swarmOf(member)?.absent ?? []) {
      const known = found.get(id) ?? { excluded: 0, silent: 0, leaves: '', asked: members.length };
      found.set(id, {
        ...known,
        excluded: known.excluded + (excluded_by == null ? 0 : 1),
        silent: known.silent + (silent ? 1 : 0),
        leaves: leaves ?? known.leaves,
      });
    }
  }
  return found;
}

/** Whether it is out for this flight. */
export const hasLeft = (absence: Absence | undefined): boolean =>
  absence !== undefined && (absence.excluded > 0 || absence.leaves !== '');

/** Whether it leads its swarm. Of one that is out its own word does not count. */
export function leads({ fleet: { status } }: Aircraft, out: Absences): boolean {
  return (status?.swarm?.leader ?? false) && !hasLeft(out.get(status?.id ?? ''));
}

/** One line: "excluded by the operator, known to 4 of 5; leaves: holding". */
export function absenceText({ excluded, silent, leaves, asked }: Absence): string {
  const parts: string[] = [];
  if (excluded > 0) parts.push(`excluded by the operator, known to ${excluded} of ${asked}`);
  if (leaves) parts.push(`leaves the swarm: ${leaves}`);
  if (silent > 0) parts.push(`not received by ${silent} of ${asked}`);
  return parts.join('; ');
}

/** One line on the members that this aircraft does not wait for: "UAV 3 (excluded by the operator, reported by UAV 1)". */
export function notWaitedFor(aircraft: Aircraft, known: ById): string {
  const { status } = aircraft.fleet;
  return (status?.swarm?.absent ?? [])
    .filter(({ id }) => id !== status?.id)
    .map(({ id, silent, leaves, excluded_by }) => {
      const parts: string[] = [];
      if (excluded_by != null) {
        const by = excluded_by === status?.id ? '' : `, reported by ${nameOf(excluded_by, known)}`;
        parts.push(`excluded by the operator${by}`);
      }
      if (leaves != null) parts.push(leaves);
      if (silent) parts.push('silent');
      return `${nameOf(id, known)} (${parts.join(', ')})`;
    })
    .join(', ');
}

/** Why this aircraft cannot be excluded from its swarm; empty if it can. */
export function excludeBlocked(aircraft: Aircraft, fleet: readonly Aircraft[], out: Absences): string {
  const { status } = aircraft.fleet;
  if (!status) return 'It was never in contact: its id is not known.';
  if (!status.swarm) return 'It flies for itself, in no swarm.';
  const others = fleet.filter((other) => other !== aircraft && swarmOf(other)?.slot != null).length;
  if (status.swarm.slot == null && others === 0) return 'No swarm flies: no aircraft holds a plan.';
  if (status.swarm.slot == null) return 'It has no slot in the swarm that flies.';
  if (others === 0) return 'Nobody else of the swarm is in contact.';
  const absence = out.get(status.id);
  if (absence && absence.excluded >= absence.asked) return 'It is excluded, and all in contact know.';
  return '';
}

/** What the swarm does without it, for the question. */
export function excludeEffect(aircraft: Aircraft): string {
  const size = aircraft.fleet.status?.swarm?.size ?? 0;
  const others = size > 1 ? plural(size - 1, 'other goes', 'others go') : 'others go';
  return `The ${others} on without it, for this flight. If it receives the exclusion, it holds, and lands after a while.`;
}
