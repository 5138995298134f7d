// Chooses the index for a list of workflows. Postgres has statistics and chooses on its own, except that it cannot estimate
// how many IDs share a prefix. SQLite has none and is told the index: it would sort a million rows to find the newest
// hundred, or scan them all to find one.
import { indexName, type OptionalIndex } from './index-fields.js';
import { FAILED_STATUSES, type StoredState, WAITING_STATUSES } from '../../kernel/workflow/status.js';
import type { WorkflowFilter } from './workflow-query.js';
import { type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { findIndexes } from './indexes.sql.js';
import { conditionsOf, partsOf, type PrefixComparison, whereOf } from './workflow-filter.sql.js';

/** A list that an index returns in order, or that is short. */
export interface ListPath {
  readonly filter: WorkflowFilter;
  /** The index hint. */
  readonly index?: string;
  readonly prefixes?: PrefixComparison;
  /** Few IDs have the prefix: they are sorted. */
  readonly isRare?: boolean;
}

/** Up to this many values, each becomes a branch of its own; more branches would cost more than they save. */
const BRANCHES_MAX = 8;
/** Up to this many rows are sorted. For more, walking all workflows in order is cheaper. */
const SORTED_MAX = 5000;
const NOTHING: WorkflowFilter = { values: {}, times: { createdAt: {}, completedAt: {}, startedAt: {} }, presence: {} };

const workflows = table('workflow_status');

/** The disjoint paths that make up the list. */
export async function pathsOf(
  database: Database,
  { filter, limit }: { readonly filter: WorkflowFilter; readonly limit?: number },
): Promise<ListPath[]> {
  if (filter.workflowIDs) return [{ filter }];
  if (limit === undefined) return partsOf(filter).map((part) => ({ filter: part }));
  const filters = await branchesOf(database, filter);
  if (!database.dialect.needsIndexHints) {
    const judged = await judgePrefix(database, filter);
    return filters.map((one) => ({ filter: one, ...judged }));
  }
  const existing = await findIndexes(database);
  const paths: ListPath[] = [];
  for (const one of filters) {
    const index = await indexFor(database, one, existing);
    paths.push({ filter: one, index: existing.has(index) ? index : undefined });
  }
  return paths;
}

/** The filter, or one for each of its queues or states, if those have an index. */
async function branchesOf(database: Database, filter: WorkflowFilter): Promise<readonly WorkflowFilter[]> {
  const { states, values } = filter;
  const queueNames = [...new Set(values.queueName)];
  if (isBranching(queueNames) && (await findIndexes(database)).has(BY_QUEUE)) {
    return queueNames.map((queueName) => ({ ...filter, values: { ...values, queueName: [queueName] } }));
  }
  return states && isBranching(states) ? states.map((state) => ({ ...filter, states: [state] })) : [filter];
}

function isBranching(values: readonly string[]): boolean {
  return values.length > 1 && values.length <= BRANCHES_MAX;
}

const BY_CREATION = 'workflow_status_created_at_index';
const BY_QUEUE = indexName('queueName');
const BY_STATE: ReadonlyMap<StoredState, string> = new Map<StoredState, string>([
  ['PENDING', 'idx_workflow_status_running'],
  ...([...WAITING_STATUSES, 'PARKED'] as const).map((state) => [state, 'idx_workflow_status_listing_state'] as const),
  ...FAILED_STATUSES.map((status) => [status, 'idx_workflow_status_failed'] as const),
]);

/** Fields with an optional index that returns each value's workflows in order. */
const OPTIONAL: readonly (readonly [field: keyof WorkflowFilter['values'], index: OptionalIndex])[] = [
  ['name', 'workflowName'],
  ['executorID', 'executorId'],
  ['applicationVersion', 'applicationVersion'],
  ['authenticatedUser', 'authenticatedUser'],
  ['scheduleName', 'scheduleName'],
  ['parentWorkflowID', 'parentWorkflowID'],
];

async function indexFor(database: Database, filter: WorkflowFilter, existing: ReadonlySet<string>): Promise<string> {
  for (const { index, part } of shortLists(filter)) {
    if (await isShort(database, part)) return index;
  }
  const { states, values } = filter;
  const optional = OPTIONAL.find(([field, index]) => values[field]?.length === 1 && existing.has(indexName(index)));
  if (optional) return indexName(optional[1]);
  const [only] = states?.length === 1 ? states : [];
  const byState = only && BY_STATE.get(only);
  const isOfQueue = values.queueName?.length === 1 && existing.has(BY_QUEUE);
  if (byState === undefined) return isOfQueue ? BY_QUEUE : BY_CREATION;
  const hasShortQueue = isOfQueue && (await isShort(database, { values: { queueName: values.queueName } }));
  return hasShortQueue ? BY_QUEUE : byState;
}

interface ShortList {
  readonly index: string;
  /** The part of the filter that the index covers. */
  readonly part: Partial<WorkflowFilter>;
}

/** Indexes that cover part of the filter, in another order than the list's. */
function shortLists({ idPrefixes, values, times }: WorkflowFilter): ShortList[] {
  const { parentWorkflowID, forkedFrom, scheduleName } = values;
  const ofTime = (field: 'completedAt' | 'startedAt'): Partial<WorkflowFilter> => ({
    times: { ...NOTHING.times, [field]: times[field] },
  });
  const isGiven = ({ from, to }: { from?: number; to?: number }): boolean => from !== undefined || to !== undefined;
  return [
    ...(idPrefixes?.length === 1 ? [{ index: 'sqlite_autoindex_workflow_status_1', part: { idPrefixes } }] : []),
    ...(parentWorkflowID
      ? [{ index: 'idx_workflow_status_parent_workflow_id', part: { values: { parentWorkflowID } } }]
      : []),
    ...(forkedFrom ? [{ index: 'idx_workflow_status_forked_from', part: { values: { forkedFrom } } }] : []),
    ...(scheduleName ? [{ index: 'idx_workflow_status_schedule_name', part: { values: { scheduleName } } }] : []),
    ...(isGiven(times.completedAt) ? [{ index: 'idx_workflow_status_completed_at', part: ofTime('completedAt') }] : []),
    ...(isGiven(times.startedAt) ? [{ index: 'idx_workflow_status_started_at', part: ofTime('startedAt') }] : []),
  ];
}

/** Whether few workflows match the part. Reads the index only, up to the limit. */
async function isShort(
  database: Database,
  part: Partial<WorkflowFilter>,
  prefixes?: PrefixComparison,
): Promise<boolean> {
  const condition: Sql = whereOf(conditionsOf({ ...NOTHING, ...part }, prefixes));
  const [row] = await database.observe(
    sql`
      SELECT COUNT(*) AS n
      FROM (SELECT 1 FROM ${workflows} AS w ${condition} LIMIT ${SORTED_MAX + 1}) AS few`,
    { timeoutMs: 0, scans: 'index' },
  );
  return Number(row?.['n']) <= SORTED_MAX;
}

/** Without an index for prefixes, counting would cost more than it saves. */
async function judgePrefix(
  database: Database,
  { idPrefixes }: WorkflowFilter,
): Promise<Pick<ListPath, 'prefixes' | 'isRare'>> {
  if (idPrefixes?.length !== 1) return {};
  const prefixes = await prefixComparison(database);
  if (prefixes === 'plain' && !(await findIndexes(database)).has(indexName('workflow_id_prefix'))) return {};
  // The matching IDs are sorted, or all workflows are walked in order.
  const isRare = await isShort(database, { idPrefixes }, prefixes);
  return { prefixes: isRare ? prefixes : 'hidden', isRare };
}

/** With a collation that compares by bytes, the primary key's index finds prefixes. In others, 'a' sorts before 'B'. */
export async function prefixComparison(database: Database): Promise<PrefixComparison> {
  if (database.dialect.name === 'sqlite') return 'plain';
  const [row] = await database.read(sql`
    SELECT CASE WHEN 'B' < '_' AND '_' < 'a' AND 'B' < 'a' THEN 1 ELSE 0 END AS is_so`);
  return row?.['is_so'] === 1 ? 'ranged' : 'plain';
}
