/**
 * The operator's commands on the page, in one table. A command that the service has and this table has not does not
 * compile.
 */
import type { Command } from './model';

type NameOf<C> = C extends string ? C : keyof C;
/** A command without its value. */
export type CommandName = NameOf<Command>;

interface Row {
  readonly name: string;
  /** It takes an aircraft out of its flight, and is tried for longer. */
  readonly recovers: boolean;
}

const COMMANDS: Record<CommandName, Row> = {
  setup: { name: 'Set up', recovers: false },
  start: { name: 'Start', recovers: false },
  hold: { name: 'Hold', recovers: true },
  return: { name: 'Return', recovers: true },
  land: { name: 'Land', recovers: true },
  recover_control: { name: 'Recover control', recovers: true },
  resume: { name: 'Resume', recovers: false },
  engage: { name: 'Engage', recovers: false },
  set_parameters: { name: 'Set parameters', recovers: false },
  exclude: { name: 'Exclude', recovers: false },
};

const nameOf = (command: Command): CommandName =>
  typeof command === 'string' ? command : (Object.keys(command)[0] as keyof typeof command);

/** For people. A command that a newer service has keeps its own name. */
export const commandName = (command: Command): string => COMMANDS[nameOf(command)]?.name ?? nameOf(command);

/** For tests and styles. */
export const commandId = (command: Command): string => nameOf(command);

export const isRecovery = (command: Command): boolean => COMMANDS[nameOf(command)].recovers;

/** The aircraft that a command excludes. */
export const excluded = (command: Command): string | undefined =>
  typeof command === 'object' ? command.exclude.member : undefined;
