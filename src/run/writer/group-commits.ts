// Commits groups of items, and keeps one item from failing or delaying the others:
//
//   committed ──► each item gets its verdict
//   the database is away, busy or full ──► wait, and repeat the group
//   an item can never be written ──► halve the group until the item is alone, and reject it
//   an item is blocked by a lock, or by a condition that the others do not have ──► set it aside, and what follows in its
//   lane: the caller tries again later
import type { Entry } from '../../kernel/base/batcher.js';
import {
  DatabaseAccessError,
  DatabaseStatementError,
  UnexplainedRefusalError,
} from '../../kernel/errors/database-errors.js';
import type { Database } from '../../database/database.js';
import type { Bus } from '../../database/notify/bus.js';
import { classifyFailure, RetryPauses, type RetryOptions, UNEXPLAINED_MAX } from '../../database/retry.js';
import { findLocked } from '../rows/owners.js';
import { BrokenLanes, laneOf } from './lanes.js';
import { callOf, type Item, type Verdict, WriteGroup, workflowsOf, writerOf } from './write-group.js';

export type WriterEntry = Entry<Item, Verdict>;

export interface GroupCommitsOptions extends Omit<RetryOptions, 'isIdempotent' | 'signal'> {
  readonly signal: AbortSignal;
  /** The error that a caller got who does not wait any more. */
  givenUp(call: object): Error | undefined;
  /** Notifies other processes of messages and events. */
  readonly bus?: Pick<Bus, 'afterCommit'>;
  /** The answer to a commit came late. Since then, the workflows of these runs may have been lost. */
  onLate(workflowIDs: readonly string[]): void;
}

/** What could not be written yet, in order, and why. */
export interface Blocked {
  readonly entries: readonly WriterEntry[];
  readonly reason: unknown;
}

/** How long a commit waits for a lock while items of the group are told apart. */
export const ISOLATION_LOCK_TIMEOUT_MS = 50;
/** Failures of a statement, other than lock timeouts, before the group is taken apart: most pass. */
const PATIENCE = 3;
/** Failed commits in a row while a group is taken apart, before a pause: perhaps no item can be written. */
const ISOLATION_MAX = 32;
/** From sending a commit to its answer. */
const LATE_MS = 250;
const LOCK_TIMEOUT = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';

export class GroupCommits {
  readonly #database: Database;
  readonly #options: GroupCommitsOptions;
  readonly #broken = new BrokenLanes();
  /** How often an entry was refused without a reason. */
  readonly #refusals = new WeakMap<WriterEntry, number>();
  /** The groups whose commits have no answer yet. */
  readonly #inFlight = new Set<readonly WriterEntry[]>();
  /** What callers wait for, of commits that failed without an answer. The next attempt finds out whether it is written. */
  readonly #unknown = new WeakSet<object>();
  #waiting = 0;
  #trouble: Error | undefined;

  constructor(database: Database, options: GroupCommitsOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Whether a group waits until the database is back, has room, or is free. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Why the last commit failed; undefined if it did not. */
  get trouble(): Error | undefined {
    return this.#trouble;
  }

  /** Whether what a caller waits for may be written already. */
  mayBeWritten(call: object): boolean {
    if (this.#unknown.has(call)) return true;
    for (const group of this.#inFlight) if (group.some(({ item }) => callOf(item) === call)) return true;
    return false;
  }

  /** Writes the entries in order and settles them, except those that it returns. Rejects only if stopped. */
  async write(entries: readonly WriterEntry[], lockTimeoutMs: number): Promise<Blocked> {
    const pass = new Pass(entries);
    for (const group of inGroups(entries)) await this.#write(group, pass, lockTimeoutMs);
    return pass.blocked();
  }

  async #write(entries: readonly WriterEntry[], pass: Pass, lockTimeoutMs: number): Promise<void> {
    const ready = entries.filter((entry) => this.#admit(entry, pass));
    if (ready.length === 0) return;
    const group = new WriteGroup(ready);
    const pauses = new RetryPauses(this.#options);
    for (;;) {
      try {
        const refused = await this.#commit(group, ready, lockTimeoutMs);
        pauses.onSuccess();
        this.#trouble = undefined;
        pass.onCommit();
        return this.#retryRefused(refused, pass);
      } catch (error) {
        if (this.#options.signal.aborted) throw error;
        this.#trouble = error as Error;
        if (classifyFailure(error) === 'unknown') {
          for (const { item } of ready) this.#unknown.add(callOf(item) ?? item);
        }
        const isBad = this.#isBad(error) || isDenied(error, ready);
        if (isBad || this.#isIsolated(error, pauses, pass)) return this.#isolate(ready, error, { isBad, pass });
        await this.#pause(pauses, error);
        pass.onPause();
        if (ready.some(({ item }) => this.#droppedError(item))) return this.#write(ready, pass, lockTimeoutMs);
      }
    }
  }

  async #commit(group: WriteGroup, entries: readonly WriterEntry[], lockTimeoutMs: number): Promise<WriterEntry[]> {
    const { bus, clock } = this.#options;
    const sentAt = clock.monotonic();
    const onCommitted = (): void => {
      if (clock.monotonic() - sentAt > LATE_MS) this.#options.onLate(entries.flatMap(runOf));
    };
    this.#inFlight.add(entries);
    try {
      return await group.write(this.#database, { bus, lockTimeoutMs, onCommitted });
    } finally {
      this.#inFlight.delete(entries);
    }
  }

  async #pause(pauses: RetryPauses, error: unknown): Promise<void> {
    const isForAll = !isOfStatement(error);
    if (isForAll) this.#waiting += 1;
    try {
      await pauses.next(error);
    } finally {
      if (isForAll) this.#waiting -= 1;
    }
  }

  /** False if the entry must not be written: it was given up, or an earlier one of its lane failed or is blocked. */
  #admit(entry: WriterEntry, pass: Pass): boolean {
    const error = this.#droppedError(entry.item) ?? this.#broken.errorFor(entry.item);
    if (error !== undefined) entry.reject(error);
    return error === undefined && !pass.isBlocked(entry);
  }

  /** What the caller was told who does not wait for the item any more, if it is certainly not written. */
  #droppedError(item: Item): Error | undefined {
    const call = callOf(item);
    return call && !this.#unknown.has(call) ? this.#options.givenUp(call) : undefined;
  }

  /** Whether one of the items can never be written. */
  #isBad(error: unknown): boolean {
    const failure = classifyFailure(error);
    return failure === 'final' || (failure === 'condition' && !this.#options.isPatient);
  }

  /** Whether to find out which items a failed statement is about. If the database is away, all have to wait. */
  #isIsolated(error: unknown, pauses: RetryPauses, pass: Pass): boolean {
    if (!isOfStatement(error)) return false;
    const isDue = isLockTimeout(error) || pass.isIsolating || pauses.failures + 1 >= PATIENCE;
    return isDue && pass.failures < ISOLATION_MAX;
  }

  async #isolate(
    entries: readonly WriterEntry[],
    error: unknown,
    { isBad, pass }: { readonly isBad: boolean; readonly pass: Pass },
  ): Promise<void> {
    const [only] = entries;
    if (only && entries.length === 1) {
      if (isBad) this.#reject(only, error);
      else pass.block(only, error);
      return;
    }
    pass.onFailure(isBad);
    const hasLocked = isLockTimeout(error) && (await this.#blockLocked(entries, error, pass));
    const middle = entries.length >> 1;
    const parts = hasLocked ? [entries] : [entries.slice(0, middle), entries.slice(middle)];
    for (const part of parts) await this.#write(part, pass, ISOLATION_LOCK_TIMEOUT_MS);
  }

  /** Blocks the entries whose workflows are locked by others. False if there are none: the lock is elsewhere. */
  async #blockLocked(entries: readonly WriterEntry[], error: unknown, pass: Pass): Promise<boolean> {
    const locked = await this.#findLocked(entries);
    const affected = entries.filter(({ item }) => workflowsOf(item).some((workflowID) => locked.has(workflowID)));
    for (const entry of affected) pass.block(entry, error);
    return affected.length > 0;
  }

  async #findLocked(entries: readonly WriterEntry[]): Promise<ReadonlySet<string>> {
    try {
      return await findLocked(
        this.#database,
        entries.flatMap(({ item }) => workflowsOf(item)),
        ISOLATION_LOCK_TIMEOUT_MS,
      );
    } catch (error) {
      if (this.#options.signal.aborted) throw error;
      // The whole table is locked, or the database is away. The next attempt shows it.
      return new Set();
    }
  }

  #retryRefused(refused: readonly WriterEntry[], pass: Pass): void {
    for (const entry of refused) {
      const refusals = (this.#refusals.get(entry) ?? 0) + 1;
      this.#refusals.set(entry, refusals);
      const error = new UnexplainedRefusalError(describe(entry.item));
      if (refusals < UNEXPLAINED_MAX) pass.block(entry, error);
      else this.#reject(entry, error);
    }
  }

  #reject(entry: WriterEntry, error: unknown): void {
    this.#broken.add(entry.item, error);
    entry.reject(error);
  }
}

/** One pass over a list of entries: what it has to leave, and whether it is taking groups apart. */
class Pass {
  readonly #entries: readonly WriterEntry[];
  readonly #blocked = new Set<WriterEntry>();
  /** The first blocked entry of each lane, by its index. */
  readonly #lanes = new Map<string, number>();
  #indexes: ReadonlyMap<WriterEntry, number> | undefined;
  #reason: unknown;
  isIsolating = false;
  /** Commits that failed in a row while no item was known to be bad. */
  failures = 0;

  constructor(entries: readonly WriterEntry[]) {
    this.#entries = entries;
  }

  block(entry: WriterEntry, reason: unknown): void {
    const lane = laneOf(entry.item);
    this.#reason = reason;
    this.#blocked.add(entry);
    this.#lanes.set(lane, Math.min(this.#lanes.get(lane) ?? Infinity, this.#indexOf(entry)));
  }

  /** True if the entry is blocked, or follows a blocked one in its lane. */
  isBlocked(entry: WriterEntry): boolean {
    if (this.#lanes.size === 0) return false;
    const first = this.#lanes.get(laneOf(entry.item));
    if (first === undefined || this.#indexOf(entry) < first) return false;
    this.#blocked.add(entry);
    return true;
  }

  blocked(): Blocked {
    const entries = this.#blocked.size === 0 ? [] : this.#entries.filter((entry) => this.#blocked.has(entry));
    return { entries, reason: this.#reason };
  }

  /** Made when the first entry is blocked, which is rare. */
  #indexOf(entry: WriterEntry): number {
    this.#indexes ??= new Map(this.#entries.map((one, index) => [one, index]));
    return this.#indexes.get(entry) ?? 0;
  }

  onCommit(): void {
    this.failures = 0;
  }

  onPause(): void {
    this.failures = 0;
  }

  onFailure(isBad: boolean): void {
    if (isBad) return;
    this.isIsolating = true;
    this.failures += 1;
  }
}

/** The workflow whose run waits for the item. */
function runOf({ item }: WriterEntry): string[] {
  const run = item.kind === 'start' ? item.start : writerOf(item);
  return run ? [run.workflowID] : [];
}

/** Whether the error may be about some items only. Others are about the database. */
function isOfStatement(error: unknown): boolean {
  return error instanceof DatabaseStatementError || error instanceof DatabaseAccessError;
}

/** Whether a right is missing that only callers need who can be told. A workflow waits until it is granted. */
function isDenied(error: unknown, entries: readonly WriterEntry[]): boolean {
  if (!(error instanceof DatabaseAccessError) || !entries.every(({ item }) => callOf(item))) return false;
  return (error.cause as { readonly code?: unknown } | undefined)?.code === INSUFFICIENT_PRIVILEGE;
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof DatabaseStatementError && error.sqlState === LOCK_TIMEOUT;
}

/**
 * Consecutive groups with one run per workflow at most. If two runs of a workflow shared a commit, a returned key would not
 * say which of them has written.
 */
function* inGroups(entries: readonly WriterEntry[]): Generator<readonly WriterEntry[]> {
  let owners = new Map<string, string>();
  let start = 0;
  for (let index = 0; index < entries.length; index += 1) {
    const { item } = entries[index] as WriterEntry;
    const writer = item.kind === 'start' ? undefined : writerOf(item);
    if (!writer) continue;
    const { workflowID, owner } = writer;
    if ((owners.get(workflowID) ?? owner) !== owner) {
      yield entries.slice(start, index);
      start = index;
      owners = new Map();
    }
    owners.set(workflowID, owner);
  }
  yield start === 0 ? entries : entries.slice(start);
}

/** Completes "the database refused …". */
function describe(item: Item): string {
  switch (item.kind) {
    case 'start':
      return `to create workflow "${item.start.workflowID}"`;
    case 'child':
      return `to create workflow "${item.child.start.workflowID}"`;
    case 'send':
      return `a message to workflow "${item.send.sending.message.destinationID}"`;
    default:
      return `to record the outcome of workflow "${writerOf(item)?.workflowID}"`;
  }
}
