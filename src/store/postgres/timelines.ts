// Follows which server is the primary. A promotion begins a new timeline: a connection with a higher one than before leads to
// a server that was promoted, one with a lower one to a former primary, which must not be written to.
//
// With asynchronous replication, the promoted server may lack the last commits. Before anything else is sent to it, a
// listener compares what this process remembers with what is there.
import type { DLogger } from '../../base/log.js';
import { DatabaseUnavailableError } from '../../model/errors/database-errors.js';
import type { Comparison } from '../database.js';

/** An expression for the timeline, null on a standby. `pg_walfile_name` fails there; a file's name begins with its timeline. */
export const TIMELINE =
  'CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END';

type Transaction = (compare: Comparison) => Promise<() => void>;

export class Timelines {
  logger: DLogger | undefined;
  /** Runs in a transaction on the promoted server. */
  onPromoted: Comparison | undefined;
  #current = 0;
  /** The timeline that this process is known to agree with. */
  #compared = 0;
  #settling: Promise<void> | undefined;

  /** A connection to `host` has found it. Throws if the server must not be written to. */
  see(timeline: string | null, host: string): void {
    const number = timelineNumber(timeline);
    if (number === 0) return;
    if (number < this.#current) {
      throw new DatabaseUnavailableError(
        `Postgres at ${host} is a former primary: another server was promoted. Rebuild it as a standby. If it is the ` +
          'right server, restart this process.',
      );
    }
    if (this.#current === 0) this.#compared = number;
    else if (number > this.#current)
      this.logger?.warn(`${host} is the primary now. What was not replicated before its promotion is lost.`);
    this.#current = number;
  }

  /** Whether another server was promoted since a connection found this one. */
  isFormer(timeline: string | null): boolean {
    const number = timelineNumber(timeline);
    return number > 0 && number < this.#current;
  }

  /** Whether a promotion was seen that the listener has not dealt with. */
  get isPending(): boolean {
    return this.#compared < this.#current;
  }

  /** Lets the listener compare over a connection with this timeline, once for all that wait for it. */
  settle(timeline: string | null, transaction: Transaction): Promise<void> {
    if (this.isFormer(timeline)) throw new DatabaseUnavailableError('Another server was promoted meanwhile.');
    this.#settling ??= this.#settle(transaction).finally(() => (this.#settling = undefined));
    return this.#settling;
  }

  async #settle(transaction: Transaction): Promise<void> {
    const [{ onPromoted }, timeline] = [this, this.#current];
    const act = onPromoted && (await transaction(onPromoted));
    this.#compared = timeline;
    act?.();
  }
}

/** 0 for a standby, and for servers without timelines. */
export function timelineNumber(timeline: string | null): number {
  return timeline === null ? 0 : parseInt(timeline, 16);
}
