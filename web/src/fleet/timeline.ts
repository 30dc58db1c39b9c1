/** All that happened, in one list: commands and who gave them, the aircraft's logs, alarms. By the ground service's clock. */
import { commandName, excluded } from '../api/commands';
import type { AuditEntry, FleetCommand, Severity } from '../api/model';
import { nameOf, withNames, type ById } from './avoidance';
import type { Alarm } from './alarms';
import { addressed, summarizeCommand, type OlderCommand } from './commands';
import { clock } from './format';
import { displayName } from './sort';
import type { LogEntry } from './state';
import type { FlightClock } from './summary';

export const TIMELINE_MAX = 400;

export type EventKind = 'command' | 'alarm' | 'log' | 'audit';

export interface TimelineEvent {
  readonly key: string;
  readonly atMs: number;
  readonly kind: EventKind;
  readonly severity: Severity;
  readonly name: string;
  readonly text: string;
  /** Who gave a command; empty for everything else. */
  readonly by: string;
}

export interface Sources {
  readonly commands: readonly FleetCommand[];
  readonly older: readonly OlderCommand[];
  readonly log: readonly LogEntry[];
  readonly alarms: readonly Alarm[];
  readonly known: ById;
  readonly fleetSize: number;
  /** The name of this console, and the ids of the commands that this page has sent. */
  readonly console: string;
  readonly own: ReadonlySet<string>;
  /** What was done through the ground service, and when that started, milliseconds since 1970. */
  readonly audit: readonly AuditEntry[];
  readonly startedUnixMs: number;
}

const ACTIONS: Readonly<Record<string, string>> = {
  sign_in: 'signed in', sign_out: 'signed out', mission: 'sent the mission', begin_link_test: 'began a test of links', end_link_test: 'ended the test of links',
  tick: 'ticked', untick: 'unticked', begin_checklist_anew: 'began the checklist anew',
  end_sessions: 'ended the sessions of', request: 'asked',
};

/** Newest first, at most TIMELINE_MAX. */
export function timeline({ commands, older, log, alarms, known, fleetSize, console, own, audit, startedUnixMs }: Sources): TimelineEvent[] {
  const events: TimelineEvent[] = [];
  const byId = new Map(audit.filter(({ id, user }) => id !== '' && user !== '').map(({ id, user }) => [id, user]));
  for (const entry of audit) {
    const atMs = Date.parse(entry.time) - startedUnixMs;
    // What is empty is not sent.
    const refused = entry.refused ?? '';
    // Commands that were taken have a line that says what became of them.
    if (atMs < 0 || ((entry.action === 'command' || entry.action === 'note') && refused === '')) continue;
    const done = [ACTIONS[entry.action] ?? entry.action, entry.what].filter((part) => part !== '').join(' ');
    events.push({
      key: `audit/${entry.number}`, atMs, kind: 'audit', severity: refused === '' ? 'info' : 'warning',
      name: entry.user || entry.address, text: refused === '' ? done : `${done} refused: ${refused}`,
      by: entry.user ? `${entry.role ?? 'signing in'}, ${entry.address}` : entry.address,
    });
  }
  for (const command of commands) {
    const { verdict, text } = summarizeCommand(command);
    const member = excluded(command.command);
    const whom = member === undefined ? addressed(command, fleetSize, known) : nameOf(member, known);
    const why = command.note ? `, because: ${command.note}` : '';
    events.push({
      key: `command/${command.id}`, atMs: command.time_ms, kind: 'command', severity: verdict === 'bad' ? 'error' : 'info',
      name: whom, text: `${commandName(command.command)}: ${text}${why}`, by: [command.by || console, ...(own.has(command.id) ? ['this page'] : [])].join(', '),
    });
  }
  for (const { id, command, seenAtMs, text, bad } of older) {
    events.push({
      key: `older/${id}`, atMs: seenAtMs, kind: 'command', severity: bad ? 'error' : 'info', name: 'Before',
      text: `${commandName(command)}: ${text}`, by: byId.get(id) ?? 'before the ground service started, or another console',
    });
  }
  for (const { key, line } of log) {
    const sender = known.get(line.id);
    events.push({
      key: `log/${key}`, atMs: line.at_ms, kind: 'log', severity: line.severity,
      name: sender ? displayName(sender) : line.id, text: withNames(line.text, known), by: '',
    });
  }
  for (const alarm of alarms) {
    events.push({
      key: alarm.key, atMs: alarm.sinceMs, kind: 'alarm', severity: alarm.level === 'alarm' ? 'error' : 'warning', name: alarm.name,
      text: alarm.text, by: '',
    });
    if (alarm.endedMs !== undefined) {
      events.push({ key: `${alarm.key}/end`, atMs: alarm.endedMs, kind: 'alarm', severity: 'info', name: alarm.name, text: `over: ${alarm.text}`, by: '' });
    }
  }
  return events.sort((a, b) => b.atMs - a.atMs).slice(0, TIMELINE_MAX);
}

/** "14:03:27", UTC. */
export function utc(startedUnixMs: number, atMs: number): string {
  return new Date(startedUnixMs + atMs).toISOString().slice(11, 19);
}

/** "T+02:10", since the flight began; empty outside a flight. */
export function flightTime(flight: FlightClock, atMs: number): string {
  if (typeof flight !== 'object' || atMs < flight.startedAtMs) return '';
  if (flight.endedAtMs !== undefined && atMs > flight.endedAtMs) return '';
  return `T+${clock(atMs - flight.startedAtMs)}`;
}
