// Aggregates of workflows or steps by group: counts and maximum times.
import { between } from './activity.sql.js';
import type { OutcomeStatus } from '../../kernel/workflow/status.js';
import type { TimeRange, WorkflowFilter } from './workflow-query.js';
import { startsWith } from '../../kernel/sql/matching.js';
import { oneOf, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';
import { seenQueue, seenStatus } from '../parking/parked.sql.js';
import { conditionsOf, either, isOfApplication, isOneOf, partsOf, whereOf, within } from './workflow-filter.sql.js';

export type WorkflowGroup =
  'status' | 'name' | 'queue_name' | 'executor_id' | 'application_version' | 'application_name';
export type WorkflowFigure = 'count' | 'minCreatedAt' | 'maxQueueWaitMs' | 'maxTotalLatencyMs';
export type StepGroup = 'function_name' | 'status';
export type StepFigure = 'count' | 'maxDurationMs';

export interface Aggregation<Group extends string, Figure extends string> {
  readonly groups: readonly Group[];
  /** Also groups by time buckets of this length. */
  readonly bucketMs?: number;
  readonly figures: readonly Figure[];
}

/** A group and its figures; null for those not requested. */
export interface Aggregate<Figure extends string> {
  readonly group: Readonly<Record<string, string | null>>;
  readonly figures: Readonly<Record<Figure, number | null>>;
}

export interface StepFilter {
  readonly statuses?: readonly OutcomeStatus[];
  readonly names?: readonly string[];
  readonly idPrefixes?: readonly string[];
  readonly completedAt: TimeRange;
  readonly applicationNames?: readonly string[];
}

const WORKFLOW_GROUPS: Readonly<Record<WorkflowGroup, Sql>> = {
  status: seenStatus('w'),
  name: sql`w.name`,
  queue_name: seenQueue('w'),
  executor_id: sql`w.executor_id`,
  application_version: sql`w.application_version`,
  application_name: sql`w.application_name`,
};

const WORKFLOW_FIGURES: Readonly<Record<WorkflowFigure, Sql>> = {
  count: sql`COUNT(*)`,
  minCreatedAt: sql`MIN(w.created_at)`,
  maxQueueWaitMs: sql`MAX(${between(sql`w.created_at`, sql`w.started_at_epoch_ms`)})`,
  maxTotalLatencyMs: sql`MAX(${between(sql`w.created_at`, sql`w.completed_at`)})`,
};

const stepStatus = sql`CASE WHEN o.error IS NULL THEN 'SUCCESS' ELSE 'ERROR' END`;

const STEP_GROUPS: Readonly<Record<StepGroup, Sql>> = { function_name: sql`o.function_name`, status: stepStatus };

const STEP_FIGURES: Readonly<Record<StepFigure, Sql>> = {
  count: sql`COUNT(*)`,
  maxDurationMs: sql`MAX(${between(sql`o.started_at_epoch_ms`, sql`o.completed_at_epoch_ms`)})`,
};

const workflows = table('workflow_status');
const steps = table('operation_outputs');

export async function aggregateWorkflows(
  database: Database,
  aggregation: Aggregation<WorkflowGroup, WorkflowFigure>,
  { filter, timeoutMs }: { readonly filter: WorkflowFilter; readonly timeoutMs: number },
): Promise<Aggregate<WorkflowFigure>[]> {
  const source = sql`FROM ${matching(filter)}`;
  const terms = { groups: WORKFLOW_GROUPS, figures: WORKFLOW_FIGURES, time: sql`w.created_at` };
  return read(
    await database.observe(statement(aggregation, terms, source), { timeoutMs, scans: 'all' }),
    aggregation,
    terms,
  );
}

function matching(filter: WorkflowFilter): Sql {
  const [only, ...others] = partsOf(filter);
  if (others.length === 0) return sql`${workflows} AS w ${whereOf(conditionsOf(only))}`;
  const parts = [only, ...others].map(
    (part) => sql`
      SELECT w.status, w.owner_xid, w.name, w.queue_name, w.executor_id, w.application_version, w.application_name,
        w.created_at, w.started_at_epoch_ms, w.completed_at
      FROM ${workflows} AS w
      ${whereOf(conditionsOf(part))}`,
  );
  return sql`(${parts.reduce((all, one) => sql`${all} UNION ALL ${one}`)}) AS w`;
}

export async function aggregateSteps(
  database: Database,
  aggregation: Aggregation<StepGroup, StepFigure>,
  { filter, timeoutMs }: { readonly filter: StepFilter; readonly timeoutMs: number },
): Promise<Aggregate<StepFigure>[]> {
  const source = sql`FROM ${steps} AS o ${whereOf(stepConditions(filter))}`;
  const terms = { groups: STEP_GROUPS, figures: STEP_FIGURES, time: sql`o.completed_at_epoch_ms` };
  return read(
    await database.observe(statement(aggregation, terms, source), { timeoutMs, scans: 'all' }),
    aggregation,
    terms,
  );
}

const stepWorkflowID = { alias: 'o', name: 'workflow_uuid' };

function stepConditions(filter: StepFilter): Sql[] {
  const { statuses, names, idPrefixes, completedAt, applicationNames } = filter;
  return [
    ...(statuses ? [sql`${stepStatus} ${oneOf(statuses)}`] : []),
    ...(names ? [isOneOf(sql`o.function_name`, names)] : []),
    ...(idPrefixes ? [either(idPrefixes.map((one) => sql`${startsWith(stepWorkflowID, one)}`))] : []),
    ...within(sql`o.completed_at_epoch_ms`, completedAt),
    ...(applicationNames ? [isOfApplication('o', applicationNames)] : []),
  ];
}

interface Terms<Group extends string, Figure extends string> {
  readonly groups: Readonly<Record<Group, Sql>>;
  readonly figures: Readonly<Record<Figure, Sql>>;
  /** The column of the time buckets. */
  readonly time: Sql;
}

/** Groups are g1, g2, … in the requested order, the time bucket last; figures are f1, f2, … */
function statement<Group extends string, Figure extends string>(
  { groups, bucketMs, figures }: Aggregation<Group, Figure>,
  terms: Terms<Group, Figure>,
  source: Sql,
): Sql {
  const grouped = groups.map((group) => terms.groups[group]);
  // An integer division in both databases.
  const size = sql`CAST(${bucketMs ?? 1} AS BIGINT)`;
  if (bucketMs !== undefined) grouped.push(sql`${terms.time} / ${size} * ${size}`);
  const columns = [
    ...grouped.map((term, index) => sql`${term} AS ${GROUP_NAMES[index]}`),
    ...figures.map((figure, index) => sql`${terms.figures[figure]} AS ${FIGURE_NAMES[index]}`),
  ];
  const ordinals = grouped.map((_, index) => GROUP_ORDINALS[index] ?? sql``);
  return sql`SELECT ${list(columns)} ${source} GROUP BY ${list(ordinals)} ORDER BY ${list(ordinals)}`;
}

const GROUP_NAMES = [sql`g1`, sql`g2`, sql`g3`, sql`g4`, sql`g5`, sql`g6`, sql`g7`];
const GROUP_ORDINALS = [sql`1`, sql`2`, sql`3`, sql`4`, sql`5`, sql`6`, sql`7`];
const FIGURE_NAMES = [sql`f1`, sql`f2`, sql`f3`, sql`f4`];

function list(terms: readonly Sql[]): Sql {
  return terms.reduce((all, one) => sql`${all}, ${one}`);
}

function read<Group extends string, Figure extends string>(
  rows: readonly Row[],
  { groups, bucketMs, figures }: Aggregation<Group, Figure>,
  terms: Terms<Group, Figure>,
): Aggregate<Figure>[] {
  const names = [...groups, ...(bucketMs === undefined ? [] : ['time_bucket'])];
  return rows.map((row) => ({
    group: Object.fromEntries(names.map((name, index) => [name, textOf(row[`g${index + 1}`])])),
    figures: Object.fromEntries(
      (Object.keys(terms.figures) as Figure[]).map((figure) => {
        const position = figures.indexOf(figure);
        return [figure, position < 0 ? null : numberOf(row[`f${position + 1}`])];
      }),
    ) as Record<Figure, number | null>,
  }));
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'number' ? value.toString() : (value as string);
}

function numberOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export interface NameCount {
  readonly name: string;
  readonly count: number;
}

/** Counts workflows created and steps completed in a time range, by name. */
export async function countByName(
  database: Database,
  { from, before }: { readonly from: number; readonly before: number },
  { applicationNames, timeoutMs }: { readonly applicationNames?: readonly string[]; readonly timeoutMs: number },
): Promise<{ readonly workflows: NameCount[]; readonly steps: NameCount[] }> {
  const scope = (alias: 'w' | 'o'): Sql =>
    applicationNames ? sql`AND ${isOfApplication(alias, applicationNames)}` : sql``;
  const [start, end] = [sql`CAST(${from} AS BIGINT)`, sql`CAST(${before} AS BIGINT)`];
  const created = await database.observe(
    sql`
      SELECT w.name, COUNT(*) AS n
      FROM ${workflows} AS w
      WHERE w.created_at >= ${start} AND w.created_at < ${end} ${scope('w')}
      GROUP BY w.name
      ORDER BY w.name`,
    { timeoutMs, scans: 'all' },
  );
  const completed = await database.observe(
    sql`
      SELECT o.function_name AS name, COUNT(*) AS n
      FROM ${steps} AS o
      WHERE o.completed_at_epoch_ms >= ${start} AND o.completed_at_epoch_ms < ${end} ${scope('o')}
      GROUP BY o.function_name
      ORDER BY o.function_name`,
    { timeoutMs, scans: 'all' },
  );
  const toCount = (row: Row): NameCount => ({ name: row['name'] as string, count: Number(row['n']) });
  return { workflows: created.map(toCount), steps: completed.map(toCount) };
}
