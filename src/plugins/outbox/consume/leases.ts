// The leases of a consumer: renews them while their messages wait or run, and notices those that were lost.
import { DueLoop } from '../../../kernel/base/due-loop.js';
import { OutboxLeaseLostError } from '../../../kernel/errors/errors.js';
import type { ConsumerHost } from './consumer.js';
import { renew } from './fetching.js';
import type { FetchedRow } from './message.js';

export class Lease {
  readonly #controller = new AbortController();
  isLost = false;

  constructor(
    readonly row: FetchedRow,
    readonly token: string,
    public renewedAt: number,
  ) {}

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  lose(): void {
    this.isLost = true;
    this.abort(new OutboxLeaseLostError(`The lease on message "${this.row.messageID}" was lost.`));
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }
}

export class Leases {
  readonly #host: ConsumerHost;
  readonly #leaseMs: number;
  readonly #held = new Map<string, Lease>();
  readonly #loop: DueLoop;

  constructor(host: ConsumerHost, leaseMs: number) {
    this.#host = host;
    this.#leaseMs = leaseMs;
    const { clock, logger } = host;
    const everyMs = leaseMs / 3;
    this.#loop = new DueLoop({
      clock,
      logger,
      subject: 'leases of the outbox',
      maxMs: everyMs,
      sweep: async () => {
        // One that was locked may have run out when it is no longer.
        return (await this.#renewAll()) ? everyMs : everyMs / 10;
      },
    });
  }

  get size(): number {
    return this.#held.size;
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** `fetchedAt`: before the fetch, so that it is no later than the lease. By the monotonic clock. */
  add(row: FetchedRow, token: string, fetchedAt: number): Lease {
    const lease = new Lease(row, token, fetchedAt);
    const lapsed = this.#held.get(row.id);
    if (lapsed) this.#lose(lapsed);
    this.#held.set(row.id, lease);
    return lease;
  }

  remove({ row, token }: Lease): void {
    if (this.#held.get(row.id)?.token === token) this.#held.delete(row.id);
  }

  abortAll(reason: Error): void {
    for (const lease of this.#held.values()) lease.abort(reason);
  }

  /** Returns whether none was locked. */
  async #renewAll(): Promise<boolean> {
    const byToken = new Map<string, Lease[]>();
    for (const lease of this.#held.values()) {
      const leases = byToken.get(lease.token) ?? [];
      byToken.set(lease.token, leases);
      leases.push(lease);
    }
    let areRenewed = true;
    for (const [token, leases] of byToken) areRenewed = (await this.#renew(token, leases)) && areRenewed;
    return areRenewed;
  }

  async #renew(token: string, leases: readonly Lease[]): Promise<boolean> {
    const { clock, database, table } = this.#host;
    const now = clock.monotonic();
    try {
      const ids = leases.map(({ row }) => row.id);
      const held = await database.transact((tx) => tx.run(renew(database.dialect, table, token, ids)));
      const isRenewed = new Map(held.map((row) => [String(row['id']), Number(row['is_renewed']) === 1]));
      for (const lease of leases) {
        const found = isRenewed.get(lease.row.id);
        if (found) lease.renewedAt = now;
        else if (found === undefined) this.#lose(lease);
      }
      return leases.every(({ row }) => isRenewed.get(row.id) !== false);
    } catch (error) {
      // The database is down. Others could not take the messages either, but may be the first when it is back.
      for (const lease of leases) if (lease.renewedAt + this.#leaseMs <= clock.monotonic()) this.#lose(lease);
      throw error;
    }
  }

  /** A message that was settled meanwhile has no lease any more. */
  #lose(lease: Lease): void {
    if (this.#held.get(lease.row.id) !== lease) return;
    this.remove(lease);
    lease.lose();
    this.#host.logger.warn(`The lease on message "${lease.row.messageID}" of the outbox was lost.`);
  }
}
