/**
 * The operator's commands on the page, in one table. A command that the service has and this table has not does not
 * compile.
 */
import type { Command } from './model';

type NameOf<C> = C extends string ? C : keyof C;
/** A command without its value. */
export type CommandName = NameOf<Command>;

/** A button of the emergency bar. */
export interface Emergency {
  /** The letter that presses it. */
  readonly key: string;
  /** Whether it asks once more. */
  readonly confirm: boolean;
  readonly help: string;
}

interface Row {
  readonly name: string;
  /** It takes an aircraft out of its flight, and is tried for longer. */
  readonly recovers: boolean;
  readonly emergency?: Emergency;
}

const COMMANDS: Record<CommandName, Row> = {
  setup: { name: 'Setup', recovers: false },
  start: { name: 'Start', recovers: false },
  hold: {
    name: 'Hold', recovers: true,
    emergency: { key: 'h', confirm: false, help: 'Stop and hold position. Sent immediately.' },
  },
  return: {
    name: 'Return', recovers: true,
    emergency: { key: 'r', confirm: false, help: 'Return to launch and land there. Sent immediately.' },
  },
  land: {
    name: 'Land', recovers: true,
    emergency: { key: 'l', confirm: true, help: 'Land where it is. Asks once more.' },
  },
  recover_control: {
    name: 'Recover control', recovers: true,
    emergency: {
      key: 'c', confirm: true,
      help: 'Hand over to the pilot: the companion computer commands nothing any more. Asks once more.',
    },
  },
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

/** The buttons, in the order of the table. */
export const EMERGENCIES = Object.entries(COMMANDS).flatMap(([command, { emergency }]) =>
  emergency === undefined ? [] : [{ command: command as Extract<Command, string>, ...emergency }],
);
