// Writes what became of leased messages. Outcomes that come while a write is in flight share the next one. Each row is
// guarded by its lease token: one that another consumer has taken is left alone. No write waits for a row while it has others
// locked, so it is in no deadlock: what is locked is passed over, and then written by itself.
import { type BackoffPolicy, backoffMs } from '../../../kernel/base/backoff.js';
import { Batcher, type Entry } from '../../../kernel/base/batcher.js';
import { type Clock, sleep } from '../../../kernel/base/clock.js';
import { isConflict, isConnectionFailure } from '../../transaction/failures.js';
import { DatabaseClosedError } from '../../../kernel/errors/errors.js';
import { lock, oneOf, rows, type Sql, sql, type Token } from '../../../kernel/sql/sql.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import { bury, type Burial } from '../dead-letters/burying.js';
import { type ErrorRenderer, toFailure } from '../dead-letters/failure.js';
import { releaseReplacement } from '../publish/statements.js';
import type { DlqTable, OutboxTable } from '../schema/tables.js';
import { anyOf, fromNowBy, increased, tableToken, timeOf, uuidOf } from '../tokens.js';
import type { Lease } from './leases.js';
import type { Outcome } from './outcomes.js';

/** An outcome to write. */
export type Settlement =
  | { readonly kind: 'done'; readonly id: string; readonly token: string }
  | {
      readonly kind: 'retry';
      readonly id: string;
      readonly token: string;
      readonly delayMs: number;
      readonly startedAt: number;
    }
  | { readonly kind: 'release'; readonly id: string; readonly token: string; readonly delayMs: number }
  | ({ readonly kind: 'dead' } & Burial);

export interface SettlerParts {
  readonly clock: Clock;
  readonly database: OutboxDatabase;
  readonly table: OutboxTable;
  readonly dlqTable: DlqTable | undefined;
  /** How long a write is retried while the database is down. After that the lease has expired anyway. */
  readonly leaseMs: number;
}

/** How a batch is written. */
interface Flush {
  /** Whether it waits for rows that others have locked, or leaves them. */
  readonly isWaiting: boolean;
  readonly giveUpAt: number;
}

type Waiting = Pick<Flush, 'isWaiting'>;

const ITEMS_MAX = 500;
const RETRY: BackoffPolicy = { firstMs: 10, maxMs: 2000, rate: 2, jitter: 0.5 };

export class Settler {
  readonly #parts: SettlerParts;
  readonly #batcher: Batcher<Settlement, boolean>;
  /** Writes what was locked. */
  readonly #singles: Batcher<Settlement, boolean>;

  constructor(parts: SettlerParts) {
    this.#parts = parts;
    const backlogMax = Infinity;
    this.#batcher = new Batcher({
      flush: (batch) => this.#flush(batch, { isWaiting: false }),
      itemsMax: ITEMS_MAX,
      backlogMax,
    });
    this.#singles = new Batcher({
      flush: (batch) => this.#flush(batch, { isWaiting: true }),
      itemsMax: 1,
      backlogMax,
    });
  }

  /** Resolves to false if the lease was lost, and nothing was written. */
  settle(settlement: Settlement): Promise<boolean> {
    return this.#batcher.submit(settlement);
  }

  async close(): Promise<void> {
    const reason = new DatabaseClosedError('The outbox was stopped.');
    await this.#batcher.close(reason);
    await this.#singles.close(reason);
  }

  async #flush(batch: readonly Entry<Settlement, boolean>[], { isWaiting }: Waiting): Promise<void> {
    const giveUpAt = this.#parts.clock.monotonic() + this.#parts.leaseMs;
    for (const entries of apart(batch)) await this.#settle(entries, { isWaiting, giveUpAt });
  }

  /** An outcome that cannot be written must not keep the others from it: they would be delivered again. */
  async #settle(entries: readonly Entry<Settlement, boolean>[], flush: Flush): Promise<void> {
    const items = entries.map(({ item }) => item);
    try {
      const written = await this.#retrying(
        () => this.#parts.database.transact((tx) => this.#write(tx, items, flush)),
        flush.giveUpAt,
      );
      for (const { item, resolve, reject } of entries) {
        if (written.has(item.id) || flush.isWaiting) resolve(written.has(item.id));
        else this.#singles.submit(item).then(resolve, reject);
      }
    } catch (error) {
      if (entries.length === 1 || isPassing(error)) return entries.forEach(({ reject }) => reject(error));
      const middle = Math.ceil(entries.length / 2);
      await this.#settle(entries.slice(0, middle), flush);
      await this.#settle(entries.slice(middle), flush);
    }
  }

  /** A write is guarded by its token, so it can be repeated: what an attempt wrote is not written again. */
  async #retrying(write: () => Promise<Set<string>>, giveUpAt: number): Promise<Set<string>> {
    const { clock } = this.#parts;
    for (let failures = 1; ; failures += 1) {
      try {
        return await write();
      } catch (error) {
        if (!isPassing(error) || clock.monotonic() >= giveUpAt) throw error;
        await sleep(clock, backoffMs(RETRY, failures));
      }
    }
  }

  async #write(tx: Transaction, items: readonly Settlement[], { isWaiting }: Flush): Promise<Set<string>> {
    const { database, table, dlqTable: dlq } = this.#parts;
    const { dialect } = database;
    const written = new Set<string>();
    const run = async (statement: Sql): Promise<void> => {
      for (const row of await tx.run(statement)) written.add(String(row['id']));
    };
    const dead = items.filter((item) => item.kind === 'dead');
    // Without a table for dead letters they are deleted, as in faststream-outbox.
    const deleted = items.filter(({ kind }) => kind === 'done' || (kind === 'dead' && !dlq));
    if (deleted.length > 0) await run(deleteHeld(table, deleted, { isWaiting }));
    const retried = items.filter((item) => item.kind === 'retry');
    if (retried.length > 0) await run(retryHeld(table, retried, { isWaiting }));
    const released = items.filter((item) => item.kind === 'release');
    if (released.length > 0) await run(releaseHeld(table, released, { isWaiting }));
    if (dlq && dead.length > 0)
      for (const id of await bury(tx, { dialect, table, dlq, isFree: isFree(table, dead, { isWaiting }) }, dead))
        written.add(id);
    if (isWaiting) {
      for (const { id } of items) if (!written.has(id)) await tx.run(releaseReplacement(table, id));
    }
    return written;
  }
}

/** The outcomes have nothing to do with it. */
function isPassing(error: unknown): boolean {
  return isConnectionFailure(error) || isConflict(error);
}

/** Parts that have each message once. After a lost lease there may be outcomes of several leases on one message. */
function apart<T extends { readonly item: Settlement }>(entries: readonly T[]): T[][] {
  const parts: Map<string, T>[] = [];
  for (const entry of entries) {
    let part = parts.find((ids) => !ids.has(entry.item.id));
    if (!part) {
      part = new Map<string, T>();
      parts.push(part);
    }
    part.set(entry.item.id, entry);
  }
  return parts.map((part) => [...part.values()]);
}

interface Held {
  readonly id: string;
  readonly token: string;
}

const HELD = [
  { name: 'row_id', type: 'bigint' },
  { name: 'token', type: 'text' },
] as const;

/** Deletes messages that are still held under these leases, and returns their IDs. */
export function deleteHeld(table: OutboxTable, held: readonly Held[], { isWaiting }: Waiting): Sql {
  const ids = held.map(({ id }) => id);
  const data = held.map(({ id, token }) => [id, token]);
  return sql`
    DELETE FROM ${tableToken(table)}
    WHERE id ${isWaiting ? oneOf(ids, 'bigint') : free(table, ids)} AND (id, acquired_token) IN (
      SELECT r.row_id, ${uuidOf('r.token')}
      FROM ${rows('r', HELD, data)})
    RETURNING id`;
}

function retryHeld(
  table: OutboxTable,
  retried: readonly Extract<Settlement, { kind: 'retry' }>[],
  waiting: Waiting,
): Sql {
  const columns = [...HELD, { name: 'delay_ms', type: 'float' }, { name: 'started_at', type: 'float' }] as const;
  const data = retried.map(({ id, token, delayMs, startedAt }) => [id, token, Math.ceil(delayMs), startedAt]);
  return updateHeld(table, rows('r', columns, data), {
    isFree: isFree(table, retried, waiting),
    changes: sql`attempts_count = ${increased('attempts_count')}, last_attempt_at = ${timeOf('r.started_at')},
      first_attempt_at = COALESCE(first_attempt_at, ${timeOf('r.started_at')})`,
  });
}

/** Gives messages back. The delivery does not count. */
function releaseHeld(
  table: OutboxTable,
  released: readonly Extract<Settlement, { kind: 'release' }>[],
  waiting: Waiting,
): Sql {
  const columns = [...HELD, { name: 'delay_ms', type: 'float' }] as const;
  const data = released.map(({ id, token, delayMs }) => [id, token, Math.ceil(delayMs)]);
  return updateHeld(table, rows('r', columns, data), {
    isFree: isFree(table, released, waiting),
    changes: sql`deliveries_count = deliveries_count - 1`,
  });
}

/** A condition for rows `o`: no other transaction has locked them. */
function isFree(table: OutboxTable, held: readonly Held[], { isWaiting }: Waiting): Sql {
  if (isWaiting) return sql``;
  const ids = held.map(({ id }) => id);
  return sql`AND o.id ${free(table, ids)}`;
}

function free(table: OutboxTable, ids: readonly string[]): Token {
  return anyOf(sql`SELECT f.id FROM ${tableToken(table)} AS f WHERE f.id ${oneOf(ids, 'bigint')} ${lock('skip', 'f')}`);
}

function updateHeld(
  table: OutboxTable,
  given: Token,
  { changes, isFree: condition }: { readonly changes: Sql; readonly isFree: Sql },
): Sql {
  return sql`
    UPDATE ${tableToken(table)} AS o
    SET ${changes}, acquired_token = NULL, acquired_at = NULL,
      next_attempt_at = CASE WHEN r.delay_ms > 0 THEN ${fromNowBy('r.delay_ms')} ELSE o.next_attempt_at END
    FROM ${given}
    WHERE o.id = r.row_id AND o.acquired_token = ${uuidOf('r.token')} ${condition}
    RETURNING id`;
}

export interface Writing {
  readonly startedAt: number;
  /** Whether the handler ran. */
  readonly isAttempt: boolean;
  readonly renderError: ErrorRenderer | undefined;
}

export function toSettlement(
  { row, token }: Lease,
  outcome: Outcome,
  { startedAt, isAttempt, renderError }: Writing,
): Settlement {
  const held = { id: row.id, token };
  switch (outcome.kind) {
    case 'done':
    case 'release':
      return { ...outcome, ...held };
    case 'retry':
      return { kind: 'retry', ...held, delayMs: outcome.delayMs, startedAt };
    case 'dead': {
      const failure = toFailure(outcome.error, renderError);
      return { kind: 'dead', ...held, reason: outcome.reason, failure, isAttempt };
    }
  }
}
