// How many workflows match, exactly if there are few. Counting a million takes longer than reading the page that is shown.
import type { WorkflowFilter } from './workflow-query.js';
import { sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { prefixComparison } from './listing-path.sql.js';
import { conditionsOf, partsOf, whereOf } from './workflow-filter.sql.js';

export interface WorkflowEstimate {
  readonly count: number;
  readonly isEstimate: boolean;
}

export interface EstimateOptions {
  readonly exactMax: number;
  readonly timeoutMs: number;
}

const workflows = table('workflow_status');

export async function estimateWorkflows(
  database: Database,
  filter: WorkflowFilter,
  { exactMax, timeoutMs }: EstimateOptions,
): Promise<WorkflowEstimate> {
  const prefixes = filter.idPrefixes ? await prefixComparison(database) : undefined;
  const matching = partsOf(filter)
    .map((part) => sql`SELECT 1 FROM ${workflows} AS w ${whereOf(conditionsOf(part, prefixes))}`)
    .reduce((all, one) => sql`${all} UNION ALL ${one}`);
  const [row] = await database.observe(
    sql`SELECT COUNT(*) AS matching FROM (${matching} LIMIT ${exactMax + 1}) AS few`,
    { timeoutMs, scans: 'all' },
  );
  const count = Number(row?.['matching'] ?? 0);
  if (count <= exactMax) return { count, isEstimate: false };
  // SQLite has no statistics of values.
  if (database.dialect.name === 'sqlite') return { count: exactMax, isEstimate: true };
  const [plan] = await database.observe(sql`EXPLAIN (FORMAT JSON) ${matching}`, { timeoutMs, scans: 'all' });
  return { count: Math.max(exactMax, rowsIn(plan?.['QUERY PLAN'])), isEstimate: true };
}

/** The planner's guess. Zero for a plan of another form. */
function rowsIn(plan: unknown): number {
  const [{ Plan: node }] = (typeof plan === 'string' ? JSON.parse(plan) : (plan ?? [{}])) as [{ Plan?: object }];
  return Number((node as Readonly<Record<string, unknown>> | undefined)?.['Plan Rows'] ?? 0);
}
