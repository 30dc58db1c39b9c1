/**
 * Whom an emergency command addresses: the selected aircraft, or all when none is selected. A selected
 * aircraft that is no longer in the fleet keeps the scope narrow: it must not widen to all.
 */
import { plural } from './format';
import { displayName } from './sort';
import type { Aircraft } from './state';

export interface Scope {
  readonly kind: 'all' | 'selected' | 'none';
  /** What goes into the request: ids, empty for all. Never sent when kind is `none`. */
  readonly vehicles: readonly string[];
  /** For a button: "all 9", "UAV 3", "2 selected". */
  readonly short: string;
  /** For the label: "Scope: all 9 aircraft". */
  readonly long: string;
}

export function scopeOf(fleet: readonly Aircraft[], selected: ReadonlySet<string>): Scope {
  if (selected.size === 0) {
    const kind = fleet.length > 0 ? 'all' : 'none';
    return { kind, vehicles: [], short: `all ${fleet.length}`, long: `Scope: all ${fleet.length}` };
  }
  // Without an id an aircraft cannot be addressed: it has never been in contact.
  const chosen = fleet.filter(({ fleet }) => selected.has(fleet.address) && fleet.status);
  const missing = selected.size - chosen.length;
  const without = missing > 0 ? ` (${plural(missing, 'selected aircraft was', 'selected aircraft were')} never in contact or is gone)` : '';
  const first = chosen[0];
  if (first === undefined) return { kind: 'none', vehicles: [], short: 'none', long: `Scope: no aircraft${without}` };
  const vehicles = chosen.flatMap(({ fleet }) => (fleet.status ? [fleet.status.id] : []));
  const short = chosen.length === 1 ? displayName(first) : `${chosen.length} selected`;
  return { kind: 'selected', vehicles, short, long: `Scope: ${short} of ${fleet.length}${without}` };
}

/** Returns the scope of a command for these aircraft and no other, whatever is selected. */
export function scopeOfThose(fleet: readonly Aircraft[], those: readonly Aircraft[]): Scope {
  const scope = scopeOf(fleet, new Set(those.map(({ fleet: { address } }) => address)));
  const count = scope.vehicles.length;
  if (those.length === 0 || count === 0) return { kind: 'none', vehicles: [], short: 'none', long: '' };
  const short = count === 1 ? scope.short : count === fleet.length ? `all ${count}` : plural(count, 'aircraft', 'aircraft');
  return { ...scope, short, long: `Scope: ${short}` };
}

/** Whether every aircraft of `narrow` is also in `wide`, both as in a request (empty = all). */
export function covers(wide: readonly string[], narrow: readonly string[]): boolean {
  if (wide.length === 0) return true;
  return narrow.length > 0 && narrow.every((id) => wide.includes(id));
}
