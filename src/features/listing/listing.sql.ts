// Lists of workflows by creation time, then ID: a total order, so that pages neither overlap nor leave gaps.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import type { WorkflowFilter, WorkflowQuery } from './workflow-query.js';
import { indexedBy, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns, workflowColumns } from '../../database/columns.js';
import type { Database, ObserveOptions } from '../../database/database.js';
import { type ListPath, pathsOf } from './listing-path.sql.js';
import { conditionsOf, partsOf, whereOf } from './workflow-filter.sql.js';

/** A position in the order. */
export interface Position {
  readonly createdAt: number;
  readonly workflowID: string;
}

export interface ListQuery extends WorkflowQuery {
  /** Only workflows after this position. */
  readonly after?: Position;
}

const workflows = table('workflow_status');
const HEAVY = ['inputs', 'output', 'error'];
const lightColumns = new TableColumns<WorkflowRecord>(
  workflowColumns.columns
    .filter(({ name }) => !HEAVY.includes(name))
    .map(({ field, name, type }) => [field, name, type] as const),
);
const light = lightColumns.select('w');
/** More rows than any list has. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

export async function listWorkflows(
  database: Database,
  query: ListQuery,
  timeoutMs: number,
): Promise<WorkflowRecord[]> {
  if (query.limit === 0) return [];
  const found = await database.observe(await listStatement(database, query), { timeoutMs, scans: scansFor(query) });
  return found.map((row) => workflowColumns.toRecord(row));
}

/** How many workflows match. */
export async function countWorkflows(database: Database, filter: WorkflowFilter, timeoutMs: number): Promise<number> {
  const counts = partsOf(filter)
    .map((part) => sql`SELECT COUNT(*) AS matching FROM ${workflows} AS w ${whereOf(conditionsOf(part))}`)
    .reduce((all, one) => sql`${all} UNION ALL ${one}`);
  const found = await database.observe(counts, { timeoutMs, scans: 'all' });
  return found.reduce((sum, row) => sum + Number(row['matching']), 0);
}

/** The index of attributes only supports bitmap scans. */
export function scansFor({ filter, limit }: ListQuery): ObserveOptions['scans'] {
  if (limit === undefined) return 'all';
  return filter.attributes === undefined ? 'index' : 'bitmap';
}

/** Exported for tests that check its plan. */
export async function listStatement(database: Database, query: ListQuery): Promise<Sql> {
  const { isLoadingInput, isLoadingOutput } = query;
  const page = pageOf(query, await pathsOf(database, query));
  // Values in other libraries' separate tables are joined for the page only.
  return sql`
    SELECT ${light}
      ${isLoadingInput ? sql`, COALESCE(w.inputs, i.inputs) AS inputs` : sql``}
      ${isLoadingOutput ? sql`, COALESCE(w.output, o.output) AS output, COALESCE(w.error, o.error) AS error` : sql``}
    FROM (${page}) AS w
    ${isLoadingInput ? sql`LEFT JOIN ${table('workflow_input')} AS i ON i.workflow_uuid = w.workflow_uuid` : sql``}
    ${isLoadingOutput ? sql`LEFT JOIN ${table('workflow_output')} AS o ON o.workflow_uuid = w.workflow_uuid` : sql``}
    ${orderOf(query)}`;
}

function pageOf(query: ListQuery, paths: readonly ListPath[]): Sql {
  const { limit = NO_LIMIT, offset } = query;
  const [only] = paths;
  if (only && paths.length === 1) return sql`${branch(only, query)} LIMIT ${limit} OFFSET ${offset}`;
  // Each branch comes in order from an index, up to the end of the page.
  const columns = columnsOf(query);
  const limited = paths.map(
    (path) => sql`SELECT ${columns} FROM (${branch(path, query)} LIMIT ${Math.min(limit + offset, NO_LIMIT)}) AS w`,
  );
  const all = limited.reduce((before, one) => sql`${before} UNION ALL ${one}`);
  return sql`SELECT ${columns} FROM (${all}) AS w ${orderOf(query)} LIMIT ${limit} OFFSET ${offset}`;
}

function branch({ filter, index, prefixes, isRare }: ListPath, query: ListQuery): Sql {
  const { after } = query;
  const conditions = [...conditionsOf(filter, prefixes), ...(after ? [isAfter(after, query)] : [])];
  return sql`
    SELECT ${columnsOf(query)}
    FROM ${workflows} AS w ${indexedBy(index)}
    ${whereOf(conditions)}
    ${isRare ? sortingOf(query) : orderOf(query)}`;
}

function columnsOf({ isLoadingInput, isLoadingOutput }: ListQuery): Sql {
  return sql`
    ${light} ${isLoadingInput ? sql`, w.inputs` : sql``} ${isLoadingOutput ? sql`, w.output, w.error` : sql``}`;
}

function orderOf({ isDescending }: ListQuery): Sql {
  return isDescending
    ? sql`ORDER BY w.created_at DESC, w.workflow_uuid DESC`
    : sql`ORDER BY w.created_at, w.workflow_uuid`;
}

/** The same order, in a form that no index provides. */
function sortingOf({ isDescending }: ListQuery): Sql {
  return isDescending
    ? sql`ORDER BY w.created_at + 0 DESC, w.workflow_uuid DESC`
    : sql`ORDER BY w.created_at + 0, w.workflow_uuid`;
}

// The first condition seeks in an index; the second skips rows of the same millisecond.
function isAfter({ createdAt, workflowID }: Position, { isDescending }: ListQuery): Sql {
  const at = sql`CAST(${createdAt} AS BIGINT)`;
  return isDescending
    ? sql`w.created_at <= ${at} AND (w.created_at < ${at} OR w.workflow_uuid < ${workflowID})`
    : sql`w.created_at >= ${at} AND (w.created_at > ${at} OR w.workflow_uuid > ${workflowID})`;
}
