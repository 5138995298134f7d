// The dead letters of an outbox: looking at them, and deciding what becomes of them.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import {
  changeLetters,
  LETTER_BATCH,
  LETTER_CHANGE_FIELDS,
  LETTER_PAGE,
  LETTER_PAGE_FIELDS,
  type LetterChangeOptions,
  readLetterCursor,
  refuseArchived,
  writeLetterCursor,
} from '../../../features/dead-letter/dead-letters.js';
import { duration, func, optional, record } from '../../../kernel/check/validation.js';
import { type Sql, sql } from '../../../kernel/sql/sql.js';
import type { Transaction } from '../database.js';
import { anyOf, bigint, milliseconds, now, positionBefore, tableToken } from '../tokens.js';
import { type ChangeFilter, type DeadLetterFilter, FILTER_FIELDS, matches, readChangeFilter } from './filter.js';
import { type DeadLetter, LETTER, toLetter } from './letter.js';
import { requeueBatch, type RequeuedBatch, type RequeueParts } from './requeueing.js';

export interface DeadLetterPage {
  /** The newest first. */
  readonly letters: readonly DeadLetter[];
  /** Pass it for the next page; undefined on the last. */
  readonly cursor: string | undefined;
}

/** Dead letters that failed the same way. */
export interface DeadLetterGroup {
  readonly topic: string;
  readonly reason: string;
  readonly errorName: string | undefined;
  readonly fingerprint: string | undefined;
  readonly count: number;
  /** Epoch milliseconds. */
  readonly firstFailedAt: number;
  readonly lastFailedAt: number;
  /** The ID of the newest. */
  readonly sampleID: string;
}

export interface RequeueOptions extends LetterChangeOptions {
  /** Replaces the body. */
  readonly edit?: (body: unknown, letter: DeadLetter) => unknown;
  readonly delay?: Duration;
}

const LIST = record({ ...FILTER_FIELDS, ...LETTER_PAGE_FIELDS });
const GROUPS = record({ ...FILTER_FIELDS, limit: LETTER_PAGE_FIELDS.limit });
const REQUEUE = record({ ...LETTER_CHANGE_FIELDS, edit: optional(func), delay: optional(duration) });

export class DeadLetters {
  readonly #parts: RequeueParts;
  readonly #wake: (queue: string) => void;

  constructor(parts: RequeueParts, wake: (queue: string) => void) {
    this.#parts = parts;
    this.#wake = wake;
  }

  /** A page of dead letters, the newest first. */
  async list(
    options: DeadLetterFilter & { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<DeadLetterPage> {
    LIST.read(options, 'options');
    const { limit = LETTER_PAGE, cursor, ...filter } = options;
    const after = cursor === undefined ? sql`` : sql`AND ${positionBefore(...readCursor(cursor))}`;
    const rows = await this.#read(sql`
    SELECT ${LETTER}
    FROM ${this.#dlq} AS d
    WHERE ${matches(filter)} ${after}
    ORDER BY d.failed_at DESC, d.id DESC
    LIMIT ${bigint(limit)}`);
    const last = rows.at(-1);
    const isFull = rows.length === limit;
    return {
      letters: rows.map(toLetter),
      cursor: isFull && last ? writeLetterCursor([String(last['position']), String(last['id'])]) : undefined,
    };
  }

  /** How many failed the same way, the most frequent first. */
  async groups(options: DeadLetterFilter & { readonly limit?: number } = {}): Promise<DeadLetterGroup[]> {
    GROUPS.read(options, 'options');
    const { limit = LETTER_PAGE, ...filter } = options;
    const rows = await this.#read(sql`
    SELECT d.queue, d.failure_reason, d.error_name, d.error_fingerprint, COUNT(*) AS count,
      ${milliseconds('MIN(d.failed_at)')} AS first_ms, ${milliseconds('MAX(d.failed_at)')} AS last_ms, MAX(d.id) AS sample_id
    FROM ${this.#dlq} AS d
    WHERE ${matches(filter)}
    GROUP BY d.queue, d.failure_reason, d.error_name, d.error_fingerprint
    ORDER BY COUNT(*) DESC, MAX(d.id) DESC
    LIMIT ${bigint(limit)}`);
    return rows.map((row) => ({
      topic: String(row['queue']),
      reason: String(row['failure_reason']),
      errorName: (row['error_name'] as string | null) ?? undefined,
      fingerprint: (row['error_fingerprint'] as string | null) ?? undefined,
      count: Number(row['count']),
      firstFailedAt: Math.floor(Number(row['first_ms'])),
      lastFailedAt: Math.floor(Number(row['last_ms'])),
      sampleID: String(row['sample_id']),
    }));
  }

  /** One dead letter; undefined if there is none. */
  async get(id: string): Promise<DeadLetter | undefined> {
    const { letters } = await this.list({ ids: [id], archived: 'both' });
    return letters[0];
  }

  /** Puts dead letters back into the outbox. One whose timer ID is pending is skipped. */
  async requeue(
    filter: ChangeFilter,
    options: RequeueOptions = {},
  ): Promise<{ readonly requeued: number; readonly skipped: number }> {
    const conditions = readChangeFilter(filter);
    const { edit, delay = 0, limit = Infinity, dryRun, onProgress } = options;
    REQUEUE.read(options, 'options');
    if (dryRun) return { requeued: Math.min(await this.#count(conditions), limit), skipped: 0 };
    let requeued = 0;
    let skipped = 0;
    for (let after: string | undefined = '0'; after !== undefined && requeued < limit;) {
      const max = Math.min(LETTER_BATCH, limit - requeued);
      const batch = { filter: conditions, after, max, delayMs: durationMs(delay), edit };
      const done: RequeuedBatch = await this.#write((tx) => requeueBatch(this.#parts, tx, batch));
      requeued += done.requeued;
      skipped += done.skipped;
      after = done.after;
      for (const queue of done.queues) this.#wake(queue);
      onProgress?.(requeued);
    }
    return { requeued, skipped };
  }

  /** Deletes dead letters. */
  async discard(filter: ChangeFilter, options: LetterChangeOptions = {}): Promise<{ readonly discarded: number }> {
    const discarded = await this.#change(
      filter,
      options,
      (ids) => sql`DELETE FROM ${this.#dlq} WHERE id ${ids} RETURNING id`,
    );
    return { discarded };
  }

  /** Takes dead letters out of the lists, and keeps them. */
  async archive(filter: ChangeFilter, options: LetterChangeOptions = {}): Promise<{ readonly archived: number }> {
    refuseArchived(filter);
    const archived = await this.#change(
      filter,
      options,
      (ids) => sql`UPDATE ${this.#dlq} SET archived_at = ${now} WHERE id ${ids} AND archived_at IS NULL RETURNING id`,
    );
    return { archived };
  }

  async #change(
    filter: ChangeFilter,
    options: LetterChangeOptions,
    statement: (ids: ReturnType<typeof anyOf>) => Sql,
  ): Promise<number> {
    const conditions = readChangeFilter(filter);
    return changeLetters(options, {
      count: () => this.#count(conditions),
      changeSome: async (max) => {
        const ids = anyOf(
          sql`SELECT d.id FROM ${this.#dlq} AS d WHERE ${matches(conditions)} ORDER BY d.id LIMIT ${bigint(max)}`,
        );
        return (await this.#write((tx) => tx.run(statement(ids)))).length;
      },
    });
  }

  async #count(filter: DeadLetterFilter): Promise<number> {
    const [row] = await this.#read(sql`SELECT COUNT(*) AS count FROM ${this.#dlq} AS d WHERE ${matches(filter)}`);
    return Number(row?.['count']);
  }

  get #dlq(): ReturnType<typeof tableToken> {
    return tableToken(this.#parts.dlq);
  }

  #read(statement: Sql) {
    const { database } = this.#parts;
    return database.connected(() => database.transact((tx) => tx.run(statement), { readOnly: true }));
  }

  #write<T>(body: (tx: Transaction) => Promise<T>): Promise<T> {
    const { database } = this.#parts;
    return database.connected(() => database.transact(body));
  }
}

function readCursor(cursor: string): [position: string, id: string] {
  return readLetterCursor(cursor, ([position, id]) =>
    typeof position === 'string' && typeof id === 'string' && /^\d+$/.test(id) ? [position, id] : undefined,
  );
}
