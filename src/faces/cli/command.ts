// The shape of a command: a row of the table that drives parsing, help and the reference page, plus its run function.
import type { Clock } from '../../kernel/base/clock.js';
import { ProgressLine } from './commands/progress.js';
import { EXIT, CommandFailure } from './failure.js';
import { flag, type Options, type Values } from './option.js';
import type { RenderContext } from './render-context.js';
import type { Terminal } from './terminal.js';

/** What a command gets from the process that runs it. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
  /** The current directory. */
  readonly folder: string;
  readonly clock: Clock;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** A command's result: JSON for programs, text for people. */
export interface Output {
  readonly json: unknown;
  text(rendering: RenderContext): string;
  /** Defaults to 0. */
  readonly exitCode?: number;
}

/** A command's positional argument. */
export interface Parameter {
  readonly name: string;
  readonly about: string;
  readonly takes: 'one' | 'optional' | 'any' | 'some';
}

export interface Given<O extends Options> {
  readonly options: Values<O>;
  readonly args: readonly string[];
}

export interface CommandSpec<O extends Options> {
  /** As typed, such as `workflow list`. */
  readonly name: string;
  readonly about: string;
  /** More sentences for the help and the reference page. */
  readonly details?: string;
  readonly parameter?: Parameter;
  readonly options: O;
  readonly examples: readonly (readonly [line: string, about: string])[];
  /** Returns nothing if the command has printed its result itself. */
  run(context: CommandContext, given: Given<O>): Promise<Output | void>;
}

export type Command = CommandSpec<Options>;

/** Checks a command's own option types, then erases them for the table. */
export function command<const O extends Options>(spec: CommandSpec<O>): Command {
  return spec;
}

/** Command groups: the first word of their commands, with its aliases. */
export const GROUPS: Readonly<Record<string, { readonly about: string; readonly aliases: readonly string[] }>> = {
  workflow: { about: 'Inspect and manage workflows', aliases: ['workflows', 'wf'] },
  retention: { about: 'Delete and archive old workflows', aliases: [] },
  history: { about: 'Manage the stored events of workflows', aliases: [] },
  index: { about: 'Build and drop indexes for lists of workflows', aliases: ['indexes'] },
  queue: { about: 'Inspect and manage queues', aliases: ['queues', 'q'] },
  schedule: { about: 'Inspect and manage schedules', aliases: ['schedules'] },
  version: { about: 'List application versions and set the latest', aliases: ['versions'] },
  receiver: { about: 'Inspect and manage the dead letters of receivers', aliases: ['receivers'] },
  outbox: { about: 'Inspect and manage the outbox in your own database', aliases: [] },
  postgres: { about: 'Run a development Postgres server', aliases: ['pg'] },
};

export const HELP = flag('Show this help', { short: 'h' });
export const JSON_FLAG = { json: flag('Print JSON instead of text') };
export const YES_FLAG = { yes: flag('Skip the confirmation prompt', { short: 'y' }) };

/** The state after a change. `otherwise` says why nothing changed. */
export function changeOutput(output: Output & { readonly json: object }, changed: boolean, otherwise: string): Output {
  return {
    json: { ...output.json, changed },
    text: (rendering) => `${changed ? '' : `${otherwise}\n\n`}${output.text(rendering)}`,
  };
}

export function progressOn({ terminal, clock }: CommandContext): ProgressLine {
  return new ProgressLine(terminal, () => clock.now());
}

/** Asks before an irreversible change. Fails unless the answer is yes. */
export async function confirm(context: CommandContext, question: string, isSure: boolean): Promise<void> {
  if (isSure) return;
  const answer = await context.terminal.ask(`${question} [y/N] `, context.signal);
  context.signal.throwIfAborted();
  if (/^y(es)?$/i.test(answer)) return;
  throw new CommandFailure('Nothing was changed. Answer "y", or pass --yes to skip the question.', EXIT.failed);
}
