/** What became of a command: the failures first, and one line for the whole. */
import type { Command, FleetCommand, FleetCommandResult, VehicleOutcome } from '../api/model';
import { nameOf, withNames, type ById } from './avoidance';
import { plural } from './format';
import type { Aircraft } from './state';

/** Worst first. */
export const OUTCOMES: readonly VehicleOutcome[] = ['failed', 'expired', 'sending', 'accepted', 'effect_seen'];

export interface CommandSummary {
  readonly counts: Readonly<Record<VehicleOutcome, number>>;
  /** Worst outcome first, then as the service lists them. */
  readonly results: readonly FleetCommandResult[];
  /** `bad`: an aircraft failed; `busy`: not all are done; `done`: the effect was seen on all. */
  readonly verdict: 'bad' | 'busy' | 'done';
  /** "2 failed, 7 effect seen". */
  readonly text: string;
}

export function summarizeCommand(command: FleetCommand): CommandSummary {
  const counts: Record<VehicleOutcome, number> = { failed: 0, expired: 0, sending: 0, accepted: 0, effect_seen: 0 };
  for (const { outcome } of command.results) counts[outcome] += 1;
  const results = command.results.toSorted((a, b) => OUTCOMES.indexOf(a.outcome) - OUTCOMES.indexOf(b.outcome));
  const busy = counts.sending + counts.accepted > 0 || results.length === 0;
  const verdict = counts.failed + counts.expired > 0 ? 'bad' : busy ? 'busy' : 'done';
  const words: Record<VehicleOutcome, string> = {
    failed: 'failed',
    expired: 'without a seen effect',
    sending: 'sending',
    accepted: 'accepted',
    effect_seen: 'effect seen',
  };
  const text = OUTCOMES.filter((outcome) => counts[outcome] > 0)
    .map((outcome) => `${counts[outcome]} ${words[outcome]}`)
    .join(', ');
  return { counts, results, verdict, text: text || 'no aircraft addressed' };
}

/** Reasons that stand next to the last command; *Each aircraft* has the others. */
const REASONS_MAX = 2;

/** Returns why a command had no effect, one line for all aircraft with the same reason: "UAV 1, UAV 2: no mission". */
export function reasons(command: FleetCommand, known: ById): string[] {
  const groups = new Map<string, string[]>();
  for (const { vehicle, outcome, detail } of summarizeCommand(command).results) {
    if (outcome !== 'failed' && outcome !== 'expired') continue;
    groups.set(detail, [...(groups.get(detail) ?? []), known.has(vehicle) ? nameOf(vehicle, known) : vehicle]);
  }
  const lines = [...groups].filter(([detail]) => detail !== '').map(([detail, names]) => {
    const who = names.length > 4 ? `${plural(names.length, 'aircraft', 'aircraft')}` : names.join(', ');
    return `${who}: ${withNames(detail, known)}`;
  });
  const more = lines.length - REASONS_MAX;
  return more > 0 ? [...lines.slice(0, REASONS_MAX), `${plural(more, 'other reason', 'other reasons')} below Each aircraft`] : lines;
}

/** A command as the page sent it, from the key press until the ground service shows it. */
export interface Sending {
  readonly id: string;
  readonly command: Command;
  readonly vehicles: readonly string[];
  /** Whom it addresses, in words. */
  readonly scope: string;
  readonly state: 'sending' | 'sent' | 'failed';
  /** The time of the key press, milliseconds since 1970 by the ground service's clock. */
  readonly atUnixMs: number;
  /** When the ground service accepted it, by the page's clock; absent before. */
  readonly sentAtMs?: number;
  /** The start of the ground service that it was sent to, milliseconds since 1970; 0 where none has answered yet. */
  readonly serviceUnixMs: number;
  /** What the last attempt met; empty if nothing yet. */
  readonly reason: string;
}

/** The ground service reports a command that it accepted with its next update, five times a second. */
const REPORTED_WITHIN_MS = 5_000;

/** The line of a command that the ground service does not report; `bad`: the operator must act. */
export function unreported({ state, reason, sentAtMs }: Sending, nowMs: number): { text: string; bad: boolean } {
  if (state === 'failed') return { text: `not sent: ${reason}`, bad: true };
  if (state === 'sending') return { text: reason ? `${reason}, trying again` : 'sending to the ground service', bad: false };
  if (sentAtMs === undefined || nowMs - sentAtMs < REPORTED_WITHIN_MS) return { text: 'accepted by the ground service', bad: false };
  return { text: 'result not known: the ground service accepted it and reports nothing of it. Check the states of the aircraft and reload the page.', bad: true };
}

export interface HistoryItem {
  readonly id: string;
  readonly command: Command;
  readonly local: Sending | undefined;
  readonly remote: FleetCommand | undefined;
}

/**
 * Returns the commands of the service and those that only the page has, newest first by the ground service's clock. A command
 * that an earlier service took is left out: only the aircraft can report its result (`olderCommands`).
 */
export function history(remote: readonly FleetCommand[], local: readonly Sending[], startedUnixMs: number): HistoryItem[] {
  const known = new Set(remote.map(({ id }) => id));
  const unanswered = local.filter((sending) => !known.has(sending.id) && !isOfEarlierService(sending, startedUnixMs));
  const locals = new Map(local.map((sending) => [sending.id, sending]));
  const items = [
    ...remote.map((command) => ({
      atUnixMs: startedUnixMs + command.time_ms,
      item: { id: command.id, command: command.command, local: locals.get(command.id), remote: command },
    })),
    ...unanswered.map((sending) => ({
      atUnixMs: sending.atUnixMs,
      item: { id: sending.id, command: sending.command, local: sending, remote: undefined },
    })),
  ];
  // The later of two with one time stands first.
  return items.toReversed().toSorted((a, b) => b.atUnixMs - a.atUnixMs).map(({ item }) => item);
}

/** Whether a ground service took the command that has ended since. */
export const isOfEarlierService = ({ state, serviceUnixMs }: Sending, startedUnixMs: number): boolean =>
  state === 'sent' && serviceUnixMs !== startedUnixMs;

/** Whom a command of the service went to, in words. */
export function addressed(command: FleetCommand, fleetSize: number, known?: ById): string {
  const count = command.results.length;
  const [first] = command.results;
  if (count === fleetSize && count > 1) return `all ${count}`;
  return count === 1 && first && known ? nameOf(first.vehicle, known) : plural(count, 'aircraft', 'aircraft');
}

/** A command that the aircraft report and the ground service does not: it was given before the service started, or elsewhere. */
export interface OlderCommand {
  readonly id: string;
  readonly command: Command;
  /** By the ground service's clock, when the page first received it. */
  readonly seenAtMs: number;
  readonly results: readonly FleetCommandResult[];
  readonly text: string;
  readonly bad: boolean;
}

/**
 * What became of commands that the ground service knows nothing of, by the aircraft's own account. Whether others were addressed
 * too is not known; an aircraft keeps its last 8.
 */
export function olderCommands(
  fleet: readonly Aircraft[],
  known: ReadonlySet<string>,
  before: readonly OlderCommand[],
  timeMs: number,
): OlderCommand[] {
  const reported = new Map<string, { command: Command; results: FleetCommandResult[] }>();
  for (const { fleet: { status } } of fleet) {
    for (const { id, command, stage, detail } of status?.commands ?? []) {
      if (known.has(id)) continue;
      const entry = reported.get(id) ?? { command, results: [] };
      reported.set(id, entry);
      if (status) entry.results.push({ vehicle: status.id, outcome: stage, detail });
    }
  }
  return [...reported].map(([id, { command, results }]) => {
    const { text, verdict } = summarizeCommand({ id, command, time_ms: 0, results });
    const seenAtMs = before.find((one) => one.id === id)?.seenAtMs ?? timeMs;
    return { id, command, seenAtMs, results, text: `${text} (as far as the aircraft in contact report)`, bad: verdict === 'bad' };
  });
}
