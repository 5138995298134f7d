// Picks due rows of a queue and locks them. Each branch is limited by itself and rides an index of its own: an OR of them
// yields no order, so that every due row would be read and sorted before the limit applies.
//
//   expired  leases that ran out       <table>_lease_idx
//   urgent   due, with a priority      <table>_urgent_idx
//   fresh    due, without a priority   <table>_pending_idx
//   heads    the first row of each key <table>_key_idx
//
// The planner cannot tell how many rows a computed limit yields, so the picked rows are joined as an array of IDs.
import type { Row } from '../../transaction/driver.js';
import { indexedBy, lock, oneOf, type Sql, sql, type Token } from '../../../kernel/sql/sql.js';
import type { Transaction } from '../database.js';
import type { OutboxTable, StateTable } from '../schema/tables.js';
import { anyOf, asText, bigint, statementNow, statementNowMinus, tableToken, text } from '../tokens.js';

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
  /** No rows of keys whose first row is not available: one that is later must not pass it. Default: false. */
  readonly isHeadAvailable?: boolean;
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
/** How many rows of the picked keys are looked at for each that may be picked. */
const EARLIER_MAX = 10;

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
        AND o.next_attempt_at <= ${statementNow} ${isWanted}
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
  const isFree = isAvailable(leaseMs);
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
      WHERE o.id ${anyOf(sql`SELECT heads.id FROM heads`)} AND ${isFree} ${isWanted}
      ORDER BY o.priority DESC, o.next_attempt_at
      LIMIT (SELECT room.n FROM room)
      ${lock('skip', 'o')}),
    unkeyed AS MATERIALIZED (
      SELECT o.id
      FROM ${outbox} AS o
      WHERE o.queue = ${text(queue)} AND o.ordering_key IS NULL AND ${isFree} ${isWanted}
      ORDER BY o.next_attempt_at
      LIMIT (SELECT room.n FROM room) - (SELECT COUNT(*) FROM due)
      ${lock('skip', 'o')})`;
  return { clauses, isPicked: sql`id ${anyOf(sql`SELECT due.id FROM due UNION ALL SELECT unkeyed.id FROM unkeyed`)}` };
}

/** A further condition for rows `o`. */
function notAmong({ except = [], isHeadAvailable = false, table, queue, leaseMs }: PickOptions): Sql {
  const isHeadWanted = sql`AND (o.ordering_key IS NULL OR (
          SELECT h.next_attempt_at <= ${statementNow}
            AND (h.acquired_token IS NULL OR h.acquired_at < ${statementNowMinus(leaseMs)})
          FROM ${tableToken(table)} AS h
          WHERE h.queue = ${text(queue)} AND h.ordering_key IS NOT NULL AND h.ordering_key = o.ordering_key
          ORDER BY h.id
          LIMIT 1))`;
  return sql`${except.length === 0 ? sql`` : sql`AND NOT (o.id ${oneOf(except, 'bigint')})`} ${isHeadAvailable ? isHeadWanted : sql``}`;
}

/** Whether row `o` is due, and has no lease, or one that ran out. */
function isAvailable(leaseMs: number): Sql {
  return sql`o.next_attempt_at <= ${statementNow}
        AND (o.acquired_token IS NULL OR o.acquired_at < ${statementNowMinus(leaseMs)})`;
}

/**
 * Picks due rows, and of each key the first ones, up to one that is not available or that another transaction has locked: that
 * one is ahead of all later ones until it commits. Its copy gets a lower ID, because theirs are inserted after that.
 */
export async function pickInOrder(tx: Transaction, options: PickOptions): Promise<string[]> {
  const { table, queue, max, leaseMs } = options;
  const outbox = tableToken(table);
  const { clauses, isPicked } = pickDue({ ...options, isHeadAvailable: true });
  const picked = await tx.run(sql`
    WITH ${clauses}
    SELECT ${asText('id')} AS id, ordering_key
    FROM ${outbox}
    WHERE ${isPicked}`);
  const unkeyed = picked.filter((row) => row['ordering_key'] === null).map(idOf);
  const keyed = picked.filter((row) => row['ordering_key'] !== null);
  if (keyed.length === 0) return unkeyed;
  const keys = [...new Set(keyed.map((row) => String(row['ordering_key'])))];
  const last = keyed.map(idOf).sort(byNumber).at(-1) ?? '0';
  const found = await tx.run(sql`
    SELECT ${asText('o.id')} AS id, o.ordering_key, CASE WHEN ${isAvailable(leaseMs)} THEN 1 ELSE 0 END AS is_available
    FROM ${outbox} AS o ${indexedBy(`${table.tableName}_key_idx`)}
    WHERE o.queue = ${text(queue)} AND o.ordering_key IS NOT NULL AND o.ordering_key ${oneOf(keys)} AND o.id <= ${bigint(last)}
    ORDER BY o.id
    LIMIT ${bigint(max * EARLIER_MAX)}`);
  const available = found.filter((row) => Number(row['is_available']) === 1).map(idOf);
  const locked = await tx.run(sql`
    SELECT ${asText('o.id')} AS id
    FROM ${outbox} AS o
    WHERE o.id ${oneOf(available, 'bigint')}
    ${lock('skip', 'o')}`);
  const got = new Set(locked.map(idOf));
  const ended = new Set<unknown>();
  const firsts: string[] = [];
  for (const row of found) {
    const { ordering_key: key } = row;
    if (!got.has(idOf(row))) ended.add(key);
    else if (!ended.has(key)) firsts.push(idOf(row));
  }
  return [...unkeyed, ...firsts];
}

const idOf = (row: Row): string => String(row['id']);

function byNumber(a: string, b: string): number {
  return BigInt(a) < BigInt(b) ? -1 : 1;
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
