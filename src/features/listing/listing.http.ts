// Routes that list, count and aggregate workflows.
import { getMetrics, getStepAggregates, getWorkflowAggregates } from './aggregates.js';
import { countWorkflows, estimateWorkflows, listWorkflowPage, type WorkflowFilters } from './listing.js';
import { OUTCOME_STATUSES } from '../../kernel/workflow/status.js';
import { type Route, route } from '../../faces/http/http/route.js';
import {
  array,
  boolean,
  integer,
  jsonObject,
  mapOf,
  nullable,
  oneOf,
  optional,
  record,
  timestamp,
  type CheckedFields,
} from '../../kernel/check/validation.js';
import { text, nonEmpty, listOf } from '../../faces/http/shape.js';
import { status, viewWorkflow, workflowView } from '../../faces/http/views/workflow-view.js';

const names = optional(listOf(nonEmpty));
const time = optional(timestamp);

/** A workflow must match all filters, and any of the values of each. */
const figureFilters = {
  workflowID: names,
  workflowIDPrefix: names,
  workflowName: names,
  status: optional(listOf(status)),
  queueName: names,
  authenticatedUser: names,
  applicationVersion: names,
  applicationName: names,
  executorId: names,
  forkedFrom: names,
  parentWorkflowID: names,
  scheduleName: names,
  startTime: time,
  endTime: time,
  completedAfter: time,
  completedBefore: time,
  dequeuedAfter: time,
  dequeuedBefore: time,
  queuesOnly: optional(boolean.about('Only workflows in a queue: enqueued, delayed or running.')),
  wasForkedFrom: optional(boolean),
  hasParent: optional(boolean),
  attributes: optional(jsonObject.about('Only workflows with these attributes; JSON in a query string.')),
};

/** Aggregates do not support `isFork`. */
export const filters = { ...figureFilters, isFork: optional(boolean) };

type Filters = CheckedFields<typeof filters>;

export function toFilters({ workflowID, workflowIDPrefix, ...rest }: Filters): WorkflowFilters {
  return { ...rest, workflowIDs: workflowID, workflow_id_prefix: workflowIDPrefix };
}

const tag = 'Figures';
const figure = nullable(integer());
const group = mapOf(nullable(text));

const page = {
  limit: optional(integer({ min: 1, max: 1000 }).about('Defaults to 100.')),
  cursor: optional(nonEmpty.about('The nextCursor of the previous page, with the same filters and order.')),
  sortDesc: optional(boolean.about('Newest first. Defaults to true.')),
  loadInput: optional(boolean.about('Includes inputs.')),
  loadOutput: optional(boolean.about('Includes outputs and errors.')),
};

const workflowPage = record({
  workflows: listOf(workflowView),
  nextCursor: nullable(text.about('Null after the last page.')),
}).named('WorkflowPage');

export const LISTING_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/workflows',
    tag: 'Workflows',
    summary: 'Lists matching workflows, one page at a time.',
    query: { ...filters, ...page },
    result: workflowPage,
    async handle({
      operator,
      query: { limit, cursor, sortDesc = true, loadInput = false, loadOutput = false, ...rest },
    }) {
      const paging = { limit, cursor, sortDesc, loadInput, loadOutput };
      const { workflows, nextCursor } = await listWorkflowPage(operator, { ...toFilters(rest), ...paging });
      return { workflows: workflows.map((one) => viewWorkflow(one, { hasOutcome: loadOutput })), nextCursor };
    },
  }),
  route({
    method: 'GET',
    path: '/workflow-count',
    tag: 'Workflows',
    summary: 'Counts matching workflows.',
    query: {
      ...filters,
      exactMax: optional(integer({ min: 1 }).about('Counts up to this many, and estimates more. Defaults to all.')),
    },
    result: record({
      count: integer(),
      isEstimate: boolean.about('There are more than `exactMax`, about this many. On SQLite, at least this many.'),
    }),
    async handle({ operator, query: { exactMax, ...rest } }) {
      const given = toFilters(rest);
      if (exactMax === undefined) return { count: await countWorkflows(operator, given), isEstimate: false };
      return estimateWorkflows(operator, given, exactMax);
    },
  }),
  route({
    method: 'POST',
    path: '/aggregates/workflows',
    isReading: true,
    tag,
    summary: 'Counts matching workflows by group, with their longest waits and latencies.',
    body: record({
      groupByStatus: optional(boolean),
      groupByName: optional(boolean),
      groupByQueueName: optional(boolean),
      groupByExecutorId: optional(boolean),
      groupByApplicationVersion: optional(boolean),
      groupByApplicationName: optional(boolean),
      timeBucketSizeMs: optional(integer({ min: 1 }).about('Groups by creation time.')),
      selectCount: optional(boolean),
      selectMinCreatedAt: optional(boolean),
      selectMaxQueueWaitMs: optional(boolean),
      selectMaxTotalLatencyMs: optional(boolean),
      ...figureFilters,
    }),
    result: record({
      aggregates: array(
        record({
          group,
          count: figure,
          minCreatedAt: figure,
          maxQueueWaitMs: figure,
          maxTotalLatencyMs: figure,
        }),
      ),
    }),
    async handle({ operator, body }) {
      const { workflowName, applicationVersion, workflow_id_prefix, ...rest } = toFilters(body);
      const renamed = { name: workflowName, appVersion: applicationVersion, workflowIdPrefix: workflow_id_prefix };
      return { aggregates: await getWorkflowAggregates(operator, { ...rest, ...renamed }) };
    },
  }),
  route({
    method: 'POST',
    path: '/aggregates/steps',
    isReading: true,
    tag,
    summary: 'Counts matching steps by group, with their longest durations.',
    body: record({
      groupByFunctionName: optional(boolean),
      groupByStatus: optional(boolean),
      timeBucketSizeMs: optional(integer({ min: 1 }).about('Groups by completion time.')),
      selectCount: optional(boolean),
      selectMaxDurationMs: optional(boolean),
      status: optional(listOf(oneOf(OUTCOME_STATUSES))),
      functionName: names,
      workflowIdPrefix: names,
      completedAfter: time,
      completedBefore: time,
      applicationName: names,
    }),
    result: record({
      aggregates: array(record({ group, count: figure, maxDurationMs: figure })),
    }),
    async handle({ operator, body }) {
      return { aggregates: await getStepAggregates(operator, body) };
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    tag,
    summary: 'Counts workflows created and steps completed, by name, from startTime to before endTime.',
    query: { startTime: timestamp, endTime: timestamp, applicationName: names },
    result: record({
      metrics: array(
        record({ metricType: oneOf(['workflow_count', 'step_count']), metricName: text, value: integer() }),
      ),
    }),
    async handle({ operator, query: { applicationName, ...span } }) {
      return { metrics: await getMetrics(operator, span, applicationName) };
    },
  }),
];
