/**
 * Which aircraft gets which of the missions that were read. No aircraft gets one by accident: the numbers must
 * match, and in a swarm the leader alone takes a mission.
 */
import type { ReadMission } from '../api/model';
import { everyoneAlone } from './avoidance';
import { plural } from './format';
import { displayName, natural } from './sort';
import type { Aircraft } from './state';

export interface Assignment {
  readonly vehicle: string;
  readonly name: string;
  readonly mission: ReadMission;
}

/** The aircraft that are given missions, by name: the selected aircraft, or all; in a swarm its leader. */
export function receivers(fleet: readonly Aircraft[], selected: ReadonlySet<string>): Aircraft[] {
  const withStatus = fleet.filter(({ fleet }) => fleet.status);
  const meant = everyoneAlone(fleet)
    ? withStatus.filter(({ fleet }) => selected.size === 0 || selected.has(fleet.address))
    : withStatus.filter(({ fleet }) => fleet.status?.swarm?.leader || fleet.status?.swarm == null);
  return meant.toSorted((a, b) => natural.compare(displayName(a), displayName(b)));
}

/** The protocol of all these aircraft; none where they do not fly the same one. */
export function sharedProtocol(aircraft: readonly Aircraft[]): string | undefined {
  const protocols = new Set(aircraft.map(({ fleet }) => fleet.status?.protocol));
  return protocols.size === 1 ? [...protocols][0] : undefined;
}

/** What was noted when the file was read and when the aircraft took the mission, each line once. */
export const allNotes = (read: readonly string[], answered: readonly string[] | undefined): string[] => [
  ...new Set([...read, ...(answered ?? [])]),
];

/** The first mission for the first aircraft, and so on; or why not. */
export function assign(aircraft: readonly Aircraft[], missions: readonly ReadMission[]): Assignment[] | string {
  if (aircraft.length === 0) return 'No aircraft to give a mission to.';
  if (aircraft.length !== missions.length) {
    return `Found ${plural(missions.length, 'mission', 'missions')}, expected ${aircraft.length}: one for each of ${plural(aircraft.length, 'aircraft', 'aircraft')}. Select the aircraft that they are for.`;
  }
  return aircraft.flatMap((one, index) => {
    const [status, mission] = [one.fleet.status, missions[index]];
    return status && mission ? [{ vehicle: status.id, name: displayName(one), mission }] : [];
  });
}
