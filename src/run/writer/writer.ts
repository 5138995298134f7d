// The group writer. Starts, checkpoints, messages, events, stream values and outcomes of all runs in the process share
// commits: what is submitted while one is in flight forms the next. A batch is one transaction with at most one statement
// per kind of row. Each item's promise settles after its commit.
//
// On Postgres several commits may be in flight, none of which depends on another (item-keys.ts).
//
// Every statement writes what its guard allows and returns the keys written. A missing item was refused by its guard, and a
// lookup finds out why. The lookup also settles a batch that is retried after a commit of unknown outcome: it recognises
// what the first attempt wrote.
//
// Items of a run are written in order of submission, and once one has failed, no later one is written. So an effect that
// goes through the writer is never visible before everything its run recorded earlier is durable. An item that is blocked
// holds back its run only (parked-items.ts).
import { Batcher } from '../../kernel/base/batcher.js';
import type { Clock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import {
  CommitUnknownError,
  DatabaseClosedError,
  DatabaseUnavailableError,
} from '../../kernel/errors/database-errors.js';
import type { Database } from '../../database/database.js';
import type { JournalEntry } from '../../features/history/journal.sql.js';
import type { Checkpoint } from '../rows/steps.js';
import type { Bus } from '../../database/notify/bus.js';
import type { Refill } from '../../features/queue/refills.sql.js';
import type { NewWorkflow, Outcome } from '../rows/workflows.js';
import { CallerLimit } from './caller-limit.js';
import { GroupCommits, ISOLATION_LOCK_TIMEOUT_MS, type WriterEntry } from './group-commits.js';
import { keysOf } from './item-keys.js';
import { ParkedItems } from './parked-items.js';
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
} from './write-group.js';
import type { CheckpointVerdict, OutcomeVerdict, StartVerdict } from './writer-verdicts.js';

export interface WriterOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** Notifies other processes of messages and events. */
  readonly bus?: Pick<Bus, 'afterCommit'>;
  /**
   * Whether to wait out conditions of the database that may need an operator, such as missing privileges. Otherwise the
   * item is rejected.
   */
  readonly isPatient?: boolean;
  /** How long callers outside of workflows wait for a write. Default: until it is made. */
  readonly callTimeoutMs?: number;
  /** Commits in flight at most. Default: as many as the database supports, up to 4. */
  readonly commitsMax?: number;
  /** How many items that wait are worth another commit beside those in flight. */
  readonly parallelItemsMin?: number;
  /** Items in one commit at most. */
  readonly itemsMax?: number;
  /** The most characters of payload per commit; a larger item is committed alone. */
  readonly charactersMax?: number;
  /** The backlog at which new starts have to wait. */
  readonly backlogMax?: number;
}

const ITEMS_MAX = 1000;
const CHARACTERS_MAX = 4_000_000;
const BACKLOG_MAX = 10_000;
const COMMITS_MAX = 4;
/** Items that are worth a commit of their own. */
const PARALLEL_ITEMS_MIN = 128;
/** How long a commit may take before others do not wait for it. */
const PATIENCE_MS = 100;
/** Characters from which an item has a commit of its own, beside which others go on. */
const HEAVY_CHARACTERS = 1_000_000;
/** How long a commit waits for a lock before the items that are blocked are found and set aside. */
const LOCK_TIMEOUT_MS = 500;

interface Origin {
  /** A caller outside of workflows waits, who gets an error if a right is missing. */
  readonly isFromOutside?: boolean;
}

export class Writer {
  readonly #batcher: Batcher<Item, Verdict>;
  readonly #commits: GroupCommits;
  readonly #parked: ParkedItems;
  readonly #limit: CallerLimit;
  readonly #stopped = new AbortController();
  readonly #backlogMax: number;
  /** The answer to a commit came late. Since then, the workflows of these runs may have been lost. */
  onLate: (workflowIDs: readonly string[]) => void = () => {};

  constructor(database: Database, options: WriterOptions) {
    const { clock, logger, bus, isPatient, backlogMax = BACKLOG_MAX } = options;
    const { itemsMax = ITEMS_MAX, charactersMax: weightMax = CHARACTERS_MAX } = options;
    const bounds = { itemsMax, weightMax, weigh };
    const { signal } = this.#stopped;
    this.#backlogMax = backlogMax;
    this.#commits = new GroupCommits(database, {
      clock,
      logger,
      bus,
      isPatient,
      signal,
      givenUp: (call) => this.#limit.errorOf(call),
      onLate: (late) => this.onLate(late),
    });
    const { callTimeoutMs: limitMs = Infinity } = options;
    this.#limit = new CallerLimit({ clock, limitMs, explain: (call) => this.#explain(call, limitMs) });
    const write = (entries: readonly WriterEntry[]) => this.#commits.write(entries, ISOLATION_LOCK_TIMEOUT_MS);
    this.#parked = new ParkedItems({ write, clock, logger, signal, bounds });
    const flushesMax = Math.min(options.commitsMax ?? COMMITS_MAX, database.commitsMax ?? 1);
    this.#batcher = new Batcher<Item, Verdict>({
      flush: (batch) => this.#flush(batch),
      backlogMax,
      ...bounds,
      parallel: {
        flushesMax,
        keysOf,
        itemsMin: options.parallelItemsMin ?? PARALLEL_ITEMS_MIN,
        patienceMs: PATIENCE_MS,
        heavyMin: flushesMax > 1 ? HEAVY_CHARACTERS : Infinity,
        clock,
        isWorthwhile: () => !this.#commits.isWaiting,
      },
    });
  }

  /** Resolves when the backlog has room for new work; undefined if it already has. Work in progress never waits. */
  room({ isFromOutside = false }: Origin = {}): Promise<void> | undefined {
    const room = this.#parked.size < this.#backlogMax ? this.#batcher.room() : this.#parked.idle();
    return room && isFromOutside ? this.#limit.wait(room, room) : room;
  }

  /** A promise that depends on the start or send, for a caller who does not wait longer than the limit. */
  inTime<T>(call: NewWorkflow | Send, promise: Promise<T>): Promise<T> {
    return this.#limit.wait(call, promise);
  }

  /** Creates a workflow. */
  start(start: NewWorkflow, origin?: Origin): Promise<StartVerdict> {
    return this.#submit<StartVerdict>({ kind: 'start', start, ...origin });
  }

  /** Creates a child workflow and its parent's checkpoint of it, both or neither. */
  startChild(child: ChildStart): Promise<ChildVerdict> {
    return this.#submit<ChildVerdict>({ kind: 'child', child });
  }

  checkpoint(checkpoint: Checkpoint, { relaxed = false, isEffect = false } = {}): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'checkpoint', checkpoint, relaxed, isEffect });
  }

  /** Sends a message, together with the sender's checkpoint if there is one. */
  send(send: Send, origin?: Origin): Promise<SendVerdicts> {
    return this.#submit<SendVerdicts>({ kind: 'send', send, ...origin });
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

  /** Adds an event to the journal, if the run owns its workflow. */
  journal(entry: JournalEntry): Promise<CheckpointVerdict> {
    return this.#submit<CheckpointVerdict>({ kind: 'journal', entry });
  }

  /** Records an outcome, and fills the slot of the run in the same commit if there is a refill. */
  finish(outcome: Outcome, refill?: Refill): Promise<OutcomeVerdict> {
    return this.#submit<OutcomeVerdict>({ kind: 'outcome', outcome, refill });
  }

  /** Changes with each commit; undefined while there is nothing to write. */
  get progress(): number | undefined {
    return this.#batcher.isIdle ? undefined : this.#batcher.flushCount;
  }

  /** Resolves when everything submitted is written. */
  async idle(): Promise<void> {
    do {
      await this.#batcher.idle();
      await this.#parked.idle();
    } while (!this.#batcher.isIdle);
  }

  /** Flushes the backlog and rejects further items. Waits for the database if it is unreachable. */
  async close(): Promise<void> {
    await this.#batcher.close(closedError());
    await this.idle();
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

  /** The error for a caller who has waited for too long. */
  #explain(call: object, limitMs: number): Error {
    const cause = this.#commits.trouble;
    const late = `The system database has not stored it within ${limitMs / 1000} seconds${cause ? `: ${cause.message}` : '.'}`;
    return this.#commits.mayBeWritten(call)
      ? new CommitUnknownError(`${late} ${nameOf(call)} may be stored nevertheless. ${repeatOf(call)}`, { cause })
      : new DatabaseUnavailableError(`${late} ${nameOf(call)} will not be stored.`, { cause });
  }

  /** What could not be written now waits beside the main stream, and with it what follows in its lane. */
  async #flush(batch: readonly WriterEntry[]): Promise<void> {
    const parked = this.#parked;
    const isHeld = (entry: WriterEntry): boolean => parked.holds(entry);
    if (parked.size > 0) parked.add({ entries: batch.filter(isHeld), reason: undefined });
    const ready = parked.size > 0 ? batch.filter((entry) => !isHeld(entry)) : batch;
    if (ready.length > 0) parked.add(await this.#commits.write(ready, LOCK_TIMEOUT_MS));
  }
}

function nameOf(call: object): string {
  if (isStart(call)) return `Workflow "${call.workflowID}"`;
  return isSend(call) ? `The message to workflow "${call.sending.message.destinationID}"` : 'It';
}

/** What is safe although it may have been stored. */
function repeatOf(call: object): string {
  return isStart(call)
    ? 'To start it again with this ID takes effect once.'
    : 'To send it again with the same idempotency key takes effect once.';
}

function isStart(call: object): call is NewWorkflow {
  return 'workflowID' in call;
}

function isSend(call: object): call is Send {
  return 'sending' in call;
}

function closedError(): DatabaseClosedError {
  return new DatabaseClosedError('Everstep is shutting down; the change was not recorded.');
}
