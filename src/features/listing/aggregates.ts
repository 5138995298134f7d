// Aggregates over workflows and steps.
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import {
  asArray,
  boolean,
  integer,
  nullish,
  objectWith,
  oneOf,
  oneOrMany,
  parseTimestamp,
  record,
  string,
  timestamp,
} from '../../kernel/check/validation.js';
import type { OutcomeStatus } from '../../kernel/workflow/status.js';
import { range, toWorkflowFilter, type WorkflowFilters } from './workflow-query.js';
import {
  type Aggregation,
  aggregateSteps,
  aggregateWorkflows,
  countByName,
  type StepFigure,
  type StepGroup,
  type WorkflowFigure,
  type WorkflowGroup,
} from './aggregates.sql.js';
import { type Operator, queryTimeoutMs } from '../../operator/operator.js';

export interface GetWorkflowAggregatesInput extends Omit<
  WorkflowFilters,
  'workflowName' | 'applicationVersion' | 'workflow_id_prefix' | 'isFork'
> {
  readonly groupByStatus?: boolean;
  readonly groupByName?: boolean;
  readonly groupByQueueName?: boolean;
  readonly groupByExecutorId?: boolean;
  readonly groupByApplicationVersion?: boolean;
  readonly groupByApplicationName?: boolean;
  /** Groups by creation time, in buckets of this length. */
  readonly timeBucketSizeMs?: number;
  readonly selectCount?: boolean;
  readonly selectMinCreatedAt?: boolean;
  /** The longest time between creation and start. */
  readonly selectMaxQueueWaitMs?: boolean;
  /** The longest time between creation and end. */
  readonly selectMaxTotalLatencyMs?: boolean;
  readonly name?: WorkflowFilters['workflowName'];
  readonly appVersion?: WorkflowFilters['applicationVersion'];
  readonly workflowIdPrefix?: WorkflowFilters['workflow_id_prefix'];
}

/** Aggregates that were not selected are null. */
export interface WorkflowAggregate {
  readonly group: Readonly<Record<string, string | null>>;
  readonly count: number | null;
  readonly minCreatedAt: number | null;
  readonly maxQueueWaitMs: number | null;
  readonly maxTotalLatencyMs: number | null;
}

export interface GetStepAggregatesInput {
  readonly groupByFunctionName?: boolean;
  readonly groupByStatus?: boolean;
  /** Groups by completion time, in buckets of this length. */
  readonly timeBucketSizeMs?: number;
  readonly selectCount?: boolean;
  readonly selectMaxDurationMs?: boolean;
  readonly status?: OutcomeStatus | readonly OutcomeStatus[];
  readonly functionName?: string | readonly string[];
  readonly workflowIdPrefix?: string | readonly string[];
  readonly completedAfter?: string;
  readonly completedBefore?: string;
  readonly applicationName?: string | readonly string[];
}

export interface StepAggregate {
  readonly group: Readonly<Record<string, string | null>>;
  readonly count: number | null;
  readonly maxDurationMs: number | null;
}

export interface Metric {
  readonly metricType: 'workflow_count' | 'step_count';
  /** The name of the workflow function or the step. */
  readonly metricName: string;
  readonly value: number;
}

const WORKFLOW_GROUPS: Readonly<Record<string, WorkflowGroup>> = {
  groupByStatus: 'status',
  groupByName: 'name',
  groupByQueueName: 'queue_name',
  groupByExecutorId: 'executor_id',
  groupByApplicationVersion: 'application_version',
  groupByApplicationName: 'application_name',
};
const WORKFLOW_FIGURES: Readonly<Record<string, WorkflowFigure>> = {
  selectCount: 'count',
  selectMinCreatedAt: 'minCreatedAt',
  selectMaxQueueWaitMs: 'maxQueueWaitMs',
  selectMaxTotalLatencyMs: 'maxTotalLatencyMs',
};
const STEP_GROUPS: Readonly<Record<string, StepGroup>> = {
  groupByFunctionName: 'function_name',
  groupByStatus: 'status',
};
const STEP_FIGURES: Readonly<Record<string, StepFigure>> = {
  selectCount: 'count',
  selectMaxDurationMs: 'maxDurationMs',
};
const texts = nullish(oneOrMany(string()));
const stepFilterCheck = record({
  status: nullish(oneOrMany(oneOf(['SUCCESS', 'ERROR']))),
  functionName: texts,
  workflowIdPrefix: texts,
  completedAfter: nullish(timestamp),
  completedBefore: nullish(timestamp),
  applicationName: texts,
});
const inputCheck = objectWith();
const bucketCheck = nullish(integer());
const flagCheck = nullish(boolean);
const spanCheck = record({ startTime: timestamp, endTime: timestamp }, { unknown: 'ignore' });

/** Counts the matching workflows by group, with their longest waits and durations. */
export async function getWorkflowAggregates(
  operator: Operator,
  input: GetWorkflowAggregatesInput,
): Promise<WorkflowAggregate[]> {
  const { aggregation, rest } = toAggregation(input, WORKFLOW_GROUPS, WORKFLOW_FIGURES);
  const { name, appVersion, workflowIdPrefix, ...filters } = rest as GetWorkflowAggregatesInput;
  const named = { workflowName: name, applicationVersion: appVersion, workflow_id_prefix: workflowIdPrefix };
  const filter = toWorkflowFilter({ ...filters, ...named }, operator.applicationName);
  const scope = { filter, timeoutMs: queryTimeoutMs(operator) };
  const found = await operator.retrying(() => aggregateWorkflows(operator.database, aggregation, scope));
  return found.map(({ group, figures }) => ({ group, ...figures }));
}

/** Counts the matching steps by group, with their longest durations. */
export async function getStepAggregates(operator: Operator, input: GetStepAggregatesInput): Promise<StepAggregate[]> {
  const { aggregation, rest } = toAggregation(input, STEP_GROUPS, STEP_FIGURES);
  const given = stepFilterCheck.read(rest, 'query');
  const ownNames = operator.applicationName === null ? undefined : [operator.applicationName];
  const filter = {
    statuses: asArray(given.status),
    names: asArray(given.functionName),
    idPrefixes: asArray(given.workflowIdPrefix),
    completedAt: range(given.completedAfter, given.completedBefore),
    applicationNames: asArray(given.applicationName) ?? ownNames,
  };
  const scope = { filter, timeoutMs: queryTimeoutMs(operator) };
  const found = await operator.retrying(() => aggregateSteps(operator.database, aggregation, scope));
  return found.map(({ group, figures }) => ({ group, ...figures }));
}

/** Splits the input into groups, aggregates and filter. */
function toAggregation<Group extends string, Figure extends string>(
  input: object,
  groupFields: Readonly<Record<string, Group>>,
  figureFields: Readonly<Record<string, Figure>>,
): { readonly aggregation: Aggregation<Group, Figure>; readonly rest: object } {
  inputCheck.read(input, 'query');
  const { timeBucketSizeMs, ...rest } = input as Record<string, unknown>;
  const bucketMs = bucketCheck.read(timeBucketSizeMs, 'query.timeBucketSizeMs') ?? undefined;
  if (bucketMs === 0) throw new DBOSInvalidArgumentError('time_bucket_size_ms must be > 0', 'query.timeBucketSizeMs');
  const take = <T>(fields: Readonly<Record<string, T>>): T[] =>
    Object.entries(fields).flatMap(([field, meant]) => {
      const isWanted = flagCheck.read(rest[field], `query.${field}`);
      delete rest[field];
      return isWanted ? [meant] : [];
    });
  const groups = take(groupFields);
  const figures = take(figureFields);
  if (groups.length === 0 && bucketMs === undefined) {
    throw new DBOSInvalidArgumentError('At least one group_by flag must be set to True', 'query');
  }
  if (figures.length === 0) {
    throw new DBOSInvalidArgumentError('At least one select_ flag must be set to True', 'query');
  }
  return { aggregation: { groups, bucketMs, figures }, rest };
}

/** Counts workflows created and steps completed, by name, from `startTime` to before `endTime`. */
export async function getMetrics(
  operator: Operator,
  span: { readonly startTime: string; readonly endTime: string },
  applicationNames?: readonly string[],
): Promise<Metric[]> {
  const { startTime, endTime } = spanCheck.read(span, 'span');
  const [from, before] = [parseTimestamp(startTime), parseTimestamp(endTime)];
  const ownNames = operator.applicationName === null ? undefined : [operator.applicationName];
  const scope = {
    applicationNames: asArray(texts.read(applicationNames, 'applicationNames')) ?? ownNames,
    timeoutMs: queryTimeoutMs(operator),
  };
  const { workflows, steps } = await operator.retrying(() => countByName(operator.database, { from, before }, scope));
  return [
    ...workflows.map(({ name, count }) => ({ metricType: 'workflow_count', metricName: name, value: count }) as const),
    ...steps.map(({ name, count }) => ({ metricType: 'step_count', metricName: name, value: count }) as const),
  ];
}
