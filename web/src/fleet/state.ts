/**
 * The page's copy of the fleet, and how the stream's events change it. Pure: what arrives and the
 * page's clock come in, a new value goes out; what did not change keeps its identity.
 */
import type { Actions, FleetAircraft, FleetCommand, FleetMission, FleetPicture, FleetUpdate, LogLine } from '../api/model';

export const LOG_LINES_MAX = 500;

/** An aircraft and when the page last received it, by the page's own clock. */
export interface Aircraft {
  readonly fleet: FleetAircraft;
  readonly receivedAtMs: number;
}

export interface LogEntry {
  /** Counts up for as long as the page is open. */
  readonly key: number;
  readonly line: LogLine;
}

export interface FleetState {
  /** Version of the ground service; empty before the first picture. */
  readonly version: string;
  /** The ground service's clock at the last event. */
  readonly timeMs: number;
  /** The page's clock at the last event; undefined before the first. */
  readonly receivedAtMs: number | undefined;
  /** In the ground service's order, each address once. */
  readonly aircraft: readonly Aircraft[];
  readonly missions: readonly FleetMission[];
  readonly commands: readonly FleetCommand[];
  readonly actions: Actions;
  /** Oldest first, at most LOG_LINES_MAX. */
  readonly log: readonly LogEntry[];
}

export const EMPTY: FleetState = {
  version: '',
  timeMs: 0,
  receivedAtMs: undefined,
  aircraft: [],
  missions: [],
  commands: [],
  actions: {
    setup: false,
    setup_blocked: 'No word from the ground service yet.',
    start: false,
    start_blocked: 'No word from the ground service yet.',
  },
  log: [],
};

/** A picture replaces everything but the log: an aircraft that is not in it is gone. */
export function applyPicture(state: FleetState, picture: FleetPicture, nowMs: number): FleetState {
  return {
    version: picture.version,
    timeMs: picture.time_ms,
    receivedAtMs: nowMs,
    aircraft: merge([], picture.aircraft, nowMs),
    missions: picture.missions,
    commands: picture.commands,
    actions: picture.actions,
    log: state.log,
  };
}

/** An update carries changed aircraft only: the others stay as they are. */
export function applyUpdate(state: FleetState, update: FleetUpdate, nowMs: number): FleetState {
  return {
    ...state,
    timeMs: update.time_ms,
    receivedAtMs: nowMs,
    aircraft: update.aircraft.length === 0 ? state.aircraft : merge(state.aircraft, update.aircraft, nowMs),
    commands: update.commands,
    actions: update.actions,
  };
}

/** Appends a line, once: a stream that reconnects may send again what the page has. */
export function applyLog(state: FleetState, line: LogLine): FleetState {
  const known = state.log.some(
    (entry) => entry.line.id === line.id && entry.line.time_ms === line.time_ms && entry.line.text === line.text,
  );
  if (known) return state;
  const key = (state.log.at(-1)?.key ?? 0) + 1;
  return { ...state, log: [...state.log.slice(-(LOG_LINES_MAX - 1)), { key, line }] };
}

/** The address is the key: it is there before an aircraft has reported its id. */
function merge(old: readonly Aircraft[], changed: readonly FleetAircraft[], nowMs: number): readonly Aircraft[] {
  const merged = new Map(old.map((aircraft) => [aircraft.fleet.address, aircraft]));
  for (const fleet of changed) merged.set(fleet.address, { fleet, receivedAtMs: nowMs });
  return [...merged.values()];
}
