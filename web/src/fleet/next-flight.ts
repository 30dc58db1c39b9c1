/** The aircraft that are down after a flight, and what prepares them for the next one. Pure. */
import { hasLanded } from './conditions';
import { displayName } from './sort';
import type { Aircraft } from './state';

export interface NextFlight {
  /** Ids of the aircraft that *Engage* prepares; empty while an aircraft still flies or none has flown. */
  readonly vehicles: readonly string[];
  /** For the button: "all 3", "UAV 2". */
  readonly short: string;
}

const NONE: NextFlight = { vehicles: [], short: '' };

/**
 * Returns the aircraft that landed and keep the state of that flight, once all aircraft in contact stand with their motors
 * off: until *Engage* is accepted, no *Set up* is.
 */
export function nextFlight(fleet: readonly Aircraft[]): NextFlight {
  const present = fleet.filter(({ fleet: { link, status } }) => link === 'up' && status);
  if (present.some(({ fleet: { status } }) => status?.flight_controller.armed)) return NONE;
  const landed = present.filter(hasLanded);
  const [first] = landed;
  if (first === undefined) return NONE;
  const vehicles = landed.flatMap(({ fleet: { status } }) => (status ? [status.id] : []));
  const short = vehicles.length === 1 ? displayName(first) : vehicles.length === fleet.length ? `all ${fleet.length}` : `${vehicles.length} aircraft`;
  return { vehicles, short };
}
