/** The lab's checklist: what of it is not ticked, and for which aircraft. Pure. */
import type { Checklist, ChecklistItem, Tick } from '../api/model';
import type { Blocker, Column } from './checks';

/** One with an id and a name. */
export interface Named {
  readonly id: string;
  readonly name: string;
}

export interface Missing<T> {
  readonly item: ChecklistItem;
  /** The aircraft that it is not ticked for; none of an item for the fleet. */
  readonly of: readonly T[];
}

export function tickOf(item: ChecklistItem, vehicle?: string): Tick | undefined {
  return item.ticks?.find((tick) => (tick.vehicle ?? undefined) === vehicle);
}

/** Required items that stand before a command and are not ticked: what the ground service refuses it for. */
export function missing<T extends { readonly id: string }>(list: Checklist | undefined, command: 'setup' | 'start', aircraft: readonly T[]): Missing<T>[] {
  const asked = (list?.items ?? []).filter(({ required, before }) => required && (command === 'start' || before === 'setup'));
  return asked.flatMap((item): Missing<T>[] => {
    if (item.per === 'fleet') return tickOf(item) ? [] : [{ item, of: [] }];
    const of = aircraft.filter(({ id }) => !tickOf(item, id));
    return of.length > 0 ? [{ item, of }] : [];
  });
}

/** The same as the ground service says it. */
export function missingText(list: Checklist | undefined, command: 'setup' | 'start', aircraft: readonly Named[]): string {
  const found = missing(list, command, aircraft);
  const parts = found.map(({ item, of }) => (of.length === 0 ? item.id : `${item.id} (${of.length > 3 ? `${of.slice(0, 3).map(({ name }) => name).join(', ')} and ${of.length - 3} more` : of.map(({ name }) => name).join(', ')})`));
  return parts.length === 0 ? '' : `checklist: ${parts.length} not ticked: ${parts.join(', ')}`;
}

/** As findings beside those of the automatic checks. */
export function checklistBlockers(list: Checklist | undefined, columns: readonly Column[]): Blocker[] {
  const known = columns.flatMap((column) => (column.id === undefined ? [] : [{ ...column, id: column.id }]));
  return missing(list, 'start', known).map(({ item, of }) => ({
    check: 'checklist', finding: item.before === 'start' ? `before Start: ${item.text}` : item.text, required: true, of,
  }));
}

/** Boxes of required items before set-up: ticked ones, and all. */
export function progress(list: Checklist, ids: readonly string[]): { ticked: number; total: number } {
  let [ticked, total] = [0, 0];
  for (const item of list.items.filter(({ required, before }) => required && before === 'setup')) {
    const boxes = item.per === 'fleet' ? [undefined] : ids;
    total += boxes.length;
    ticked += boxes.filter((id) => tickOf(item, id)).length;
  }
  return { ticked, total };
}

/** "anna, 14:03:27 UTC". */
export const tickText = ({ by, unix_ms }: Tick): string => `${by}, ${new Date(unix_ms).toISOString().slice(11, 19)} UTC`;
