// Waits for rows written in this process or another. All waiters for one kind of row share queries, which run when a wait
// begins, after a notification, and at intervals in case a notification was lost.
import type { AwaitedRow } from '../features/parking/waits.sql.js';
import { type Clock, sleep, type Timer } from '../kernel/base/clock.js';
import type { RemoteClock } from '../kernel/base/remote-clock.js';
import type { DLogger } from '../kernel/base/log.js';
import { Service } from '../kernel/base/service.js';

export interface RowWatcherOptions<Lookup, Row> {
  readonly clock: Clock;
  /** The clock by which waits end. */
  readonly databaseClock: RemoteClock;
  readonly logger: DLogger;
  readonly pollMs: number;
  /** The row of each lookup, in order; undefined if it does not exist yet. */
  find(lookups: readonly Lookup[]): Promise<readonly (Row | undefined)[]>;
  /** Throws for an invalid lookup, which would fail all others in a shared query. */
  check?(lookup: Lookup): void;
  /** The keys that wake the waiters of a lookup. */
  keysOf(lookup: Lookup): readonly string[];
  /** The row of a lookup, if a workflow that waits for it may be parked. */
  awaited?(lookup: Lookup): AwaitedRow;
  /** Notifies other processes that this one waits; repeated with every poll. */
  announce?(lookup: Lookup): void;
  /** Retries a query until the database is back or the operator stops. */
  retrying<T>(find: () => Promise<T>): Promise<T>;
  /** Wraps a wait, during which the caller is blocked. With `wait`, it may be suspended and begun again. */
  whileWaiting<T>(begin: (suspended?: AbortSignal) => Promise<T>, wait?: Wait): Promise<T>;
}

/** What a caller waits for. */
export interface Wait {
  /** The row; undefined for a time. */
  readonly awaited: AwaitedRow | undefined;
  /** When it ends at the latest, by the database's clock. */
  readonly endsAt: number | undefined;
  /** Whether it is what an operation in flight does. A sleep is recorded when it begins. */
  readonly isOperation: boolean;
  /** Whether it only limits other waits: by itself it neither parks the workflow nor makes the run count as waiting. */
  readonly isLimit?: boolean;
  /** False until a query has found nothing. Only then is the time limit recorded, without which the wait would start over. */
  isBegun?: boolean;
}

export interface WaitLimits {
  /** Rejects the wait with its reason. */
  readonly signal?: AbortSignal;
  /** By the operator's `databaseClock`. */
  readonly deadlineAt?: number;
  /** Called once, if the first query finds nothing. */
  readonly onEmpty?: () => void;
  /** How often to query without a notification. Default: the watcher's interval. */
  readonly pollMs?: number;
  /** Whether the caller waits for other rows as well, in one operation. */
  readonly isPart?: boolean;
}

interface Waiter<Lookup, Row> {
  readonly lookup: Lookup;
  readonly keys: readonly string[];
  readonly pollMs: number | undefined;
  onEmpty: (() => void) | undefined;
  /** Runs out after `pollMs`. */
  timer?: Timer;
  resolve(row: Row): void;
  reject(error: Error): void;
}

/** What a wait is rejected with at its deadline. */
const TIME_UP = new Error('The time is up.');

/** Maximum number of lookups in one query. */
const LOOKUPS_MAX = 1000;

export class RowWatcher<Lookup, Row> {
  readonly #options: RowWatcherOptions<Lookup, Row>;
  readonly #waiters = new Set<Waiter<Lookup, Row>>();
  readonly #byKey = new Map<string, Set<Waiter<Lookup, Row>>>();
  readonly #pending = new Set<Waiter<Lookup, Row>>();
  readonly #service: Service;
  #isFinding = false;
  #stopReason: Error | undefined;

  constructor(options: RowWatcherOptions<Lookup, Row>) {
    this.#options = options;
    this.#service = new Service(
      (signal) => this.#poll(signal),
      (error) => options.logger.error(error),
    );
  }

  get hasWaiters(): boolean {
    return this.#waiters.size > 0;
  }

  get waiterCount(): number {
    return this.#waiters.size;
  }

  /** Rejects all waiters, present and future. */
  async stop(reason: Error): Promise<void> {
    this.#stopReason = reason;
    for (const waiter of this.#waiters) {
      waiter.timer?.cancel();
      waiter.reject(reason);
    }
    this.#waiters.clear();
    this.#byKey.clear();
    await this.#service.stop();
  }

  /** Resolves to the row; rejects with the signal's reason if that aborts first. */
  wait(lookup: Lookup, limits: WaitLimits = {}): Promise<Row> {
    const { deadlineAt, isPart = false } = limits;
    const awaited = this.#options.awaited?.(lookup);
    const wait: Wait | undefined = awaited && { awaited, endsAt: deadlineAt, isOperation: !isPart, isBegun: false };
    const onEmpty = (): void => {
      limits.onEmpty?.();
      if (wait) wait.isBegun = true;
    };
    return this.#options.whileWaiting((suspended) => this.#wait(lookup, { ...limits, onEmpty }, suspended), wait);
  }

  /** Rejects with TIME_UP at the deadline. `suspended` rejects the wait like `signal`. */
  #wait(lookup: Lookup, limits: WaitLimits, suspended: AbortSignal | undefined): Promise<Row> {
    const { signal, onEmpty, pollMs, deadlineAt } = limits;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      if (this.#stopReason) return reject(this.#stopReason);
      this.#options.check?.(lookup);
      const over = deadlineAt === undefined ? undefined : new AbortController();
      const done = (): void => {
        signal?.removeEventListener('abort', onAbort);
        suspended?.removeEventListener('abort', onAbort);
        // With a reason: the default one is an error with a stack.
        over?.abort(over);
      };
      const waiter: Waiter<Lookup, Row> = {
        lookup,
        keys: this.#options.keysOf(lookup),
        onEmpty,
        pollMs,
        resolve(row) {
          done();
          resolve(row);
        },
        reject(error) {
          done();
          reject(error);
        },
      };
      const onAbort = ({ target }: Event): void => {
        this.#remove(waiter);
        waiter.reject((target as AbortSignal).reason as Error);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      suspended?.addEventListener('abort', onAbort, { once: true });
      this.#add(waiter);
      if (over && deadlineAt !== undefined) this.#rejectAt(waiter, deadlineAt, over.signal);
    });
  }

  #rejectAt(waiter: Waiter<Lookup, Row>, deadlineAt: number, over: AbortSignal): void {
    this.#options.databaseClock.reached(deadlineAt, over).then(
      () => {
        this.#remove(waiter);
        waiter.reject(TIME_UP);
      },
      () => {
        // The wait is over, or the operator has stopped, which ends it as well.
      },
    );
  }

  /** Waits until a deadline; undefined when it has passed. Queries at least once. */
  async waitUntil(lookup: Lookup, options: WaitLimits): Promise<Row | undefined> {
    const { deadlineAt, signal } = options;
    if (deadlineAt === undefined) return this.wait(lookup, options);
    const { databaseClock } = this.#options;
    signal?.throwIfAborted();
    if (deadlineAt <= databaseClock.earliest()) return this.#findOnce(lookup);
    try {
      return await this.wait(lookup, options);
    } catch (error) {
      if (error !== TIME_UP) throw error;
      // A short limit may end before the first query.
      return this.#findOnce(lookup);
    }
  }

  /** Whether something here waits under this key. */
  isAwaited(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Something may have changed under this key, or under any. */
  wake(key?: string): void {
    const woken = key === undefined ? this.#waiters : this.#byKey.get(key);
    for (const waiter of woken ?? []) this.#pending.add(waiter);
    this.#scheduleFind();
  }

  /** Deferred with setImmediate, so that waits started in the same tick share the query. */
  #scheduleFind(): void {
    if (this.#pending.size === 0 || this.#isFinding) return;
    this.#isFinding = true;
    setImmediate(() => void this.#findPending());
  }

  async #findOnce(lookup: Lookup): Promise<Row | undefined> {
    this.#options.check?.(lookup);
    return (await this.#options.retrying(() => this.#options.find([lookup])))[0];
  }

  async #findPending(): Promise<void> {
    try {
      while (this.#pending.size > 0) {
        const waiters = [...this.#pending].slice(0, LOOKUPS_MAX);
        for (const waiter of waiters) this.#pending.delete(waiter);
        const rows = await this.#options.find(waiters.map((waiter) => waiter.lookup));
        waiters.forEach((waiter, index) => this.#settle(waiter, rows[index]));
      }
    } catch (error) {
      this.#options.logger.debug(`A lookup failed and will be retried: ${(error as Error).message}`);
    } finally {
      this.#isFinding = false;
    }
  }

  #settle(waiter: Waiter<Lookup, Row>, row: Row | undefined): void {
    if (!this.#waiters.has(waiter)) return;
    if (row !== undefined) {
      this.#remove(waiter);
      waiter.resolve(row);
      return;
    }
    waiter.onEmpty?.();
    waiter.onEmpty = undefined;
  }

  #add(waiter: Waiter<Lookup, Row>): void {
    this.#waiters.add(waiter);
    for (const key of waiter.keys) this.#byKey.set(key, (this.#byKey.get(key) ?? new Set()).add(waiter));
    this.#options.announce?.(waiter.lookup);
    this.#service.start();
    this.#find(waiter);
    this.#arm(waiter);
  }

  #find(waiter: Waiter<Lookup, Row>): void {
    this.#pending.add(waiter);
    this.#scheduleFind();
  }

  /** Polls for a waiter that has an interval of its own. */
  #arm(waiter: Waiter<Lookup, Row>): void {
    if (waiter.pollMs === undefined) return;
    waiter.timer = this.#options.clock.after(waiter.pollMs, () => {
      this.#find(waiter);
      this.#arm(waiter);
    });
  }

  #remove(waiter: Waiter<Lookup, Row>): void {
    waiter.timer?.cancel();
    this.#waiters.delete(waiter);
    this.#pending.delete(waiter);
    for (const key of waiter.keys) {
      const sharing = this.#byKey.get(key);
      sharing?.delete(waiter);
      if (sharing?.size === 0) this.#byKey.delete(key);
    }
  }

  /** Runs only while there are waiters. */
  async #poll(signal: AbortSignal): Promise<void> {
    const { clock, pollMs } = this.#options;
    while (this.#waiters.size > 0) {
      await sleep(clock, pollMs * (0.75 + Math.random() / 2), signal);
      for (const waiter of this.#waiters) {
        this.#options.announce?.(waiter.lookup);
        if (waiter.pollMs === undefined) this.#pending.add(waiter);
      }
      this.#scheduleFind();
    }
  }
}
