// Lists of workflows, in the order of their creation. Workflows of one millisecond are in the order of their IDs, so that
// the order is total and a page begins where the one before it has ended.
import type { WorkflowRecord } from '../model/records.js';
import type { WorkflowFilter, WorkflowQuery } from '../model/workflow-query.js';
import { type Sql, sql, table } from '../sql/sql.js';
import { TableColumns, workflowColumns } from './columns.js';
import type { Database, ObserveOptions } from './database.js';
import { conditionsOf, whereOf } from './workflow-filter.js';

/** A place in the order. */
export interface Position {
  readonly createdAt: number;
  readonly workflowID: string;
}

export interface ListQuery extends WorkflowQuery {
  /** Only workflows that come after this place. */
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
/** More than any list holds; both databases take it for no limit. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
/** A list of values is asked for value by value up to here: beyond it, so many short lists cost more than they save. */
const BRANCHES_MAX = 8;

export async function listWorkflows(
  database: Database,
  query: ListQuery,
  timeoutMs: number,
): Promise<WorkflowRecord[]> {
  if (query.limit === 0) return [];
  const found = await database.observe(listStatement(query), observeOptions(query.filter, timeoutMs));
  return found.map((row) => workflowColumns.toRecord(row));
}

/** How many workflows match. */
export async function countWorkflows(database: Database, filter: WorkflowFilter, timeoutMs: number): Promise<number> {
  const [row] = await database.observe(
    sql`SELECT COUNT(*) AS matching FROM ${workflows} AS w ${whereOf(conditionsOf(filter))}`,
    { timeoutMs, scans: 'any' },
  );
  return Number(row?.['matching'] ?? 0);
}

/** Attributes can only be found by a bitmap of their index. */
function observeOptions({ attributes }: WorkflowFilter, timeoutMs: number): ObserveOptions {
  return { timeoutMs, scans: attributes === undefined ? 'none' : 'bitmap' };
}

/** For the one that reads the plan, too. */
export function listStatement(query: ListQuery): Sql {
  const { isLoadingInput, isLoadingOutput } = query;
  // What another library has stored apart is looked up for the rows of the page alone.
  return sql`
    SELECT ${light}
      ${isLoadingInput ? sql`, COALESCE(w.inputs, i.inputs) AS inputs` : sql``}
      ${isLoadingOutput ? sql`, COALESCE(w.output, o.output) AS output, COALESCE(w.error, o.error) AS error` : sql``}
    FROM (${pageOf(query)}) AS w
    ${isLoadingInput ? sql`LEFT JOIN ${table('workflow_input')} AS i ON i.workflow_uuid = w.workflow_uuid` : sql``}
    ${isLoadingOutput ? sql`LEFT JOIN ${table('workflow_output')} AS o ON o.workflow_uuid = w.workflow_uuid` : sql``}
    ${orderOf(query)}`;
}

function pageOf(query: ListQuery): Sql {
  const { limit = NO_LIMIT, offset } = query;
  const filters = branchesOf(query);
  const [only] = filters;
  if (only && filters.length === 1) return sql`${branch(only, query)} LIMIT ${limit} OFFSET ${offset}`;
  // Each branch can be read in order from an index, and is cut off where the page ends at the latest.
  const columns = columnsOf(query);
  const limited = filters.map(
    (filter) => sql`SELECT ${columns} FROM (${branch(filter, query)} LIMIT ${limit + offset}) AS w`,
  );
  const all = limited.reduce((before, one) => sql`${before} UNION ALL ${one}`);
  return sql`SELECT ${columns} FROM (${all}) AS w ${orderOf(query)} LIMIT ${limit} OFFSET ${offset}`;
}

function branch(filter: WorkflowFilter, query: ListQuery): Sql {
  const { after } = query;
  const conditions = [...conditionsOf(filter), ...(after ? [isAfter(after, query)] : [])];
  return sql`
    SELECT ${columnsOf(query)}
    FROM ${workflows} AS w
    ${whereOf(conditions)}
    ${orderOf(query)}`;
}

function columnsOf({ isLoadingInput, isLoadingOutput }: ListQuery): Sql {
  return sql`
    ${light} ${isLoadingInput ? sql`, w.inputs` : sql``} ${isLoadingOutput ? sql`, w.output, w.error` : sql``}`;
}

/** The filter, or one for each status or queue that it asks for, which no workflow is in twice. */
function branchesOf({ filter, limit }: ListQuery): readonly WorkflowFilter[] {
  if (limit === undefined || filter.workflowIDs) return [filter];
  const { statuses, values } = filter;
  const queueNames = [...new Set(values.queueName)];
  if (isBranching(queueNames)) {
    return queueNames.map((queueName) => ({ ...filter, values: { ...values, queueName: [queueName] } }));
  }
  return statuses && isBranching(statuses) ? statuses.map((status) => ({ ...filter, statuses: [status] })) : [filter];
}

function isBranching(values: readonly string[]): boolean {
  return values.length > 1 && values.length <= BRANCHES_MAX;
}

function orderOf({ isDescending }: ListQuery): Sql {
  return isDescending
    ? sql`ORDER BY w.created_at DESC, w.workflow_uuid DESC`
    : sql`ORDER BY w.created_at, w.workflow_uuid`;
}

// The first condition leads to the place in an index, the second passes over those of the same millisecond.
function isAfter({ createdAt, workflowID }: Position, { isDescending }: ListQuery): Sql {
  const at = sql`CAST(${createdAt} AS BIGINT)`;
  return isDescending
    ? sql`w.created_at <= ${at} AND (w.created_at < ${at} OR w.workflow_uuid < ${workflowID})`
    : sql`w.created_at >= ${at} AND (w.created_at > ${at} OR w.workflow_uuid > ${workflowID})`;
}
