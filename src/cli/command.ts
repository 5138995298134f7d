// What a command is: a row of the table that drives parsing, help and the reference page, and what it does.
import type { Clock } from '../base/clock.js';
import { EXIT, CommandFailure } from './failure.js';
import { flag, type Options, type Values } from './option.js';
import type { Paper } from './paper.js';
import { ProgressLine, type Terminal } from './terminal.js';

/** Where a command runs. */
export interface Scene {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
  /** The current directory. */
  readonly folder: string;
  readonly clock: Clock;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** The answer of a command: data for programs, and a text for people. */
export interface Output {
  readonly json: unknown;
  text(paper: Paper): string;
  /** 0 unless given. */
  readonly exitCode?: number;
}

/** What stands behind the name of a command, besides options. */
export interface Parameter {
  readonly name: string;
  readonly about: string;
  readonly takes: 'one' | 'optional' | 'any' | 'several';
}

export interface Given<O extends Options> {
  readonly options: Values<O>;
  readonly args: readonly string[];
}

export interface CommandSpec<O extends Options> {
  /** The words that call it, such as `workflow list`. */
  readonly name: string;
  readonly about: string;
  /** Further sentences for its help and the reference page. */
  readonly details?: string;
  readonly parameter?: Parameter;
  readonly options: O;
  readonly examples: readonly (readonly [line: string, about: string])[];
  /** Nothing is given by a command that has written its answer by itself. */
  run(scene: Scene, given: Given<O>): Promise<Output | void>;
}

export type Command = CommandSpec<Options>;

/** Gives a command its place in the table, where the types of its own options are forgotten. */
export function command<const O extends Options>(spec: CommandSpec<O>): Command {
  return spec;
}

/** Other words for the first word of commands. */
export const GROUPS: Readonly<Record<string, { readonly about: string; readonly aliases: readonly string[] }>> = {
  workflow: { about: 'Look at workflows and act on them', aliases: ['workflows', 'wf'] },
  queue: { about: 'Look at queues and change them', aliases: ['queues', 'q'] },
  schedule: { about: 'Look at schedules and change them', aliases: ['schedules'] },
  version: { about: 'Look at application versions and choose the latest', aliases: ['versions'] },
  postgres: { about: 'Run a Postgres server for development', aliases: ['pg'] },
};

export const HELP = flag('Show this help', { short: 'h' });
export const JSON_FLAG = { json: flag('Write JSON for programs instead of text for people') };
export const YES_FLAG = { yes: flag('Do it without asking', { short: 'y' }) };

/** Shows the state after a change. `otherwise` says why nothing was changed. */
export function changeOutput(output: Output & { readonly json: object }, changed: boolean, otherwise: string): Output {
  return {
    json: { ...output.json, changed },
    text: (paper) => `${changed ? '' : `${otherwise}\n\n`}${output.text(paper)}`,
  };
}

export function progressOn({ terminal, clock }: Scene): ProgressLine {
  return new ProgressLine(terminal, () => clock.now());
}

/** Asks before something that cannot be undone. Fails unless the answer is yes. */
export async function confirm(scene: Scene, question: string, isSure: boolean): Promise<void> {
  if (isSure) return;
  const answer = await scene.terminal.ask(`${question} [y/N] `, scene.signal);
  scene.signal.throwIfAborted();
  if (/^y(es)?$/i.test(answer)) return;
  throw new CommandFailure('Nothing was changed. Answer "y", or pass --yes to skip the question.', EXIT.failed);
}
