/**
 * The page's copy of the fleet, and how the stream's events change it. Pure: what arrives and the
 * page's clock come in, a new value goes out; what did not change keeps its identity.
 */
import type { Actions, AircraftChange, BaseStation, Checklist, FleetAircraft, FleetAlarm, FleetCommand, FleetLogLine, FleetMission, FleetPicture, FleetUpdate, RadioListening } from '../api/model';
import { applyChange } from './change';

export const LOG_LINES_MAX = 500;
/** As many as the service shows. */
export const COMMANDS_MAX = 16;

/** Ended alarms that the service keeps. */
export const ENDED_ALARMS_MAX = 200;

/** An aircraft and when the page last received it, by the page's own clock. */
export interface Aircraft {
  readonly fleet: FleetAircraft;
  readonly receivedAtMs: number;
}

export interface LogEntry {
  /** Counts up for as long as the page is open. */
  readonly key: number;
  readonly line: FleetLogLine;
}

export interface FleetState {
  /** Version of the ground service; empty before the first picture. */
  readonly version: string;
  /** Its version when this page was loaded. */
  readonly pageVersion: string;
  /** The name by which the ground service holds leases. */
  readonly console: string;
  /** When the ground service's clock was at 0, milliseconds since 1970. */
  readonly startedUnixMs: number;
  /** Whether the ground service has a map of the ground. */
  readonly hasMap: boolean;
  readonly hasTiles: boolean;
  /** The ground service's clock at the last event. */
  readonly timeMs: number;
  /** The page's clock at the last event; undefined before the first. */
  readonly receivedAtMs: number | undefined;
  /** In the ground service's order, each address once. */
  readonly aircraft: readonly Aircraft[];
  readonly missions: readonly FleetMission[];
  readonly commands: readonly FleetCommand[];
  /** The alarms of the service, by their numbers. */
  readonly alarms: readonly FleetAlarm[];
  readonly actions: Actions;
  /** The base station of the console, where it has one. */
  readonly corrections: BaseStation | undefined;
  /** The radio by whose datagrams aircraft are found, where the service listens. */
  readonly listening: RadioListening | undefined;
  /** The lab's checklist, where the service has one. */
  readonly checklist: Checklist | undefined;
  /** Oldest first, at most LOG_LINES_MAX. */
  readonly log: readonly LogEntry[];
}

export const EMPTY: FleetState = {
  version: '',
  pageVersion: '',
  console: '',
  startedUnixMs: 0,
  hasMap: false,
  hasTiles: false,
  timeMs: 0,
  receivedAtMs: undefined,
  aircraft: [],
  missions: [],
  commands: [],
  alarms: [],
  actions: {
    setup: false,
    setup_blocked: 'No word from the ground service yet.',
    start: false,
    start_blocked: 'No word from the ground service yet.',
  },
  corrections: undefined,
  listening: undefined,
  checklist: undefined,
  log: [],
};

/** A picture replaces everything: an aircraft that is not in it is gone. To the log it adds what the page has not received. */
export function applyPicture(state: FleetState, picture: FleetPicture, nowMs: number): FleetState {
  return {
    version: picture.version,
    pageVersion: state.pageVersion || picture.version,
    console: picture.console,
    startedUnixMs: picture.started_unix_ms,
    hasMap: picture.has_map,
    hasTiles: picture.has_tiles,
    timeMs: picture.time_ms,
    receivedAtMs: nowMs,
    aircraft: merge([], picture.aircraft, nowMs),
    missions: picture.missions,
    commands: picture.commands,
    alarms: picture.alarms ?? [],
    actions: picture.actions,
    corrections: picture.corrections ?? undefined,
    listening: picture.listening ?? undefined,
    checklist: picture.checklist ?? undefined,
    // After a restart of the service its clock begins anew, and times of the old log would be of another clock.
    log: picture.log.reduce(appended, picture.started_unix_ms === state.startedUnixMs ? state.log : []),
  };
}

/** An update carries what has changed: everything else stays as it is. Throws where the page does not have what was changed. */
export function applyUpdate(state: FleetState, update: FleetUpdate, nowMs: number): FleetState {
  return {
    ...state,
    timeMs: update.time_ms,
    receivedAtMs: nowMs,
    aircraft: update.aircraft?.length ? changed(state.aircraft, update.aircraft, nowMs) : state.aircraft,
    commands: update.commands?.length ? newer(state.commands, update.commands) : state.commands,
    alarms: update.alarms?.length ? changedAlarms(state.alarms, update.alarms) : state.alarms,
    actions: update.actions ?? state.actions,
    corrections: update.corrections ?? state.corrections,
    listening: update.listening ?? state.listening,
    checklist: update.checklist ? (applyChange(state.checklist, update.checklist) as Checklist) : state.checklist,
  };
}

/** Takes changed alarms in, and drops the oldest that have ended, as the service does. */
function changedAlarms(old: readonly FleetAlarm[], changes: readonly FleetAlarm[]): readonly FleetAlarm[] {
  const byNumber = new Map([...old, ...changes].map((alarm) => [alarm.number, alarm]));
  const all = [...byNumber.values()].toSorted((a, b) => a.number - b.number);
  let excess = all.filter(({ ended_ms }) => ended_ms != null).length - ENDED_ALARMS_MAX;
  return all.filter(({ ended_ms }) => ended_ms == null || (excess -= 1) < 0);
}

/** Appends a line, once: a stream that reconnects may send again what the page has. */
export function applyLog(state: FleetState, line: FleetLogLine): FleetState {
  const log = appended(state.log, line);
  return log === state.log ? state : { ...state, log };
}

function appended(log: readonly LogEntry[], line: FleetLogLine): readonly LogEntry[] {
  const known = log.some(
    (entry) => entry.line.id === line.id && entry.line.time_ms === line.time_ms && entry.line.text === line.text,
  );
  if (known) return log;
  const key = (log.at(-1)?.key ?? 0) + 1;
  return [...log.slice(-(LOG_LINES_MAX - 1)), { key, line }];
}

function changed(old: readonly Aircraft[], changes: readonly AircraftChange[], nowMs: number): readonly Aircraft[] {
  const byAddress = new Map(changes.map(({ address, change }) => [address, change]));
  const aircraft = old.map((one) => {
    const change = byAddress.get(one.fleet.address);
    if (change === undefined) return one;
    byAddress.delete(one.fleet.address);
    return { fleet: applyChange(one.fleet, change) as FleetAircraft, receivedAtMs: nowMs };
  });
  const [unknown] = byAddress.keys();
  if (unknown !== undefined) throw new Error(`found a change of ${unknown}, expected an aircraft of the last picture`);
  return aircraft;
}

/** Those that changed in their places, new ones at the end. */
function newer(old: readonly FleetCommand[], changes: readonly FleetCommand[]): readonly FleetCommand[] {
  const merged = new Map([...old, ...changes].map((command) => [command.id, command]));
  return [...merged.values()].slice(-COMMANDS_MAX);
}

/** The address is the key: it is there before an aircraft has reported its id. */
function merge(old: readonly Aircraft[], changed: readonly FleetAircraft[], nowMs: number): readonly Aircraft[] {
  const merged = new Map(old.map((aircraft) => [aircraft.fleet.address, aircraft]));
  for (const fleet of changed) merged.set(fleet.address, { fleet, receivedAtMs: nowMs });
  return [...merged.values()];
}
