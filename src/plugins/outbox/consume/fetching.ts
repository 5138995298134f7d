// Claims messages under a lease, renews leases, and says when there is something to claim next.
import type { Row } from '../../transaction/driver.js';
import { type Dialect, lock, oneOf, type Sql, sql } from '../../../kernel/sql/sql.js';
import type { OutboxTable } from '../schema/tables.js';
import { anyOf, increased, milliseconds, now, statementNow, tableToken, text, uuid } from '../tokens.js';
import { FETCHED } from './message.js';
import { pick, type PickOptions } from './picking.js';

/** Leases due messages and returns them. */
export function claim(options: PickOptions, token: string): Sql {
  const { clauses, isPicked } = pick(options);
  return sql`
    WITH ${clauses}
    UPDATE ${tableToken(options.table)}
    SET acquired_token = ${uuid(token)}, acquired_at = ${now}, deliveries_count = ${increased('deliveries_count')}
    WHERE ${isPicked}
    RETURNING ${FETCHED}, ${isExpired}`;
}

/** Deletes due messages and returns them. */
export function take(options: PickOptions): Sql {
  const { clauses, isPicked } = pick(options);
  return sql`
    WITH ${clauses}
    DELETE FROM ${tableToken(options.table)}
    WHERE ${isPicked}
    RETURNING ${FETCHED}, ${isExpired}`;
}

/** Deletes messages that were picked, and returns them. */
export function takeThese(table: OutboxTable, ids: readonly string[]): Sql {
  return sql`
    DELETE FROM ${tableToken(table)}
    WHERE id ${oneOf(ids, 'bigint')}
    RETURNING ${FETCHED}, ${isExpired}`;
}

const isExpired = sql`COALESCE(expires_at <= ${statementNow}, FALSE) AS is_expired`;

/**
 * Begins the leases anew and returns the messages whose lease was not lost. Those that others have locked, such as a handler's
 * own transaction, are not waited for: the other leases would run out. Nobody can take them meanwhile.
 */
export function renew(dialect: Dialect, table: OutboxTable, token: string, ids: readonly string[]): Sql {
  const outbox = tableToken(table);
  if (dialect.name === 'sqlite') {
    return sql`
    UPDATE ${outbox}
    SET acquired_at = ${now}
    WHERE id ${oneOf(ids, 'bigint')} AND acquired_token = ${uuid(token)}
    RETURNING id, 1 AS is_renewed`;
  }
  const isHeld = sql`o.id ${oneOf(ids, 'bigint')} AND o.acquired_token = ${uuid(token)}`;
  return sql`
    WITH free AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o
      WHERE ${isHeld}
      ${lock('skip', 'o')}),
    renewed AS (
      UPDATE ${outbox}
      SET acquired_at = ${now}
      WHERE id ${anyOf(sql`SELECT free.id FROM free`)}
      RETURNING id)
    SELECT o.id, CASE WHEN r.id IS NULL THEN 0 ELSE 1 END AS is_renewed
    FROM ${outbox} AS o
    LEFT JOIN renewed AS r ON r.id = o.id
    WHERE ${isHeld}`;
}

/** When the next message is due, and when the oldest lease began, in milliseconds from now. */
export function nextDue(table: OutboxTable, queue: string): Sql {
  const outbox = tableToken(table);
  return sql`
    SELECT ${milliseconds('d.due_at')} - ${milliseconds('d.now')} AS due_ms,
      ${milliseconds('d.leased_at')} - ${milliseconds('d.now')} AS leased_ms
    FROM (SELECT ${now} AS now, (
      SELECT o.next_attempt_at
      FROM ${outbox} AS o
      WHERE o.queue = ${text(queue)} AND o.acquired_token IS NULL
      ORDER BY o.next_attempt_at
      LIMIT 1) AS due_at, (
      SELECT o.acquired_at
      FROM ${outbox} AS o
      WHERE o.queue = ${text(queue)} AND o.acquired_token IS NOT NULL
      ORDER BY o.acquired_at
      LIMIT 1) AS leased_at) AS d`;
}

/** How long until there is something to claim; undefined if there is nothing. */
export function toDelay(row: Row | undefined, leaseMs: number): number | undefined {
  const delays = [
    ...(row?.['due_ms'] == null ? [] : [Number(row['due_ms'])]),
    ...(row?.['leased_ms'] == null ? [] : [Number(row['leased_ms']) + leaseMs]),
  ];
  return delays.length === 0 ? undefined : Math.max(Math.min(...delays), 0);
}
