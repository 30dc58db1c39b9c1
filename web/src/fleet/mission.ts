/**
 * Whether an aircraft holds the mission that it should: a mission is known by its hash, never by its name.
 * In a swarm with a leader all fly the leader's plan, each waypoints of its own; without one, each
 * may fly its own.
 */
import type { MissionSummary } from '../api/model';
import type { Aircraft } from './state';

export type MissionMatch =
  /** Holds no mission. */
  | 'none'
  /** Holds the leader's mission. */
  | 'same'
  /** Holds another than the leader's. */
  | 'differs'
  /** Nobody to compare with. */
  | 'own';

/** What a mission is compared by: the swarm's plan, or before setup its waypoints. */
const key = (mission: MissionSummary | null | undefined) => mission?.plan_hash ?? mission?.hash ?? null;

/** By id, the hash that each aircraft's mission is compared by; `null` for none. */
export type Holdings = ReadonlyMap<string, string | null>;

export function holdings(fleet: readonly Aircraft[]): Holdings {
  return new Map(
    fleet.flatMap(({ fleet: { status } }) => (status ? [[status.id, key(status.mission)] as const] : [])),
  );
}

export function missionMatch(aircraft: Aircraft, held: Holdings): MissionMatch {
  const status = aircraft.fleet.status;
  const hash = key(status?.mission);
  if (!status || hash == null) return 'none';
  const leader = status.swarm?.leader ? status.id : status.swarm?.leader_id;
  const expected = leader == null ? null : held.get(leader);
  if (expected == null) return 'own';
  return expected === hash ? 'same' : 'differs';
}
