/** The fleet's parameters as the panel shows them: values in groups, what would change, what came of it. */
import type { FleetParameters, FleetParameterWrite, ParameterComparison, ParameterRow } from '../api/model';

/** Aircraft that hold the same value of a parameter; none where they do not have it. */
export interface ValueGroup {
  value: number | undefined;
  vehicles: number[];
}

/** The values of a row, those of most aircraft first. */
export function groups(row: ParameterRow): ValueGroup[] {
  const found: ValueGroup[] = [];
  row.values.forEach((value, index) => {
    const group = found.find((one) => one.value === (value ?? undefined));
    if (group) group.vehicles.push(index);
    else found.push({ value: value ?? undefined, vehicles: [index] });
  });
  return found.sort((a, b) => b.vehicles.length - a.vehicles.length);
}

/** Files have six decimals, or six digits: the same as the ground service compares by. */
export function isSame(found: number, stated: number): boolean {
  return Math.abs(found - stated) <= 5e-7 + 1e-6 * Math.min(Math.abs(found), Math.abs(stated));
}

/** Rows that contain the text in their names, those of each aircraft's own kind only where they are wanted. */
export function filtered(rows: readonly ParameterRow[], text: string, own: boolean): ParameterRow[] {
  const wanted = text.trim().toUpperCase();
  return rows.filter((row) => (own || !row.is_own) && row.name.includes(wanted));
}

export interface Change {
  name: string;
  from: number;
  to: number;
}

/** What each aircraft would be given: those of which the list is complete, and only where it holds another value. */
export function changes(comparison: ParameterComparison): { id: string; name: string; changes: Change[] }[] {
  return comparison.vehicles.map((vehicle, index) => ({
    id: vehicle.id,
    name: vehicle.name,
    changes: vehicle.age_ms == null ? [] : comparison.rows.flatMap((row) => {
      const [from, to] = [row.values[index], row.expected?.[index]];
      return from == null || to == null || isSame(from, to) ? [] : [{ name: row.name, from, to }];
    }),
  }));
}

/** The request that makes these changes. */
export function writeOf(all: ReturnType<typeof changes>): FleetParameterWrite {
  return {
    vehicles: all.filter((one) => one.changes.length > 0).map((one) => ({
      vehicle: one.id,
      parameters: one.changes.map(({ name, to }) => ({ name, value: to })),
    })),
  };
}

export interface Outcome {
  id: string;
  text: string;
  level: 'busy' | 'good' | 'bad';
}

/** One line for each aircraft. */
export function outcomes(fleet: FleetParameters): Outcome[] {
  return fleet.vehicles.map(({ id, progress, problem }) => {
    if (!progress) return { id, text: problem ?? 'does not answer', level: 'bad' };
    if (progress.work === 'reading') return { id, text: `reading, ${progress.received} of ${progress.count ?? '?'}`, level: 'busy' };
    const all = progress.outcomes ?? [];
    const refused = all.filter(({ effect }) => effect === 'refused');
    const done = all.filter(({ effect }) => effect === 'set' || effect === 'unchanged').length;
    if (progress.work === 'writing') return { id, text: `setting, ${done + refused.length} of ${all.length}`, level: 'busy' };
    if (refused.length > 0) return { id, text: refused.map(({ name, reason }) => reason || name).join('; '), level: 'bad' };
    if (all.length > 0) return { id, text: `${done} of ${all.length} hold`, level: 'good' };
    if (progress.problems?.length) return { id, text: progress.problems.join('; '), level: 'bad' };
    return { id, text: progress.age_ms == null ? 'not read' : `${progress.received} read`, level: progress.age_ms == null ? 'busy' : 'good' };
  });
}

export function isIdle(fleet: FleetParameters): boolean {
  return fleet.vehicles.every(({ progress }) => !progress || progress.work === 'none');
}
