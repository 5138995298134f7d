// The items of one commit: the statements that write them, and how each item is settled afterwards.
import type { Entry } from '../base/batcher.js';
import type { Sql } from '../sql/sql.js';
import type { Database } from './database.js';
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

/** A child workflow together with the parent's record of having started it. */
export interface ChildStart {
  readonly start: NewWorkflow;
  readonly checkpoint: Checkpoint;
}

/** What became of both. The record is only written if the child was created by this start. */
export interface ChildVerdict {
  readonly start: StartVerdict;
  readonly checkpoint: CheckpointVerdict;
}

export type Item =
  | { readonly kind: 'start'; readonly start: NewWorkflow }
  | { readonly kind: 'child'; readonly child: ChildStart }
  | { readonly kind: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'outcome'; readonly outcome: Outcome };

export type Verdict = StartVerdict | ChildVerdict | CheckpointVerdict | OutcomeVerdict;

export class WriteGroup {
  readonly statements: readonly Sql[];
  readonly #entries: readonly Entry<Item, Verdict>[];
  readonly #starts: NewWorkflow[] = [];
  readonly #checkpoints: Checkpoint[] = [];
  readonly #outcomes: Outcome[] = [];
  /** Outcomes that are written with their start, by the place of the start. */
  readonly #joined = new Map<Outcome, number>();

  constructor(entries: readonly Entry<Item, Verdict>[]) {
    this.#entries = entries;
    const ended = outcomesWithTheirStart(entries);
    for (const { item } of entries) this.#sort(item, ended);
    // Starts come first, so that a checkpoint and an outcome in the same commit find their workflow.
    const statements: Sql[] = [];
    if (this.#starts.length > 0) statements.push(insertWorkflows(this.#starts));
    if (this.#checkpoints.length > 0) statements.push(insertCheckpoints(this.#checkpoints));
    if (this.#outcomes.length > 0) statements.push(finishIfOwned(this.#outcomes));
    this.statements = statements;
  }

  /** Commits the statements and settles the entries. May be repeated as a whole. */
  async write(database: Database): Promise<void> {
    const results = await database.commit(this.statements);
    const starts = this.#starts.length === 0 ? [] : await judgeStarts(database, this.#starts, results.shift());
    const checkpoints =
      this.#checkpoints.length === 0 ? [] : await judgeCheckpoints(database, this.#checkpoints, results.shift());
    const outcomes = this.#outcomes.length === 0 ? [] : await judgeOutcomes(database, this.#outcomes, results.shift());
    const next = { start: 0, checkpoint: 0, outcome: 0 };
    for (const { item, resolve } of this.#entries) {
      switch (item.kind) {
        case 'start':
          resolve(starts[next.start++] as StartVerdict);
          break;
        case 'child':
          resolve({
            start: starts[next.start++] as StartVerdict,
            checkpoint: checkpoints[next.checkpoint++] as CheckpointVerdict,
          });
          break;
        case 'checkpoint':
          resolve(checkpoints[next.checkpoint++] as CheckpointVerdict);
          break;
        case 'outcome': {
          const start = this.#joined.get(item.outcome);
          const verdict =
            start === undefined ? outcomes[next.outcome++] : starts[start]?.kind === 'created' ? 'recorded' : 'lost';
          resolve(verdict as OutcomeVerdict);
          break;
        }
      }
    }
  }

  #sort(item: Item, ended: ReadonlyMap<string, Outcome>): void {
    switch (item.kind) {
      case 'start': {
        const outcome = ended.get(item.start.workflowID);
        if (outcome) this.#joined.set(outcome, this.#starts.length);
        this.#starts.push(outcome ? { ...item.start, outcome } : item.start);
        break;
      }
      case 'child':
        this.#starts.push(item.child.start);
        this.#checkpoints.push(item.child.checkpoint);
        break;
      case 'checkpoint':
        this.#checkpoints.push(item.checkpoint);
        break;
      case 'outcome':
        if (!this.#joined.has(item.outcome)) this.#outcomes.push(item.outcome);
        break;
    }
  }
}

/** Workflows that begin and end in one commit, without a checkpoint: one row instead of a row and its change. */
function outcomesWithTheirStart(entries: readonly Entry<Item, Verdict>[]): Map<string, Outcome> {
  const started = new Map<string, string | null>();
  const ended = new Map<string, Outcome>();
  for (const { item } of entries) {
    if (item.kind === 'start' && !started.has(item.start.workflowID))
      started.set(item.start.workflowID, item.start.owner);
    else if (item.kind === 'start') started.set(item.start.workflowID, null);
    else if (item.kind === 'checkpoint') started.delete(item.checkpoint.step.workflowID);
    else if (item.kind === 'outcome' && started.get(item.outcome.workflowID) === item.outcome.owner) {
      ended.set(item.outcome.workflowID, item.outcome);
    }
  }
  return ended;
}

/** The payload of an item in characters, to bound what goes into one commit. */
export function weigh(item: Item): number {
  switch (item.kind) {
    case 'start':
      return item.start.inputs?.length ?? 0;
    case 'child':
      return item.child.start.inputs?.length ?? 0;
    case 'checkpoint':
      return (item.checkpoint.step.output?.length ?? 0) + (item.checkpoint.step.error?.length ?? 0);
    case 'outcome':
      return (item.outcome.output?.length ?? 0) + (item.outcome.error?.length ?? 0);
  }
}
