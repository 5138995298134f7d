// A consumer with a handler. It leases messages, has the handler run on them and writes what became of each.
//
//   pending ──claim──► buffered ──a worker is free──► running ──► done: deleted
//      ▲                  │                              ├──────► dead: moved to the dead letters
//      ├──────────────────┴─ stopped, or an outage ──────┤
//      └───────────────── retry, after a delay ──────────┘
//
// The process may end at any point: the lease runs out, and the message is pending again.
import { randomUUID } from 'node:crypto';
import type { Deadline } from '../../../kernel/base/time-limit.js';
import { deferred, type Deferred } from '../../../kernel/base/deferred.js';
import { DueLoop } from '../../../kernel/base/due-loop.js';
import { DatabaseClosedError } from '../../../kernel/errors/errors.js';
import type { Transaction } from '../database.js';
import { blockedMs, type Consumer, type ConsumerHost, reported } from './consumer.js';
import { claim, nextDue, toDelay } from './fetching.js';
import { Handling, type HandlingOptions } from './handling.js';
import { type Lease, Leases } from './leases.js';
import { CircuitBreaker, RateLimiter } from './limits.js';
import { byID, type FetchedRow, toFetched } from './message.js';
import type { Outcome } from './outcomes.js';
import { Settler, toSettlement } from './settling.js';

export interface LeasedOptions extends HandlingOptions {
  readonly queue: string;
}

/** How many messages that met an outage are passed over before the first of them is tried again. */
const PASSED_OVER_MAX = 1000;
/** After its signal aborts, a handler gets this long to return, and what came of it as long to be written. */
const ABORT_MS = 1000;

export class LeasedConsumer implements Consumer {
  readonly queue: string;
  readonly #host: ConsumerHost;
  readonly #options: LeasedOptions;
  readonly #loop: DueLoop;
  readonly #leases: Leases;
  readonly #settler: Settler;
  readonly #breaker: CircuitBreaker;
  readonly #handling: Handling;
  readonly #rate: RateLimiter | undefined;
  readonly #buffer: Lease[] = [];
  #running = 0;
  /** Whether the last fetch may have left messages that are due. */
  #hasMore = false;
  /** Looks in a row that found rows due and got none. */
  #blocked = 0;
  /** Rows that were tried since the breaker opened. Others go first: one of these may be at fault. */
  #passedOver: string[] = [];
  #isStopping = false;
  #drained: Deferred<void> | undefined;

  constructor(host: ConsumerHost, options: LeasedOptions) {
    this.#host = host;
    this.#options = options;
    this.queue = options.queue;
    const { clock, logger, database, table, dlqTable } = host;
    const { leaseMs, rateLimit, breaker, pollMs = host.pollMs } = options.settings;
    this.#leases = new Leases(host, leaseMs);
    this.#settler = new Settler({ clock, database, table, dlqTable, leaseMs });
    this.#breaker = new CircuitBreaker(clock, breaker);
    this.#handling = new Handling(host, options, this.#breaker);
    this.#rate = rateLimit && new RateLimiter(clock, rateLimit.max, rateLimit.perMs);
    this.#loop = new DueLoop({
      clock,
      logger,
      subject: `messages of "${options.queue}"`,
      maxMs: pollMs,
      sweep: reported(host, options.queue, () => this.#fetch()),
    });
  }

  start(): void {
    this.#isStopping = false;
    this.#handling.isAborted = false;
    this.#leases.start();
    this.#loop.start();
  }

  wake(): void {
    this.#loop.wake();
  }

  /** Stops to fetch, gives back what has not begun, and waits for the handlers. */
  async stop(deadline: Deadline): Promise<void> {
    this.#isStopping = true;
    this.#releaseBuffer();
    const fetched = this.#loop.stop();
    const draining = deadline.before(2 * ABORT_MS).within(this.#options.settings.drainMs);
    if (!(await draining.settles(this.#drain()))) {
      this.#handling.isAborted = true;
      this.#leases.abortAll(new DatabaseClosedError('The outbox is shutting down.'));
      await deadline.within(ABORT_MS).settles(this.#drain());
    }
    await deadline.settles(fetched);
    await deadline.settles(this.#leases.stop());
    await deadline.settles(this.#settler.close());
  }

  async #drain(): Promise<void> {
    if (this.#running === 0) return;
    this.#drained ??= deferred<void>();
    await this.#drained.promise;
  }

  /** Claims as many messages as there is room for. Returns how long until the next are due. */
  async #fetch(): Promise<number | undefined> {
    const { clock, database } = this.#host;
    if (this.#breaker.waitMs > 0) return this.#breaker.waitMs;
    if (!this.#breaker.isTripped) this.#passedOver = [];
    const room = this.#room();
    this.#hasMore = room === 0;
    // Woken when there is.
    if (room === 0) return undefined;
    const max = this.#rate ? this.#rate.allow(room) : room;
    if (max === 0) return this.#rate?.waitMs;
    const token = randomUUID();
    const fetchedAt = clock.monotonic();
    if (database.driver.dialect === 'sqlite') {
      // Look first: a claim takes the write lock.
      const delayMs = await database.transact((tx) => this.#nextDue(tx), { readOnly: true });
      if (delayMs === undefined || delayMs > 0) return delayMs;
    }
    const { rows, delayMs } = await database.transact(async (tx) => {
      const found = (await tx.run(claim(this.#pickOptions(max), token))).map(toFetched);
      return { rows: found, delayMs: found.length === max ? 0 : await this.#nextDue(tx) };
    });
    if (rows.length === 0 && this.#passedOver.length > 0) {
      // All were tried.
      this.#passedOver = [];
      return 0;
    }
    this.#rate?.spend(rows.length);
    this.#accept(rows, token, fetchedAt);
    this.#hasMore = rows.length === max;
    if (this.#hasMore) return 0;
    this.#blocked = rows.length === 0 && delayMs !== undefined && delayMs <= 0 ? this.#blocked + 1 : 0;
    return this.#blocked === 0 ? delayMs : blockedMs(this.#blocked);
  }

  async #nextDue(tx: Transaction): Promise<number | undefined> {
    const [row] = await tx.run(nextDue(this.#host.table, this.queue));
    return toDelay(row, this.#options.settings.leaseMs);
  }

  #pickOptions(max: number) {
    const { table, stateTable } = this.#host;
    const { topic, queue, settings } = this.#options;
    const { leaseMs, isOrdered } = settings;
    return { table, stateTable, topic: topic.name, queue, max, leaseMs, isOrdered, except: this.#passedOver };
  }

  /** Fetches when half the buffer is empty, so that fetches are neither small nor late. */
  #room(): number {
    const { batch, workers } = this.#options.settings;
    if (this.#isStopping) return 0;
    if (this.#breaker.isTripped) return this.#leases.size === 0 ? Math.min(this.#breaker.probes, batch) : 0;
    const room = batch + Math.max(workers - this.#running, 0) - this.#buffer.length;
    return room >= batch / 2 && this.#leases.size < 4 * batch + workers ? Math.min(room, batch) : 0;
  }

  #accept(rows: readonly FetchedRow[], token: string, fetchedAt: number): void {
    const { maxDeliveries } = this.#options.settings;
    for (const row of rows) {
      const lease = this.#leases.add(row, token, fetchedAt);
      if (row.isExpired) this.#settle(lease, { kind: 'dead', reason: 'expired', error: undefined });
      else if (row.deliveries > maxDeliveries) {
        this.#settle(lease, { kind: 'dead', reason: 'max_deliveries', error: undefined });
      } else if (row.fault) this.#settle(lease, { kind: 'dead', reason: 'rejected', error: row.fault });
      else this.#buffer.push(lease);
    }
    // RETURNING has no order.
    this.#buffer.sort((a, b) => b.row.priority - a.row.priority || a.row.dueAt - b.row.dueAt || byID(a.row, b.row));
    if (this.#isStopping) this.#releaseBuffer();
    else this.#pump();
  }

  #pump(): void {
    const { workers } = this.#options.settings;
    while (this.#running < workers && !this.#isStopping) {
      const lease = this.#buffer.shift();
      if (!lease) break;
      if (lease.isLost) continue;
      this.#running += 1;
      void this.#run(lease);
    }
  }

  /** There is room again, and perhaps something to fill it with. */
  #onFreed(): void {
    const { isOrdered } = this.#options.settings;
    if (!this.#isStopping && (this.#hasMore || isOrdered || this.#breaker.isTripped) && this.#room() > 0) this.wake();
  }

  async #run(lease: Lease): Promise<void> {
    const startedAt = this.#host.clock.now();
    const outcome = await this.#handling.handle(lease, startedAt);
    this.#running -= 1;
    if (this.#breaker.isTripped) {
      this.#releaseBuffer();
      if (outcome?.kind === 'release') this.#passOver(lease);
    }
    if (outcome) this.#settle(lease, outcome, startedAt);
    else this.#leases.remove(lease);
    if (this.#running === 0) this.#drained?.resolve();
    this.#pump();
    this.#onFreed();
  }

  #passOver({ row }: Lease): void {
    if (this.#passedOver.length === PASSED_OVER_MAX) this.#passedOver = [];
    this.#passedOver.push(row.id);
  }

  #releaseBuffer(): void {
    for (const lease of this.#buffer.splice(0)) this.#settle(lease, { kind: 'release', delayMs: 0 });
  }

  #settle(lease: Lease, outcome: Outcome, startedAt?: number): void {
    const { logger } = this.#host;
    const { messageID } = lease.row;
    void this.#settler
      .settle(
        toSettlement(lease, outcome, {
          startedAt: startedAt ?? this.#host.clock.now(),
          isAttempt: startedAt !== undefined,
          renderError: this.#host.renderError,
        }),
      )
      .then((isWritten) => {
        if (isWritten) return;
        logger.warn(
          `Message "${messageID}" of "${this.queue}" was settled too late: it was replaced, or its lease was lost.`,
        );
        this.wake();
      })
      .catch((error: unknown) => {
        // The lease runs out, and the message is delivered again.
        logger.error(`The outcome of message "${messageID}" of "${this.queue}" could not be written: ${String(error)}`);
      })
      .finally(() => {
        this.#leases.remove(lease);
        // It may be due before anything else.
        if (outcome.kind === 'retry' || outcome.kind === 'release') this.wake();
        else this.#onFreed();
      });
  }
}
