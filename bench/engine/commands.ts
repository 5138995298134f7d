// What the parent asks of a worker process, and what the worker answers. A command is the worker's argument, an answer a
// line on its standard output.

export type Command =
  LoadCommand | LatencyCommand | TailsCommand | LoneCommand | HoldCommand | RecoverCommand | QuietCommand;

interface OnDatabase {
  readonly url: string;
}

/** Workflows with no-op steps, always the same number in flight. */
export interface LoadCommand extends OnDatabase {
  readonly task: 'load';
  readonly steps: number;
  readonly rounds: number;
  readonly roundMs: number;
  /** Also runs the loop written by hand, in turns with the library. Everstep on Postgres only. */
  readonly byHand?: boolean;
}

export interface LoadAnswer {
  /** Workflows per second in each round. */
  readonly rates: number[];
  readonly byHandRates: number[];
  /** As the server has counted them; 0 if it does not for this database. */
  readonly statementsPerWorkflow: number;
}

/** One workflow after the other. */
export interface LatencyCommand extends OnDatabase {
  readonly task: 'latency';
  readonly steps: readonly number[];
  readonly caseMs: number;
}

export interface LatencyAnswer {
  readonly cases: readonly { readonly steps: number; readonly median: number; readonly p99: number }[];
}

/** One workflow after the other, beside bare INSERTs. Postgres only. */
export interface TailsCommand extends OnDatabase {
  readonly task: 'tails';
  readonly steps: number;
  readonly durationMs: number;
}

export interface TailsAnswer {
  readonly samples: number;
  /** p50, p90, p99 and p99.9, in milliseconds. */
  readonly workflow: readonly number[];
  readonly insert: readonly number[];
  /** Of the time of the slowest 1 %. */
  readonly inCommits: number;
  readonly inCollections: number;
  /** Of the slowest 1 %, those during which the engine sent another statement. */
  readonly besideStatements: number;
}

/** What the driver is asked to do for a workflow that runs alone. Everstep only. */
export interface LoneCommand extends OnDatabase {
  readonly task: 'lone';
  readonly steps: readonly number[];
}

export interface LoneAnswer {
  readonly cases: readonly { readonly steps: number; readonly commits: number; readonly reads: number }[];
}

/** Starts workflows that stop half-way and never go on; the parent kills the process then. */
export interface HoldCommand extends OnDatabase {
  readonly task: 'hold';
  readonly workflows: number;
}

/** Goes on with workflows that are left behind, and ends when as many as given have succeeded. */
export interface RecoverCommand extends OnDatabase {
  readonly task: 'recover';
  readonly workflows: number;
}

export interface RecoverAnswer {
  readonly firstStepMs: number;
  readonly allDoneMs: number;
  /** From launch until the last workflow has begun, without group commits. Everstep only. */
  readonly statements?: number;
}

/** Launches and does nothing (`idle`), stands by for a take-over (`watch`), or keeps workflows asleep (`sleepers`). */
export type QuietCommand = IdleCommand | WatchCommand | SleepersCommand;

export interface IdleCommand extends OnDatabase {
  readonly task: 'idle';
  readonly windowMs: number;
}

export interface IdleAnswer {
  readonly statementsPerMinute: number;
}

export interface WatchCommand extends OnDatabase {
  readonly task: 'watch';
}

export interface SleepersCommand extends OnDatabase {
  readonly task: 'sleepers';
  readonly workflows: number;
}

export interface SleepersAnswer {
  readonly heapBytesPerWorkflow: number;
}

/** A moment that the parent waits for. */
export interface Moment {
  readonly moment: 'ready' | 'continued';
  /** Epoch milliseconds. */
  readonly at: number;
}

const MARK = '@@';

/** Sends an answer. Libraries may log to the same output; the mark tells an answer from that. */
export function answer(value: unknown): void {
  process.stdout.write(`${MARK}${JSON.stringify(value)}\n`);
}

/** Reads an answer; undefined for any other line. */
export function readAnswer(line: string): unknown {
  return line.startsWith(MARK) ? (JSON.parse(line.slice(MARK.length)) as unknown) : undefined;
}

export function now(moment: Moment['moment']): Moment {
  return { moment, at: Date.now() };
}
