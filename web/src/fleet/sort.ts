/** The order of the fleet table. What is absent comes last in both directions; ties go by name. */
import { avoidanceOf } from './avoidance';
import { ABSENT, shortAddress } from './format';
import { missionMatch, type Holdings } from './mission';
import type { Aircraft } from './state';

export const COLUMNS = [
  'name', 'address', 'mode', 'state', 'avoids', 'role', 'battery', 'height', 'speed', 'link', 'controller', 'mission',
] as const;
export type Column = (typeof COLUMNS)[number];

export interface Order {
  readonly column: Column;
  readonly descending: boolean;
}

/** "UAV 2" before "UAV 10". */
export const natural = new Intl.Collator('en', { numeric: true });

const LINK_RANK = { lost: 0, never_seen: 1, up: 2 } as const;

export function displayName(aircraft: Aircraft): string {
  return aircraft.fleet.status?.name || aircraft.fleet.status?.id || shortAddress(aircraft.fleet.address);
}

/** Leader first, then by slot, then those without a slot. */
export function roleText(aircraft: Aircraft): string {
  const swarm = aircraft.fleet.status?.swarm;
  if (!swarm) return ABSENT;
  const slot = swarm.slot == null ? '' : ` ${swarm.slot}`;
  return (swarm.leader ? 'Lead' : 'Slot') + (swarm.leader || slot ? slot : ` ${ABSENT}`);
}

function key(aircraft: Aircraft, column: Column, held: Holdings): string | number | null {
  const status = aircraft.fleet.status;
  switch (column) {
    case 'name':
      return displayName(aircraft);
    case 'address':
      return aircraft.fleet.address;
    case 'mode':
      return status?.flight_controller.mode ?? null;
    case 'state':
      return status?.state ?? null;
    case 'avoids':
      return avoidanceOf(status)?.avoiding ?? null;
    case 'role':
      if (!status?.swarm) return null;
      return status.swarm.leader ? -1 : (status.swarm.slot ?? Number.MAX_SAFE_INTEGER);
    case 'battery':
      return status?.battery?.remaining_percent ?? null;
    case 'height':
      return status?.navigation?.height_m ?? null;
    case 'speed':
      return status?.navigation?.ground_speed_m_s ?? null;
    case 'link':
      // By trouble, not by age: ages of healthy links would shuffle the rows all the time.
      return LINK_RANK[aircraft.fleet.link];
    case 'controller':
      return status ? LINK_RANK[status.flight_controller.link] : null;
    case 'mission':
      return ['differs', 'none', 'own', 'same'].indexOf(missionMatch(aircraft, held));
  }
}

export function sortAircraft(fleet: readonly Aircraft[], order: Order, held: Holdings): Aircraft[] {
  const keyed = fleet.map((aircraft) => ({ aircraft, key: key(aircraft, order.column, held) }));
  const direction = order.descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) {
      if (a.key !== b.key) return a.key === null ? 1 : -1;
    } else {
      const compared =
        typeof a.key === 'number' && typeof b.key === 'number'
          ? a.key - b.key
          : natural.compare(String(a.key), String(b.key));
      if (compared !== 0) return direction * compared;
    }
    return (
      natural.compare(displayName(a.aircraft), displayName(b.aircraft)) ||
      natural.compare(a.aircraft.fleet.address, b.aircraft.fleet.address)
    );
  });
  return keyed.map(({ aircraft }) => aircraft);
}

/** What stands in an aircraft's symbol: the number at the end of its name, or its place in the fleet. */
export function numberOf(aircraft: Aircraft, index: number): string {
  return /(\d{1,3})\D*$/.exec(aircraft.fleet.status?.name ?? '')?.[1]?.replace(/^0+(?=\d)/, '') ?? String(index + 1);
}
