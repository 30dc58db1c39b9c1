/**
 * What a screen reader announces: changes of state, not of numbers, and one sentence for many aircraft that
 * change alike.
 */
import { avoidanceOf, byId, nameOf, type ById } from './avoidance';
import { commandName } from '../api/commands';
import { plural, stateWords } from './format';
import { summarizeCommand } from './commands';
import { displayName } from './sort';
import type { Aircraft, FleetState } from './state';

/** More names than this are counted instead of listed. */
const NAMES_MAX = 3;

export function announcements(before: FleetState, after: FleetState): string[] {
  if (before.receivedAtMs === undefined) return [];
  const groups = new Map<string, Aircraft[]>();
  const add = (what: string, aircraft: Aircraft) => groups.set(what, [...(groups.get(what) ?? []), aircraft]);
  const old = new Map(before.aircraft.map((aircraft) => [aircraft.fleet.address, aircraft]));
  const conflicts: [Aircraft, string][] = [];
  for (const aircraft of after.aircraft) {
    const was = old.get(aircraft.fleet.address);
    if (was === aircraft) continue;
    if (was === undefined) {
      add('new in the fleet', aircraft);
      continue;
    }
    const [a, b] = [was.fleet, aircraft.fleet];
    if (a.link !== b.link) add(b.link === 'lost' ? 'contact lost' : 'in contact', aircraft);
    if (!a.status || !b.status) continue;
    if (a.status.flight_controller.link !== b.status.flight_controller.link) {
      add(b.status.flight_controller.link === 'lost' ? 'flight controller lost' : 'flight controller back', aircraft);
    }
    if (!a.status.failsafe && b.status.failsafe) add('taken over by a failsafe of its flight controller', aircraft);
    else if (a.status.engaged && !b.status.engaged) add('taken over by the pilot', aircraft);
    if (a.status.state !== b.status.state) add(stateWords(b.status.state), aircraft);
    if (!a.status.separation?.alarmed && b.status.separation?.alarmed) add('too near to another aircraft', aircraft);
    const avoiding = avoidanceOf(b.status)?.avoiding;
    if (avoiding != null && avoidanceOf(a.status)?.avoiding !== avoiding) conflicts.push([aircraft, avoiding]);
  }
  const sentences = [...groups].map(([what, aircraft]) => `${names(aircraft, after.aircraft.length)}: ${what}.`);
  return [...conflictSentences(conflicts, byId(after.aircraft)), ...sentences, ...commandSentences(before, after)];
}

function conflictSentences(conflicts: readonly [Aircraft, string][], known: ById): string[] {
  if (conflicts.length > NAMES_MAX) return [`${plural(conflicts.length, 'aircraft', 'aircraft')} more in conflict.`];
  return conflicts.map(([aircraft, other]) => `${displayName(aircraft)}: in conflict with ${nameOf(other, known)}.`);
}

function commandSentences(before: FleetState, after: FleetState): string[] {
  if (before.commands === after.commands) return [];
  const old = new Map(before.commands.map((command) => [command.id, summarizeCommand(command)]));
  return after.commands.flatMap((command) => {
    const summary = summarizeCommand(command);
    const was = old.get(command.id);
    if (was && was.verdict === summary.verdict && was.counts.failed === summary.counts.failed) return [];
    return [`${commandName(command.command)}: ${summary.text}.`];
  });
}

function names(aircraft: readonly Aircraft[], fleetSize: number): string {
  if (aircraft.length === fleetSize && fleetSize > 1) return `All ${fleetSize}`;
  return aircraft.length <= NAMES_MAX ? aircraft.map(displayName).join(', ') : `${aircraft.length} aircraft`;
}
