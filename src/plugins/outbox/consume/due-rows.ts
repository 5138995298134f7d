// The loop of consumers that take messages out of the table in one transaction, without a lease: a crash before the commit
// changes nothing, and after it all is done.
import type { Deadline } from '../../../kernel/base/time-limit.js';
import { DueLoop } from '../../../kernel/base/due-loop.js';
import type { Transaction } from '../database.js';
import { blockedMs, type Consumer, type ConsumerHost, reported } from './consumer.js';
import { nextDue, toDelay } from './fetching.js';
import { LEASE_MS } from './options.js';
import type { PickOptions } from './picking.js';

export interface DueRowsOptions {
  readonly topic: string;
  readonly queue: string;
  readonly batch: number;
  /** Called before the transaction. The returned function processes what is due in it. */
  readonly begin: () => Promise<Process>;
}

/** Returns how many messages were due. */
export type Process = (tx: Transaction, pick: PickOptions, signal: AbortSignal) => Promise<Processed>;

export interface Processed {
  readonly count: number;
  /** Called after the commit. */
  readonly committed?: () => void;
  /** Called if the commit fails, or its outcome is unknown. */
  readonly failed?: () => void;
}

export class DueRows implements Consumer {
  readonly queue: string;
  readonly #host: ConsumerHost;
  readonly #options: DueRowsOptions;
  readonly #loop: DueLoop;
  #blocked = 0;

  constructor(host: ConsumerHost, options: DueRowsOptions) {
    this.#host = host;
    this.#options = options;
    this.queue = options.queue;
    const { clock, logger, pollMs } = host;
    this.#loop = new DueLoop({
      clock,
      logger,
      subject: `messages of "${options.queue}"`,
      maxMs: pollMs,
      sweep: reported(host, options.queue, (signal) => this.#sweep(signal)),
    });
  }

  start(): void {
    this.#loop.start();
  }

  wake(): void {
    this.#loop.wake();
  }

  async stop(deadline: Deadline): Promise<void> {
    await deadline.settles(this.#loop.stop());
  }

  async #sweep(signal: AbortSignal): Promise<number | undefined> {
    const { database, table, stateTable } = this.#host;
    const { topic, queue, batch, begin } = this.#options;
    if (database.driver.dialect === 'sqlite') {
      // Look first: taking rows takes the write lock.
      const delayMs = await database.transact((tx) => this.#nextDue(tx), { readOnly: true });
      if (delayMs === undefined || delayMs > 0) return delayMs;
    }
    const process = await begin();
    const pick = { table, stateTable, topic, queue, max: batch, leaseMs: LEASE_MS, isOrdered: false };
    const { processed, delayMs } = await this.#transact(
      (tx) => process(tx, pick, signal),
      async (tx, { count }) => (count === batch ? 0 : this.#nextDue(tx)),
    );
    if (processed.count === batch) return 0;
    this.#blocked = processed.count === 0 && delayMs !== undefined && delayMs <= 0 ? this.#blocked + 1 : 0;
    return this.#blocked === 0 ? delayMs : blockedMs(this.#blocked);
  }

  /** Processes what is due in a transaction, looks what is due next, and reports how the transaction ended. */
  async #transact(
    process: (tx: Transaction) => Promise<Processed>,
    look: (tx: Transaction, processed: Processed) => Promise<number | undefined>,
  ): Promise<{ readonly processed: Processed; readonly delayMs: number | undefined }> {
    const ended: { processed?: Processed } = {};
    try {
      const result = await this.#host.database.transact(async (tx) => {
        const processed = await process(tx);
        ended.processed = processed;
        return { processed, delayMs: await look(tx, processed) };
      });
      result.processed.committed?.();
      return result;
    } catch (error) {
      ended.processed?.failed?.();
      throw error;
    }
  }

  async #nextDue(tx: Transaction): Promise<number | undefined> {
    const [row] = await tx.run(nextDue(this.#host.table, this.queue));
    return toDelay(row, LEASE_MS);
  }
}
