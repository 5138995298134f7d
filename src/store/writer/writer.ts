// The group writer. Starts, checkpoints, messages, events, stream values and outcomes of all runs in the process share
// commits: what is submitted while one is in flight forms the next. A batch is one transaction with at most one statement
// per kind of row. Each item's promise settles after its commit.
//
// Every statement writes what its guard allows and returns the keys written. A missing item was refused by its guard, and a
// lookup finds out why. The lookup also settles a batch that is retried after a commit of unknown outcome: it recognises
// what the first attempt wrote.
//
// Items are written in order of submission, and once an item of a run has failed, no later one is written. So an effect
// that goes through the writer is never visible before everything its run recorded earlier is durable.
import { Batcher, type Entry } from '../../base/batcher.js';
import type { Clock } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { DatabaseClosedError } from '../../model/errors/database-errors.js';
import type { Database } from '../database.js';
import { classifyFailure, type RetryOptions, withRetry } from '../retry.js';
import type { Checkpoint } from '../runs/steps.js';
import type { Bus } from '../notify/bus.js';
import type { NewWorkflow, Outcome } from '../runs/workflows.js';
import {
  type Append,
  type ChildStart,
  type ChildVerdict,
  type Item,
  type Send,
  type SendVerdicts,
  type SetEvent,
  type Verdict,
  weigh,
  WriteGroup,
  writerOf,
} from './write-group.js';
import type { CheckpointVerdict, OutcomeVerdict, StartVerdict } from './writer-verdicts.js';

export interface WriterOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** Notifies other processes of messages and events. */
  readonly bus?: Pick<Bus, 'afterCommit'>;
  /** Items in one commit at most. */
  readonly itemsMax?: number;
  /** The most characters of payload per commit; a larger item is committed alone. */
  readonly charactersMax?: number;
  /** The backlog at which new starts have to wait. */
  readonly backlogMax?: number;
}

const ITEMS_MAX = 500;
const CHARACTERS_MAX = 4_000_000;
const BACKLOG_MAX = 10_000;
/** Failed runs to remember. They are few, and only those with items in the backlog matter. */
const BROKEN_MAX = 1000;

export class Writer {
  readonly #database: Database;
  readonly #batcher: Batcher<Item, Verdict>;
  readonly #stopped = new AbortController();
  readonly #retry: RetryOptions;
  readonly #bus: WriterOptions['bus'];
  /** The runs of which an item could not be written, and why, by their owner token. */
  readonly #broken = new Map<string, unknown>();

  constructor(database: Database, options: WriterOptions) {
    this.#database = database;
    this.#bus = options.bus;
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

  /** Resolves when the backlog has room for new work; undefined if it already has. Work in progress never waits. */
  room(): Promise<void> | undefined {
    return this.#batcher.room();
  }

  /** Creates a workflow. */
  start(start: NewWorkflow): Promise<StartVerdict> {
    return this.#submit<StartVerdict>({ kind: 'start', start });
  }

  /** Creates a child workflow and its parent's checkpoint of it, both or neither. */
  startChild(child: ChildStart): Promise<ChildVerdict> {
    return this.#submit<ChildVerdict>({ kind: 'child', child });
  }

  checkpoint(checkpoint: Checkpoint, { relaxed = false } = {}): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'checkpoint', checkpoint, relaxed });
  }

  /** Sends a message, together with the sender's checkpoint if there is one. */
  send(send: Send): Promise<SendVerdicts> {
    return this.#submit<SendVerdicts>({ kind: 'send', send });
  }

  /** Consumes the message in the checkpoint and writes the checkpoint. */
  receive(checkpoint: Checkpoint): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'receipt', checkpoint });
  }

  /** Sets an event, together with its checkpoint. */
  setEvent(set: SetEvent): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'event', set });
  }

  /** Appends a value to a stream, together with the writer's checkpoint if there is one. */
  append(append: Append): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'stream', append });
  }

  finish(outcome: Outcome): Promise<OutcomeVerdict> {
    return this.#submit<OutcomeVerdict>({ kind: 'outcome', outcome });
  }

  /** Changes with each commit; undefined while there is nothing to write. */
  get progress(): number | undefined {
    return this.#batcher.isIdle ? undefined : this.#batcher.flushCount;
  }

  /** Resolves when everything submitted is written. */
  idle(): Promise<void> {
    return this.#batcher.idle();
  }

  /** Flushes the backlog and rejects further items. Waits for the database if it is unreachable. */
  close(): Promise<void> {
    return this.#batcher.close(closedError());
  }

  /** Like `close`, but does not wait for an unreachable database. */
  async abandon(): Promise<void> {
    this.#stopped.abort(closedError());
    await this.close();
  }

  /** The verdict has the kind of its item. */
  #submit<V extends Verdict>(item: Item): Promise<V> {
    return this.#batcher.submit(item) as Promise<V>;
  }

  async #flush(batch: readonly Entry<Item, Verdict>[]): Promise<void> {
    const accepted = this.#broken.size === 0 ? batch : batch.filter((entry) => !this.#refuse(entry));
    if (accepted.length === 0) return;
    try {
      await this.#write(accepted);
    } catch (error) {
      if (classifyFailure(error) !== 'final' || this.#stopped.signal.aborted) throw error;
      const [only] = accepted;
      if (only && accepted.length === 1) this.#reject(only, error);
      // One bad item fails the whole statement. Written one by one, only that item fails.
      else for (const entry of accepted) await this.#writeAlone(entry);
    }
  }

  async #writeAlone(entry: Entry<Item, Verdict>): Promise<void> {
    if (this.#refuse(entry)) return;
    try {
      await this.#write([entry]);
    } catch (error) {
      this.#reject(entry, error);
    }
  }

  #reject({ item, reject }: Entry<Item, Verdict>, error: unknown): void {
    const owner = item.kind === 'start' ? undefined : writerOf(item)?.owner;
    if (owner !== undefined && item.kind !== 'outcome') this.#broken.set(owner, error);
    const [oldest] = this.#broken.keys();
    if (oldest !== undefined && this.#broken.size > BROKEN_MAX) this.#broken.delete(oldest);
    reject(error);
  }

  /** Rejects items of a run after one that could not be written. Only its outcome may follow. */
  #refuse({ item, reject }: Entry<Item, Verdict>): boolean {
    const owner = item.kind === 'start' ? undefined : writerOf(item)?.owner;
    if (owner === undefined || !this.#broken.has(owner)) return false;
    const error = this.#broken.get(owner);
    if (item.kind === 'outcome') return !this.#broken.delete(owner);
    reject(error);
    return true;
  }

  /** Every statement is guarded, so the batch can be retried. */
  #write(batch: readonly Entry<Item, Verdict>[]): Promise<void> {
    const group = new WriteGroup(batch);
    return withRetry(() => group.write(this.#database, this.#bus), this.#retry);
  }
}

function closedError(): DatabaseClosedError {
  return new DatabaseClosedError('Everstep is shutting down; the change was not recorded.');
}
