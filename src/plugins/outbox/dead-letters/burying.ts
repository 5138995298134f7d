// Moves messages to the dead letters: on Postgres with one statement, on SQLite in one transaction.
import type { Row } from '../../transaction/driver.js';
import type { Dialect } from '../../../kernel/sql/sql.js';
import { rows, type Sql, sql, type Token, type Value } from '../../../kernel/sql/sql.js';
import type { FetchedRow } from '../consume/message.js';
import type { FailureReason } from '../consume/outcomes.js';
import type { Transaction } from '../database.js';
import type { DlqTable, OutboxTable } from '../schema/tables.js';
import { bytesOf, increased, tableToken, timeOf, uuidOf } from '../tokens.js';
import type { Failure } from './failure.js';

/** A message that is to become a dead letter, and the lease under which it is held. */
export interface Burial {
  readonly id: string;
  readonly token: string;
  readonly reason: FailureReason;
  readonly failure: Failure;
  /** Whether the handler ran. */
  readonly isAttempt: boolean;
}

const COLUMNS = [
  { name: 'row_id', type: 'bigint' },
  { name: 'token', type: 'text' },
  { name: 'reason', type: 'text' },
  { name: 'error_text', type: 'text' },
  { name: 'error_kind', type: 'text' },
  { name: 'fingerprint', type: 'text' },
  { name: 'ran', type: 'int' },
] as const;

const TARGET = sql`(original_id, queue, payload, headers, deliveries_count, created_at, failure_reason, last_exception,
      timer_id, message_id, attempts_count, ordering_key, priority, error_name, error_fingerprint, replay_count,
      traceparent)`;
const SOURCE = sql`o.id, o.queue, o.payload, o.headers, o.deliveries_count, o.created_at, r.reason, r.error_text,
      o.timer_id, o.message_id, ${increased('o.attempts_count', 'r.ran')}, o.ordering_key, o.priority, r.error_kind, r.fingerprint,
      o.replay_count, o.traceparent`;
const RETURNED = sql`id, queue, payload, headers, deliveries_count, created_at, timer_id, message_id, attempts_count,
      ordering_key, priority, replay_count, traceparent, acquired_token`;

function given(burials: readonly Burial[]): Token {
  const data = burials.map(({ id, token, reason, failure, isAttempt }): Value[] => [
    id,
    token,
    reason,
    failure.text,
    failure.name,
    failure.fingerprint,
    isAttempt ? 1 : 0,
  ]);
  return rows('r', COLUMNS, data);
}

/** Returns the IDs of the messages that were moved. One whose lease was lost stays where it is. `isFree`: of rows `o`. */
export async function bury(
  tx: Transaction,
  {
    dialect,
    table,
    dlq,
    isFree,
  }: { readonly dialect: Dialect; readonly table: OutboxTable; readonly dlq: DlqTable; readonly isFree: Sql },
  burials: readonly Burial[],
): Promise<string[]> {
  const outbox = tableToken(table);
  const moved =
    dialect.name === 'postgres'
      ? await tx.run(moveOnPostgres(outbox, tableToken(dlq), given(burials), isFree))
      : await tx.run(sql`
    INSERT INTO ${tableToken(dlq)} ${TARGET}
    SELECT ${SOURCE}
    FROM ${given(burials)}
    JOIN ${outbox} AS o ON o.id = r.row_id AND o.acquired_token = r.token
    RETURNING original_id`);
  const ids = moved.map((row: Row) => String(row['original_id']));
  if (dialect.name === 'sqlite') {
    for (const { id, token } of burials) {
      await tx.run(sql`DELETE FROM ${outbox} WHERE id = ${id} AND acquired_token = ${token}`);
    }
  }
  return ids;
}

function moveOnPostgres(outbox: Token, dlq: Token, burials: Token, isFree: Sql): Sql {
  return sql`
    WITH r AS MATERIALIZED (SELECT * FROM ${burials}),
    o AS (
      DELETE FROM ${outbox} AS o
      USING r
      WHERE o.id = r.row_id AND o.acquired_token = r.token::uuid ${isFree}
      RETURNING ${prefixed('o')})
    INSERT INTO ${dlq} ${TARGET}
    SELECT ${SOURCE}
    FROM o
    JOIN r ON o.id = r.row_id AND o.acquired_token = r.token::uuid
    RETURNING original_id`;
}

function prefixed(alias: string): Token {
  return {
    shape: `returned:${alias};`,
    write: (out) => out.text(`${alias}.${RETURNED.strings.join('').replace(/,\s+/g, `, ${alias}.`)}`),
    collect: () => {},
  };
}

/** Adds a dead letter of a message that was deleted in the same transaction. */
export function insertDeadLetter(
  dlq: DlqTable,
  row: FetchedRow,
  { reason, failure }: { readonly reason: FailureReason; readonly failure: Failure },
): Sql {
  const columns = [
    { name: 'original_id', type: 'bigint' },
    { name: 'queue', type: 'text' },
    { name: 'hex', type: 'text' },
    { name: 'headers', type: 'json' },
    { name: 'deliveries', type: 'bigint' },
    { name: 'created_ms', type: 'float' },
    { name: 'reason', type: 'text' },
    { name: 'error_text', type: 'text' },
    { name: 'timer_id', type: 'text' },
    { name: 'message_id', type: 'text' },
    { name: 'attempts', type: 'bigint' },
    { name: 'ordering_key', type: 'text' },
    { name: 'priority', type: 'int' },
    { name: 'error_kind', type: 'text' },
    { name: 'fingerprint', type: 'text' },
    { name: 'replays', type: 'int' },
    { name: 'traceparent', type: 'text' },
  ] as const;
  const values: Value[] = [
    row.id,
    row.queue,
    Buffer.from(row.payload).toString('hex'),
    JSON.stringify(row.headers),
    row.deliveries,
    row.createdAt,
    reason,
    failure.text,
    row.timerID ?? null,
    row.messageID,
    row.attempts,
    row.key ?? null,
    row.priority,
    failure.name,
    failure.fingerprint,
    row.replays,
    row.traceparent ?? null,
  ];
  return sql`
    INSERT INTO ${tableToken(dlq)} ${TARGET}
    SELECT r.original_id, r.queue, ${bytesOf('NULL', 'r.hex')}, r.headers, r.deliveries, ${timeOf('r.created_ms')}, r.reason,
      r.error_text, r.timer_id, ${uuidOf('r.message_id')}, r.attempts, r.ordering_key, r.priority, r.error_kind, r.fingerprint,
      r.replays, r.traceparent
    FROM ${rows('r', columns, [values])}
    RETURNING original_id`;
}
