// The group writer. Starts, checkpoints and outcomes of all runs in the process share commits: what is submitted
// while one commit is on its way to disk forms the next. A batch is at most three statements in one transaction, and
// each item's promise settles after that commit.
//
// Every statement inserts or updates what its guard allows and returns the keys it has written. An item that is
// missing there lost against its guard, and a look at the tables tells why. That look also settles a batch that
// is sent again after a commit of unknown outcome: what the first attempt has written is found to be ours.
import { Batcher, type Entry } from '../base/batcher.js';
import type { Clock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import { DatabaseClosedError } from '../model/database-errors.js';
import type { Sql } from '../sql/sql.js';
import type { Database } from './database.js';
import { classifyFailure, type RetryOptions, withRetry } from './retry.js';
import { type Checkpoint, insertCheckpoints } from './steps.js';
import { finishIfOwned, insertWorkflows, type NewWorkflow, type Outcome } from './workflows.js';
import {
  type CheckpointVerdict,
  judgeCheckpoints,
  judgeOutcomes,
  judgeStarts,
  type OutcomeVerdict,
  type StartVerdict,
} from './writer-verdicts.js';

type Item =
  | { readonly kind: 'start'; readonly start: NewWorkflow }
  | { readonly kind: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'outcome'; readonly outcome: Outcome };

type Verdict = StartVerdict | CheckpointVerdict | OutcomeVerdict;

export interface WriterOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** Items in one commit at most. */
  readonly itemsMax?: number;
  /** Characters of payload in one commit at most; a single larger item goes alone. */
  readonly charactersMax?: number;
  /** Waiting items beyond which new starts are held back. */
  readonly backlogMax?: number;
}

const ITEMS_MAX = 500;
const CHARACTERS_MAX = 4_000_000;
const BACKLOG_MAX = 10_000;

export class Writer {
  readonly #database: Database;
  readonly #batcher: Batcher<Item, Verdict>;
  readonly #stopped = new AbortController();
  readonly #retry: RetryOptions;

  constructor(database: Database, options: WriterOptions) {
    this.#database = database;
    this.#retry = {
      clock: options.clock,
      logger: options.logger,
      signal: this.#stopped.signal,
      isIdempotent: true,
    };
    this.#batcher = new Batcher<Item, Verdict>({
      flush: (batch) => this.#flush(batch),
      weigh,
      itemsMax: options.itemsMax ?? ITEMS_MAX,
      weightMax: options.charactersMax ?? CHARACTERS_MAX,
      backlogMax: options.backlogMax ?? BACKLOG_MAX,
    });
  }

  /** Creates a workflow. New work waits while the backlog is full; work under way never does. */
  async start(start: NewWorkflow): Promise<StartVerdict> {
    const room = this.#batcher.room();
    if (room) await room;
    // Not urgent: a workflow that takes no step has its outcome ready in the same turn, and shares the commit.
    return this.#submit<StartVerdict>({ kind: 'start', start }, false);
  }

  checkpoint(checkpoint: Checkpoint): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'checkpoint', checkpoint });
  }

  finish(outcome: Outcome): Promise<OutcomeVerdict> {
    return this.#submit<OutcomeVerdict>({ kind: 'outcome', outcome });
  }

  /** Writes what was accepted and refuses anything further. While the database is away it waits for it. */
  close(): Promise<void> {
    return this.#batcher.close(closedError());
  }

  /** Like `close`, but gives up on what a database that is away keeps from being written. */
  async abandon(): Promise<void> {
    this.#stopped.abort(closedError());
    await this.close();
  }

  /** The verdict has the kind of its item. */
  #submit<V extends Verdict>(item: Item, isUrgent = true): Promise<V> {
    return this.#batcher.submit(item, { isUrgent }) as Promise<V>;
  }

  async #flush(batch: readonly Entry<Item, Verdict>[]): Promise<void> {
    try {
      await this.#write(batch);
    } catch (error) {
      if (batch.length === 1 || classifyFailure(error) !== 'final' || this.#stopped.signal.aborted) throw error;
      // One bad item fails the whole statement. Alone, only the guilty fails.
      for (const entry of batch) await this.#write([entry]).catch(entry.reject);
    }
  }

  /** Commits the entries and settles each. Every statement is guarded, so the whole may be repeated. */
  #write(batch: readonly Entry<Item, Verdict>[]): Promise<void> {
    const starts: NewWorkflow[] = [];
    const checkpoints: Checkpoint[] = [];
    const outcomes: Outcome[] = [];
    for (const { item } of batch) {
      if (item.kind === 'start') starts.push(item.start);
      else if (item.kind === 'checkpoint') checkpoints.push(item.checkpoint);
      else outcomes.push(item.outcome);
    }
    const statements: Sql[] = [];
    if (starts.length > 0) statements.push(insertWorkflows(starts));
    if (checkpoints.length > 0) statements.push(insertCheckpoints(checkpoints));
    if (outcomes.length > 0) statements.push(finishIfOwned(outcomes));

    const database = this.#database;
    const attempt = async (): Promise<void> => {
      const results = await database.commit(statements);
      const verdicts = {
        start: starts.length === 0 ? [] : await judgeStarts(database, starts, results.shift()),
        checkpoint: checkpoints.length === 0 ? [] : await judgeCheckpoints(database, checkpoints, results.shift()),
        outcome: outcomes.length === 0 ? [] : await judgeOutcomes(database, outcomes, results.shift()),
      };
      const next = { start: 0, checkpoint: 0, outcome: 0 };
      for (const { item, resolve } of batch) resolve(verdicts[item.kind][next[item.kind]++] as Verdict);
    };
    return withRetry(attempt, this.#retry);
  }
}

function closedError(): DatabaseClosedError {
  return new DatabaseClosedError('Everstep is shutting down in this process; the change was not recorded.');
}

function weigh(item: Item): number {
  switch (item.kind) {
    case 'start':
      return item.start.inputs?.length ?? 0;
    case 'checkpoint':
      return (item.checkpoint.step.output?.length ?? 0) + (item.checkpoint.step.error?.length ?? 0);
    case 'outcome':
      return (item.outcome.output?.length ?? 0) + (item.outcome.error?.length ?? 0);
  }
}
