// Reads the history of workflows: stored events merged with those that follow from the other tables, and the journal of all
// workflows in the order in which it grows.
import { oneOf, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Reader, Row } from '../../database/database.js';
import { epochOf, isOfEpoch, lastFormerSeq, readEpochs } from './epochs.sql.js';

/** An event. Its position is unique in its workflow. */
export interface HistoryRow {
  readonly workflowID: string;
  readonly position: HistoryPosition;
  readonly at: number;
  readonly type: string;
  readonly step: number | null;
  readonly attempt: number | null;
  readonly executor: string | null;
  readonly actor: string | null;
  /** A JSON object. */
  readonly details: string | null;
  /** The name of the payload among the details, and its stored text. */
  readonly payloadName: string | null;
  readonly payload: string | null;
  readonly serialization: string | null;
}

/** Where an event is in the history of its workflow. */
export interface HistoryPosition {
  readonly phase: number;
  readonly at: number;
  readonly step: number;
  readonly part: number;
  /** Of a stored event; -1 for others. */
  readonly seq: number;
}

export interface HistoryQuery {
  readonly workflowID: string;
  readonly after?: HistoryPosition | undefined;
  readonly limit: number;
  readonly types?: readonly string[] | undefined;
  readonly payloads: boolean;
}

/** Among events of one millisecond, an attempt starts before its steps, and what belongs to no step comes after them. */
export const eventOrder = sql`CASE WHEN h.event_type = 'AttemptStarted' THEN -1 ELSE COALESCE(h.step, 2147483647) END`;
const history = table('history');
const journal = table('journal_events');

/**
 * A page of a workflow's history, in order. It costs as much as the whole. Without payloads, the planner leaves out the tables
 * that only they come from.
 */
export async function readHistory(database: Reader, query: HistoryQuery): Promise<HistoryRow[]> {
  const { workflowID, after, limit, types, payloads } = query;
  const ofTypes = types ? sql`AND h.event_type ${oneOf(types)}` : sql``;
  const found = await database.read(sql`
    SELECT h.phase, h.at, ${eventOrder} AS step_order, h.part, COALESCE(h.seq, -1) AS seq_order,
      h.event_type, h.step, h.attempt, h.executor, h.actor, CAST(h.details AS TEXT) AS details
      ${payloads ? sql`, h.payload_name, h.payload, h.serialization` : sql``}
    FROM ${history} AS h
    WHERE h.workflow_id = ${workflowID} ${ofTypes} ${isAfter(after)}
    ORDER BY h.phase, h.at, step_order, h.part, seq_order
    LIMIT ${limit}`);
  return found.map((row) => toHistoryRow(workflowID, row));
}

function isAfter(after: HistoryPosition | undefined): Sql {
  if (!after) return sql``;
  const { phase, at, step, part, seq } = after;
  return sql`AND (h.phase, h.at, ${eventOrder}, h.part, COALESCE(h.seq, -1))
      > (${phase}, CAST(${at} AS BIGINT), ${step}, ${part}, CAST(${seq} AS BIGINT))`;
}

function toHistoryRow(workflowID: string, row: Row): HistoryRow {
  return {
    workflowID,
    position: {
      phase: Number(row['phase']),
      at: Number(row['at']),
      step: Number(row['step_order']),
      part: Number(row['part']),
      seq: Number(row['seq_order']),
    },
    at: Number(row['at']),
    type: row['event_type'] as string,
    step: row['step'] as number | null,
    attempt: row['attempt'] as number | null,
    executor: row['executor'] as string | null,
    actor: row['actor'] as string | null,
    details: row['details'] as string | null,
    payloadName: (row['payload_name'] as string | null | undefined) ?? null,
    payload: (row['payload'] as string | null | undefined) ?? null,
    serialization: (row['serialization'] as string | null | undefined) ?? null,
  };
}

/** A row of the journal, and where it is among those of all workflows. */
export interface TailRow extends Omit<HistoryRow, 'position' | 'payloadName' | 'payload' | 'serialization'> {
  readonly cursor: TailCursor;
}

/**
 * The epoch of a row, the transaction that wrote it, as text because it may have 64 bits, the row's number, and the event among
 * those of it.
 */
export interface TailCursor {
  readonly epoch: number;
  readonly xid: string;
  readonly seq: number;
  readonly part: number;
}

export interface TailQuery {
  /** A cursor, or a time. */
  readonly after: TailCursor | { readonly since: number };
  readonly types?: readonly string[] | undefined;
  readonly limit: number;
}

/**
 * The rows of all workflows after a cursor. On Postgres only those of transactions that began before every transaction that
 * is still open, in the order of transactions: a row that is committed later comes after all of them. SQLite commits in
 * order.
 */
export async function tailJournal(database: Database, { after, types, limit }: TailQuery): Promise<TailRow[]> {
  const ofTypes = types ? sql`AND j.event_type ${oneOf(types)}` : sql``;
  if ('since' in after) return tailSince(database, { since: after.since, ofTypes, limit });
  const isPostgres = database.dialect.name === 'postgres';
  const isSettled = sql`AND ${isOfEpoch} AND (e.last_seq IS NOT NULL OR j.xid < ${horizon})`;
  const found = await readEpochs(database, { epoch: after.epoch, limit }, (left, isFirst) => {
    return sql`
      SELECT ${tailColumns(isPostgres)}
      FROM ${journal} AS j
      WHERE ${isFirst ? isLater(after, isPostgres) : sql`TRUE`} ${isPostgres ? isSettled : sql``} ${ofTypes}
      ORDER BY ${isPostgres ? sql`j.xid, j.seq, j.part` : sql`j.seq, j.part`}
      LIMIT ${left}`;
  });
  return found.map(({ epoch, row }) => toTailRow(row, epoch));
}

interface SinceQuery {
  readonly since: number;
  readonly ofTypes: Sql;
  readonly limit: number;
}

/**
 * Uses idx_journal_at: materialized, because the planner might look for the first rows of that time in the order of the key,
 * from the beginning of the journal.
 */
async function tailSince(database: Database, { since, ofTypes, limit }: SinceQuery): Promise<TailRow[]> {
  const isPostgres = database.dialect.name === 'postgres';
  const isSettled = sql`AND (j.xid < ${horizon} OR j.seq <= ${lastFormerSeq})`;
  const found = await database.observe(
    sql`
    WITH j AS MATERIALIZED (
      SELECT ${tailColumns(isPostgres)}, ${isPostgres ? epochOf : sql`0`} AS epoch
      FROM ${journal} AS j
      WHERE j.at >= ${since} ${isPostgres ? isSettled : sql``} ${ofTypes})
    SELECT j.workflow_id, j.seq, j.part, j.xid_text, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details,
      j.epoch
    FROM j
    ORDER BY ${isPostgres ? sql`j.epoch, j.xid, j.seq, j.part` : sql`j.seq, j.part`}
    LIMIT ${limit}`,
    { timeoutMs: 0, scans: 'bitmap' },
  );
  return found.map((row) => toTailRow(row, Number(row['epoch'])));
}

/** The first transaction that may be open. */
const horizon = sql`pg_snapshot_xmin(pg_current_snapshot())`;

function tailColumns(isPostgres: boolean): Sql {
  return sql`j.workflow_id, j.seq, j.part, ${isPostgres ? sql`j.xid, CAST(j.xid AS TEXT)` : sql`'0'`} AS xid_text, j.at, j.event_type, j.step,
      j.attempt, j.executor, j.actor, CAST(j.details AS TEXT) AS details`;
}

function toTailRow(row: Row, epoch: number): TailRow {
  return {
    workflowID: row['workflow_id'] as string,
    cursor: { epoch, xid: row['xid_text'] as string, seq: Number(row['seq']), part: Number(row['part']) },
    at: Number(row['at']),
    type: row['event_type'] as string,
    step: row['step'] as number | null,
    attempt: row['attempt'] as number | null,
    executor: row['executor'] as string | null,
    actor: row['actor'] as string | null,
    details: row['details'] as string | null,
  };
}

/** The row of the cursor may have further events. */
function isLater({ xid, seq, part }: TailCursor, isPostgres: boolean): Sql {
  return isPostgres
    ? sql`(j.xid, j.seq) >= (CAST(CAST(${xid} AS TEXT) AS XID8), CAST(${seq} AS BIGINT)) AND (j.seq <> ${seq} OR j.part > ${part})`
    : sql`j.seq >= ${seq} AND (j.seq > ${seq} OR j.part > ${part})`;
}
