// Reads the history of workflows: stored events merged with those that follow from the other tables, and the journal of all
// workflows in the order in which it grows.
import { oneOf, type Sql, sql, table } from '../../sql/sql.js';
import type { Database, Reader, Row } from '../database.js';

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
const tailColumns = sql`j.workflow_id, j.seq, j.part, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details`;

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

/** The transaction that wrote a row, as text because it may have 64 bits, the row's number, and the event among those of it. */
export interface TailCursor {
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
  const isPostgres = database.dialect.name === 'postgres';
  const ofTypes = types ? sql`AND j.event_type ${oneOf(types)}` : sql``;
  const xid = isPostgres ? sql`CAST(j.xid AS TEXT)` : sql`'0'`;
  const order = isPostgres ? sql`j.xid, j.seq, j.part` : sql`j.seq, j.part`;
  const isSettled = isPostgres ? sql`AND j.xid < pg_snapshot_xmin(pg_current_snapshot())` : sql``;
  const condition = sql`${isLater(after, isPostgres)} ${isSettled} ${ofTypes}`;
  const selected = sql`
    SELECT j.workflow_id, j.seq, j.part, ${xid} AS xid_text, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor,
      CAST(j.details AS TEXT) AS details`;
  const page = sql`
    ORDER BY ${order}
    LIMIT ${limit}`;
  // A cursor uses the key of the journal. A time uses idx_journal_at: materialized, because the planner might look for the
  // first rows of that time in the order of the key, from the beginning of the journal.
  const found =
    'since' in after
      ? await database.observe(
          sql`
    WITH j AS MATERIALIZED (SELECT ${tailColumns}${isPostgres ? sql`, j.xid` : sql``} FROM ${journal} AS j WHERE ${condition})
    ${selected}
    FROM j
    ${page}`,
          { timeoutMs: 0, scans: 'bitmap' },
        )
      : await database.read(sql`
    ${selected}
    FROM ${journal} AS j
    WHERE ${condition}
    ${page}`);
  return found.map(toTailRow);
}

function toTailRow(row: Row): TailRow {
  return {
    workflowID: row['workflow_id'] as string,
    cursor: { xid: row['xid_text'] as string, seq: Number(row['seq']), part: Number(row['part']) },
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
function isLater(after: TailQuery['after'], isPostgres: boolean): Sql {
  if ('since' in after) return sql`j.at >= ${after.since}`;
  const { xid, seq, part } = after;
  return isPostgres
    ? sql`(j.xid, j.seq) >= (CAST(CAST(${xid} AS TEXT) AS XID8), CAST(${seq} AS BIGINT)) AND (j.seq <> ${seq} OR j.part > ${part})`
    : sql`j.seq >= ${seq} AND (j.seq > ${seq} OR j.part > ${part})`;
}
