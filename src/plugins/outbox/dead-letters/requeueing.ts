// Puts dead letters back into the outbox. Deleting the dead letter and adding the message are one transaction; one whose
// timer ID is pending stays a dead letter.
import { newID } from '../../../kernel/base/ids.js';
import type { Row } from '../../transaction/driver.js';
import { lock, oneOf, rows, type Sql, sql, type Value } from '../../../kernel/sql/sql.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import { CONTENT_TYPE, encodeBody } from '../publish/body.js';
import { announced } from '../publish/statements.js';
import type { DlqTable, OutboxTable } from '../schema/tables.js';
import { bigint, bytesOf, fromNow, tableToken, uuidOf } from '../tokens.js';
import { type DeadLetterFilter, matches } from './filter.js';
import { type DeadLetter, LETTER, toLetter } from './letter.js';

export interface RequeueParts {
  readonly database: OutboxDatabase;
  readonly table: OutboxTable;
  readonly dlq: DlqTable;
}

export interface RequeueBatch {
  readonly filter: DeadLetterFilter;
  /** The last dead letter of the batch before. */
  readonly after: string;
  readonly max: number;
  readonly delayMs: number;
  readonly edit: ((body: unknown, letter: DeadLetter) => unknown) | undefined;
}

export interface RequeuedBatch {
  readonly requeued: number;
  readonly skipped: number;
  readonly queues: readonly string[];
  /** Where the next batch begins; undefined if this was the last. */
  readonly after: string | undefined;
}

const COLUMNS = [
  { name: 'letter_id', type: 'bigint' },
  { name: 'new_message_id', type: 'text' },
  { name: 'body', type: 'text' },
  { name: 'body_hex', type: 'text' },
  { name: 'edited_headers', type: 'json' },
] as const;

export async function requeueBatch(
  { database, table, dlq }: RequeueParts,
  tx: Transaction,
  batch: RequeueBatch,
): Promise<RequeuedBatch> {
  const { filter, after, max, edit } = batch;
  const found = (
    await tx.run(sql`
    SELECT ${LETTER}
    FROM ${tableToken(dlq)} AS d
    WHERE d.id > ${bigint(after)} AND ${matches(filter)}
    ORDER BY d.id
    LIMIT ${bigint(max)}
    ${lock('skip', 'd')}`)
  ).map(toLetter);
  if (found.length === 0) return { requeued: 0, skipped: 0, queues: [], after: undefined };
  const messages = [];
  for (const letter of found) {
    const messageID = letter.messageID ?? newID();
    messages.push({ letter, messageID, values: await valuesOf(letter, messageID, edit) });
  }
  const added = await tx.run(
    announced(
      database.dialect,
      table,
      insertion(
        { table, dlq },
        messages.map(({ values }) => values),
        batch.delayMs,
      ),
    ),
  );
  const back = new Set(added.map((row: Row) => String(row['message_id'])));
  const done = messages.filter(({ messageID }) => back.has(messageID)).map(({ letter }) => letter);
  if (done.length > 0) {
    const ids = done.map((letter) => letter.id);
    await tx.run(sql`DELETE FROM ${tableToken(dlq)} WHERE id ${oneOf(ids, 'bigint')}`);
  }
  return {
    requeued: done.length,
    skipped: found.length - done.length,
    queues: [...new Set(done.map(({ topic }) => topic))],
    after: found.length < max ? undefined : found.at(-1)?.id,
  };
}

async function valuesOf(letter: DeadLetter, messageID: string, edit: RequeueBatch['edit']): Promise<Value[]> {
  if (!edit) return [letter.id, messageID, null, null, null];
  const { text, hex, contentType } = encodeBody(await edit(letter.body, letter));
  // Bytes have no content type; JSON leaves undefined out.
  const headers = { ...letter.headers, [CONTENT_TYPE]: contentType };
  return [letter.id, messageID, text, hex, JSON.stringify(headers)];
}

/** Attempts and deliveries begin anew. */
function insertion(
  { table, dlq }: Pick<RequeueParts, 'table' | 'dlq'>,
  data: readonly (readonly Value[])[],
  delayMs: number,
): Sql {
  return sql`
    INSERT INTO ${tableToken(table)}
      (queue, payload, headers, next_attempt_at, timer_id, message_id, ordering_key, priority, replay_count,
        traceparent)
    SELECT d.queue, COALESCE(${bytesOf('r.body', 'r.body_hex')}, d.payload), COALESCE(r.edited_headers, d.headers),
      ${fromNow(delayMs)}, d.timer_id, ${uuidOf('r.new_message_id')}, d.ordering_key, d.priority, d.replay_count + CASE WHEN d.replay_count = 2147483647 THEN 0 ELSE 1 END,
      d.traceparent
    FROM ${rows('r', COLUMNS, data)}
    JOIN ${tableToken(dlq)} AS d ON d.id = r.letter_id
    WHERE TRUE
    ON CONFLICT (queue, timer_id) WHERE timer_id IS NOT NULL DO NOTHING
    RETURNING id, message_id, queue`;
}
