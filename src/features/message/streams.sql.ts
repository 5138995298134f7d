// Rows of `streams`: values that a workflow appends under a key. Only the run that owns the workflow writes, so it assigns
// the offsets itself, and a retried append finds its own row.
import { hasEnded, type WorkflowStatusString } from '../../kernel/workflow/status.js';
import { rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Row } from '../../database/database.js';
import type { EventKey } from './events.sql.js';
import type { Owned } from '../../run/rows/lifecycle.js';
import type { CheckpointVerdict } from '../../run/writer/writer-verdicts.js';
import { belongsTo, findOwners } from '../../run/rows/owners.js';
import { isOwned } from '../../run/rows/workflows.js';

/** A value appended by a run. */
export interface NewStreamValue extends Owned {
  readonly key: string;
  readonly offset: number;
  readonly stepID: number;
  readonly text: string;
  readonly serialization: string;
}

const newValueColumns = new TableColumns<NewStreamValue>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['key', 'key', 'text'],
  ['offset', 'offset', 'int'],
  ['stepID', 'function_id', 'int'],
  ['text', 'value', 'text'],
  ['serialization', 'serialization', 'text'],
]);

const insertColumns = [...newValueColumns.columns, { name: 'owner_xid', type: 'text' }] as const;
const passedColumns = newValueColumns.pass('r');
const streams = table('streams');
const workflows = table('workflow_status');

/** Appends the values of runs that own their workflows and returns their keys and offsets. */
export function insertStreamValues(values: readonly NewStreamValue[]): Sql {
  const data = values.map((value) => [...newValueColumns.toValues(value), value.owner]);
  return sql`
    INSERT INTO ${streams} (${newValueColumns.names})
    SELECT ${passedColumns}
    FROM ${rows('r', insertColumns, data)}
    WHERE ${isOwned}
    ON CONFLICT DO NOTHING
    RETURNING workflow_uuid, key, "offset"`;
}

/** The result of each append, in the same order. */
export async function judgeStreamValues(
  database: Database,
  values: readonly NewStreamValue[],
  written: readonly Row[],
): Promise<CheckpointVerdict[]> {
  if (written.length === values.length) return values.map(() => 'recorded');
  const recorded = new Set(written.map(rowKey));
  const isRecorded = values.map((value) => recorded.delete(valueKey(value)));
  const missing = values.filter((_, index) => !isRecorded[index]);
  const there = await database.read(sql`
    SELECT s.workflow_uuid, s.key, s."offset", s.value, s.function_id
    FROM ${rows(
      'r',
      valueKeyColumns,
      missing.map(({ workflowID, key, offset }) => [workflowID, key, offset]),
    )}
    JOIN ${streams} AS s
      ON s.workflow_uuid = r.workflow_id AND s.key = r.stream_key AND s."offset" = r.at_offset`);
  const stored = new Map(there.map((row) => [rowKey(row), row]));
  const owners = await findOwners(
    database,
    missing.map(({ workflowID }) => workflowID),
  );
  return values.map((value, index) => {
    if (isRecorded[index]) return 'recorded';
    if (!belongsTo(owners.get(value.workflowID), value.owner)) return 'lost';
    const row = stored.get(valueKey(value));
    // Written by an earlier attempt whose commit was unconfirmed.
    if (row) return row['value'] === value.text && row['function_id'] === value.stepID ? 'recorded' : 'conflict';
    return owners.get(value.workflowID)?.status === 'PENDING' ? 'conflict' : 'lost';
  });
}

const valueKeyColumns = [
  { name: 'workflow_id', type: 'text' },
  { name: 'stream_key', type: 'text' },
  { name: 'at_offset', type: 'int' },
] as const;

function valueKey({ workflowID, key, offset }: NewStreamValue): string {
  return JSON.stringify([workflowID, key, offset]);
}

function rowKey(row: Row): string {
  return JSON.stringify([row['workflow_uuid'], row['key'], row['offset']]);
}

/** The next offset of each non-empty stream of the workflow. */
export async function findStreamEnds(database: Database, workflowID: string): Promise<Map<string, number>> {
  const found = await database.read(sql`
    SELECT s.key, MAX(s."offset") + 1 AS next
    FROM ${streams} AS s
    WHERE s.workflow_uuid = ${workflowID}
    GROUP BY s.key`);
  return new Map(found.map((row) => [row['key'] as string, row['next'] as number]));
}

/** Where a reader continues. */
export interface StreamPosition extends EventKey {
  readonly offset: number;
}

export interface StoredStreamValue {
  readonly text: string;
  readonly serialization: string | null;
}

/** What a reader finds at a position. */
export type StreamPart =
  | { readonly kind: 'values'; readonly values: readonly StoredStreamValue[] }
  /** No more values: the stream was closed, or the workflow has ended. */
  | { readonly kind: 'ended' }
  /** The workflow does not exist. */
  | { readonly kind: 'missing' };

/** The mark that closes a stream. Older releases wrote it without quotes. */
export const STREAM_CLOSED = '__DBOS_STREAM_CLOSED__';
const CLOSED_TEXT = JSON.stringify(STREAM_CLOSED);

/** The most values per query, for all positions together. */
const VALUES_MAX = 5000;
const VALUES_MIN = 10;

const positionColumns = [
  { name: 'ordinal', type: 'int' },
  { name: 'workflow_id', type: 'text' },
  { name: 'stream_key', type: 'text' },
  { name: 'from_offset', type: 'int' },
  { name: 'to_offset', type: 'int' },
] as const;

/** What is at each position, in the same order; undefined if a value may still come. */
export async function readStreams(
  database: Database,
  positions: readonly StreamPosition[],
): Promise<(StreamPart | undefined)[]> {
  const count = Math.max(VALUES_MIN, Math.floor(VALUES_MAX / positions.length));
  const data = positions.map(({ workflowID, key, offset }, ordinal) => [
    ordinal,
    workflowID,
    key,
    offset,
    offset + count,
  ]);
  // Values and status come from one statement: a workflow seen as ended has no later values.
  const found = await database.read(sql`
    SELECT r.ordinal, w.status, s."offset", s.value, s.serialization, (
      SELECT p.value
      FROM ${streams} AS p
      WHERE p.workflow_uuid = r.workflow_id AND p.key = r.stream_key AND p."offset" < r.from_offset
      ORDER BY p."offset" DESC
      LIMIT 1) IN (${STREAM_CLOSED}, ${CLOSED_TEXT}) AS is_closed
    FROM ${rows('r', positionColumns, data)}
    LEFT JOIN ${workflows} AS w ON w.workflow_uuid = r.workflow_id
    LEFT JOIN ${streams} AS s
      ON s.workflow_uuid = r.workflow_id AND s.key = r.stream_key
        AND s."offset" >= r.from_offset AND s."offset" < r.to_offset
    ORDER BY r.ordinal, s."offset"`);
  const byOrdinal = new Map<unknown, Row[]>();
  for (const row of found) {
    const group = byOrdinal.get(row['ordinal']);
    if (group) group.push(row);
    else byOrdinal.set(row['ordinal'], [row]);
  }
  return positions.map(({ offset }, ordinal) => partOf(offset, byOrdinal.get(ordinal) ?? []));
}

function partOf(offset: number, found: readonly Row[]): StreamPart | undefined {
  const [first] = found;
  if (!first || first['status'] === null) return { kind: 'missing' };
  // Stop at a gap, in case a row was deleted.
  const values = found.filter((row, index) => row['offset'] === offset + index).map(toValue);
  if (values.length > 0) return { kind: 'values', values };
  const isOver = hasEnded(first['status'] as WorkflowStatusString);
  return isOver || Boolean(first['is_closed']) ? { kind: 'ended' } : undefined;
}

function toValue(row: Row): StoredStreamValue {
  return { text: row['value'] as string, serialization: row['serialization'] as string | null };
}

export interface StreamSummary {
  readonly key: string;
  /** How many values it has, without the mark that closes it. */
  readonly length: number;
  readonly isClosed: boolean;
}

/** The streams of the workflow, by key. */
export async function listStreams(database: Database, workflowID: string): Promise<StreamSummary[]> {
  // Of the values, only the last of each stream is read.
  const found = await database.read(sql`
    SELECT e.key, e.last, s.value
    FROM (
      SELECT s.key, MAX(s."offset") AS last
      FROM ${streams} AS s
      WHERE s.workflow_uuid = ${workflowID}
      GROUP BY s.key) AS e
    JOIN ${streams} AS s ON s.workflow_uuid = ${workflowID} AND s.key = e.key AND s."offset" = e.last
    ORDER BY e.key`);
  return found.map((row) => {
    const isClosed = isClosingText(row['value'] as string);
    return { key: row['key'] as string, length: Number(row['last']) + (isClosed ? 0 : 1), isClosed };
  });
}

export interface StreamPageQuery extends EventKey {
  /** Only values with higher offsets. */
  readonly after: number;
  readonly limit: number;
}

/** Values of a stream, by offset. */
export async function listStreamPage(
  database: Database,
  { workflowID, key, after, limit }: StreamPageQuery,
): Promise<(StoredStreamValue & { readonly offset: number })[]> {
  const found = await database.read(sql`
    SELECT s."offset", s.value, s.serialization
    FROM ${streams} AS s
    WHERE s.workflow_uuid = ${workflowID} AND s.key = ${key} AND s."offset" > ${after}
    ORDER BY s."offset"
    LIMIT ${limit}`);
  return found.map((row) => ({ offset: row['offset'] as number, ...toValue(row) }));
}

/** All values of the workflow's streams, by key and offset. */
export async function listStreamValues(
  database: Database,
  workflowID: string,
): Promise<(StoredStreamValue & { readonly key: string })[]> {
  const found = await database.read(sql`
    SELECT s.key, s.value, s.serialization
    FROM ${streams} AS s
    WHERE s.workflow_uuid = ${workflowID}
    ORDER BY s.key, s."offset"`);
  return found.map((row) => ({ key: row['key'] as string, ...toValue(row) }));
}

/** Whether the text is the mark that closes a stream. */
export function isClosingText(text: string): boolean {
  return text === CLOSED_TEXT || text === STREAM_CLOSED;
}
