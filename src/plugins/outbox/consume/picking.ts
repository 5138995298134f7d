// Picks due rows of a queue and locks them. Each branch is limited by itself and rides an index of its own: an OR of them
// yields no order, so that every due row would be read and sorted before the limit applies.
//
//   expired  leases that ran out       <table>_lease_idx
//   urgent   due, with a priority      <table>_urgent_idx
//   fresh    due, without a priority   <table>_pending_idx
//   heads    the first row of each key <table>_key_idx
//
// The planner cannot tell how many rows a computed limit yields, so the picked rows are joined as an array of IDs.
import { indexedBy, lock, oneOf, type Sql, sql, type Token } from '../../../kernel/sql/sql.js';
import type { OutboxTable, StateTable } from '../schema/tables.js';
import { anyOf, bigint, statementNow, statementNowMinus, tableToken, text } from '../tokens.js';

export interface PickOptions {
  readonly table: OutboxTable;
  /** Where paused topics are kept, if they can be paused. */
  readonly stateTable: StateTable | undefined;
  readonly topic: string;
  readonly queue: string;
  readonly max: number;
  readonly leaseMs: number;
  /** Only the first row of each ordering key. */
  readonly isOrdered: boolean;
  /** IDs of rows to leave where they are. Default: none. */
  readonly except?: readonly string[];
}

/** `WITH` clauses, and a condition for the picked rows. */
export interface Picked {
  readonly clauses: Sql;
  readonly isPicked: Sql;
}

/** How many keys an ordered fetch looks at. */
const KEYS_MAX = 10_000;

export function pick(options: PickOptions): Picked {
  return options.isOrdered ? pickHeads(options) : pickDue(options);
}

function pickDue(options: PickOptions): Picked {
  const { table, queue } = options;
  const outbox = tableToken(table);
  const index = (name: string): Token => indexedBy(`${table.tableName}_${name}`);
  const isWanted = notAmong(options);
  const clauses = sql`
    room AS MATERIALIZED (${room(options)}),
    expired AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o ${index('lease_idx')}
      WHERE o.queue = ${text(queue)} AND o.acquired_token IS NOT NULL AND o.acquired_at < ${statementNowMinus(options.leaseMs)}
        ${isWanted}
      ORDER BY o.acquired_at
      LIMIT (SELECT room.n FROM room)
      ${lock('skip', 'o')}),
    urgent AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o ${index('urgent_idx')}
      WHERE o.queue = ${text(queue)} AND o.acquired_token IS NULL AND o.priority > 0 AND o.next_attempt_at <= ${statementNow}
        ${isWanted}
      ORDER BY o.priority DESC, o.next_attempt_at
      LIMIT (SELECT room.n FROM room) - (SELECT COUNT(*) FROM expired)
      ${lock('skip', 'o')}),
    fresh AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o ${index('pending_idx')}
      WHERE o.queue = ${text(queue)} AND o.acquired_token IS NULL AND o.priority <= 0 AND o.next_attempt_at <= ${statementNow}
        ${isWanted}
      ORDER BY o.next_attempt_at
      LIMIT (SELECT room.n FROM room) - (SELECT COUNT(*) FROM expired) - (SELECT COUNT(*) FROM urgent)
      ${lock('skip', 'o')})`;
  return {
    clauses,
    isPicked: sql`id ${anyOf(
      sql`SELECT expired.id FROM expired UNION ALL SELECT urgent.id FROM urgent UNION ALL SELECT fresh.id FROM fresh`,
    )}`,
  };
}

/** Walks the index from key to key. With one key of 100,000 rows ahead, looking for rows without a predecessor takes seconds. */
function pickHeads(options: PickOptions): Picked {
  const { table, queue, leaseMs } = options;
  const outbox = tableToken(table);
  const index = indexedBy(`${table.tableName}_key_idx`);
  const isWanted = notAmong(options);
  const isAvailable = sql`(o.acquired_token IS NULL AND o.next_attempt_at <= ${statementNow}
        OR o.acquired_token IS NOT NULL AND o.acquired_at < ${statementNowMinus(leaseMs)})`;
  const clauses = sql`
    RECURSIVE room AS MATERIALIZED (${room(options)}),
    walk(ordering_key, n) AS (
      SELECT MIN(o.ordering_key), 1
      FROM ${outbox} AS o ${index}
      WHERE o.queue = ${text(queue)} AND o.ordering_key IS NOT NULL
      UNION ALL
      SELECT (
        SELECT MIN(o.ordering_key)
        FROM ${outbox} AS o ${index}
        WHERE o.queue = ${text(queue)} AND o.ordering_key IS NOT NULL AND o.ordering_key > w.ordering_key), w.n + 1
      FROM walk AS w
      WHERE w.ordering_key IS NOT NULL AND w.n < ${bigint(KEYS_MAX)}),
    heads AS MATERIALIZED (
      SELECT (
        SELECT o.id
        FROM ${outbox} AS o ${index}
        WHERE o.queue = ${text(queue)} AND o.ordering_key IS NOT NULL AND o.ordering_key = w.ordering_key
        ORDER BY o.id
        LIMIT 1) AS id
      FROM walk AS w
      WHERE w.ordering_key IS NOT NULL),
    due AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o
      WHERE o.id ${anyOf(sql`SELECT heads.id FROM heads`)} AND ${isAvailable} ${isWanted}
      ORDER BY o.priority DESC, o.next_attempt_at
      LIMIT (SELECT room.n FROM room)
      ${lock('skip', 'o')}),
    unkeyed AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o
      WHERE o.queue = ${text(queue)} AND o.ordering_key IS NULL AND ${isAvailable} ${isWanted}
      ORDER BY o.next_attempt_at
      LIMIT (SELECT room.n FROM room) - (SELECT COUNT(*) FROM due)
      ${lock('skip', 'o')})`;
  return { clauses, isPicked: sql`id ${anyOf(sql`SELECT due.id FROM due UNION ALL SELECT unkeyed.id FROM unkeyed`)}` };
}

/** A further condition for rows `o`. */
function notAmong({ except = [] }: PickOptions): Sql {
  return except.length === 0 ? sql`` : sql`AND NOT (o.id ${oneOf(except, 'bigint')})`;
}

/** The limit; 0 while the topic is paused. */
function room({ stateTable, topic, max }: PickOptions): Sql {
  if (!stateTable) return sql`SELECT ${bigint(max)} AS n`;
  return sql`SELECT CASE WHEN EXISTS (
        SELECT 1
        FROM ${tableToken(stateTable)} AS s
        WHERE s.queue = ${text(topic)} AND s.kind = 'paused' AND s."key" = '')
      THEN 0 ELSE ${bigint(max)} END AS n`;
}
