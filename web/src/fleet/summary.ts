/** Counts over the fleet, and the elapsed time of the flight. */
import { inConflict } from './avoidance';
import { isArmed, isFlying } from './conditions';
import type { Aircraft, FleetState } from './state';

export interface Summary {
  readonly total: number;
  readonly armed: number;
  readonly flying: number;
  /** No contact with the companion computer, after there was some. */
  readonly lost: number;
  /** Never in contact. */
  readonly neverSeen: number;
  /** In contact, but the companion has lost its flight controller. */
  readonly flightControllerLost: number;
  /** Avoids another, or has stopped for one. */
  readonly inConflict: number;
  /** Nearer to another than its alarm allows, or about to be. */
  readonly tooNear: number;
}

export function summarize(fleet: readonly Aircraft[]): Summary {
  const count = (test: (aircraft: Aircraft) => boolean) => fleet.filter(test).length;
  return {
    total: fleet.length,
    armed: count(isArmed),
    flying: count(isFlying),
    lost: count(({ fleet }) => fleet.link === 'lost'),
    neverSeen: count(({ fleet }) => fleet.link === 'never_seen'),
    flightControllerLost: count(({ fleet }) => fleet.link === 'up' && fleet.status?.flight_controller.link === 'lost'),
    inConflict: count(({ fleet }) => inConflict(fleet.status)),
    tooNear: count(({ fleet }) => fleet.status?.separation?.alarmed ?? false),
  };
}

/** From the first armed aircraft to the last disarmed one, by the ground service's clock. */
export interface Flight {
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  /** The page came late: the flight has lasted at least this long. */
  readonly atLeast: boolean;
}

/** `undefined` before the first picture; `grounded` when the page has seen the fleet disarmed and no flight yet. */
export type FlightClock = Flight | 'grounded' | undefined;

/** What the last value and a new state show of the flight. */
export function trackFlight(clock: FlightClock, state: FleetState): FlightClock {
  if (state.receivedAtMs === undefined) return undefined;
  const armed = state.aircraft.some(isArmed);
  const now = state.timeMs;
  // A clock that went back: the ground service was restarted, and what is known of the flight with it.
  const known = typeof clock === 'object' && clock.startedAtMs > now ? undefined : clock;
  if (known === undefined) {
    if (!armed) return 'grounded';
    const setup = state.commands.findLast((command) => command.command === 'setup');
    return { startedAtMs: setup?.time_ms ?? now, endedAtMs: undefined, atLeast: setup === undefined };
  }
  if (known === 'grounded') return armed ? { startedAtMs: now, endedAtMs: undefined, atLeast: false } : known;
  if (known.endedAtMs === undefined) return armed ? known : { ...known, endedAtMs: now };
  return armed ? { startedAtMs: now, endedAtMs: undefined, atLeast: false } : known;
}

export function flightTimeMs(flight: Flight, timeMs: number): number {
  return Math.max(0, (flight.endedAtMs ?? timeMs) - flight.startedAtMs);
}
