/** The preflight checks of all aircraft side by side, and every one that has not passed with those that it is about. */
import type { MissionSummary } from '../api/model';
import { differences } from '../plan/flight.svelte';
import { missionMatch, type Holdings, type MissionMatch } from './mission';
import { displayName } from './sort';
import type { Aircraft } from './state';

export type CheckState = 'passed' | 'warning' | 'failed' | 'unknown';

export interface Column {
  /** Absent before it has reported. */
  readonly id: string | undefined;
  readonly address: string;
  readonly number: string;
  readonly name: string;
  readonly mission: MissionSummary | undefined;
  readonly match: MissionMatch;
  /** Empty where it is not known. */
  readonly firmware: string;
  /** Whether most run the same firmware. */
  readonly usual: boolean;
}

export interface Cell {
  readonly state: CheckState;
  readonly detail: string;
}

export interface CheckTable {
  readonly columns: readonly Column[];
  readonly rows: readonly { readonly check: string; readonly cells: readonly Cell[] }[];
  /** What most run; empty before any has reported. */
  readonly firmware: string;
}

const CONTACT = 'contact';
const FLIGHT_SETUP = 'flight set-up';

export function checkTable(fleet: readonly Aircraft[], numbers: ReadonlyMap<string, string>, held: Holdings): CheckTable {
  const counts = new Map<string, number>();
  for (const { fleet: { status } } of fleet) {
    const firmware = status?.flight_controller.firmware;
    if (firmware) counts.set(firmware, (counts.get(firmware) ?? 0) + 1);
  }
  const firmware = [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? '';
  const columns = fleet.map((aircraft): Column => {
    const { address, status } = aircraft.fleet;
    const own = status?.flight_controller.firmware ?? '';
    return {
      id: status?.id, address, number: numbers.get(address) ?? '', name: displayName(aircraft), mission: status?.mission ?? undefined,
      match: missionMatch(aircraft, held), firmware: own, usual: own === firmware,
    };
  });
  // In the order in which the aircraft list them; one that only some have comes where it is first found.
  const names = [...new Set(fleet.flatMap(({ fleet: { status } }) => status?.checks.map(({ name }) => name) ?? []))];
  const contact = fleet.map(({ fleet: { link, problem } }): Cell =>
    problem ? { state: 'failed', detail: problem } : link === 'up' ? { state: 'passed', detail: 'in contact' } : { state: 'failed', detail: link === 'lost' ? 'out of contact' : 'never in contact' },
  );
  const rows = names.map((check) => ({
    check,
    cells: fleet.map(({ fleet: { status } }): Cell => {
      const found = status?.checks.find(({ name }) => name === check);
      if (!found) return { state: 'unknown', detail: 'not reported' };
      return { state: found.passed ? 'passed' : found.is_required ? 'failed' : 'warning', detail: found.detail };
    }),
  }));
  const setups = fleet.flatMap(({ fleet: { status } }) => status?.flight_setup?.setup ?? []);
  const flight = fleet.map(({ fleet: { status } }): Cell => {
    const setup = status?.flight_setup?.setup;
    if (!setup) return { state: 'unknown', detail: 'not reported' };
    const found = differences(setup, setups);
    return found.length > 0 ? { state: 'warning', detail: found.join('; ') } : { state: 'passed', detail: 'as most of its swarm' };
  });
  const alike = setups.length > 0 ? [{ check: FLIGHT_SETUP, cells: flight }] : [];
  return { columns, rows: [{ check: CONTACT, cells: contact }, ...alike, ...rows], firmware };
}

export interface Blocker {
  readonly check: string;
  readonly finding: string;
  readonly required: boolean;
  readonly of: readonly Column[];
}

/** What has not passed, each finding once: those that stand in the way first, then by how many it is about. */
export function blockers({ columns, rows }: CheckTable): Blocker[] {
  const found = new Map<string, { check: string; finding: string; required: boolean; of: Column[] }>();
  for (const { check, cells } of rows) {
    for (const [index, { state, detail }] of cells.entries()) {
      const column = columns[index];
      if (column === undefined || (state !== 'failed' && state !== 'warning')) continue;
      const key = `${check}/${state}/${detail}`;
      const entry = found.get(key) ?? { check, finding: detail, required: state === 'failed', of: [] };
      found.set(key, entry);
      entry.of.push(column);
    }
  }
  return [...found.values()].toSorted((a, b) => Number(b.required) - Number(a.required) || b.of.length - a.of.length);
}
