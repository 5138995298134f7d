// Routes that look at many workflows: lists, counts and figures.
import { getMetrics, getStepAggregates, getWorkflowAggregates } from '../../control/listing/aggregates.js';
import { countWorkflows, listWorkflowPage, type WorkflowFilters } from '../../control/listing/listing.js';
import { OUTCOME_STATUSES } from '../../model/status.js';
import { type Route, route } from '../http/route.js';
import {
  anyObject,
  flag,
  integer,
  listOf,
  mapOf,
  moment,
  named,
  nonEmpty,
  nullable,
  object,
  oneOfTexts,
  optional,
  type ReadFields,
  text,
} from '../shape.js';
import { status, viewWorkflow, workflowView } from '../views/workflow-view.js';

const names = optional(listOf(nonEmpty()));
const time = optional(moment());

/** One of the values of each filter must hold, and all filters. */
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
  queuesOnly: optional(flag('Only those that are in a queue: enqueued, delayed or running.')),
  wasForkedFrom: optional(flag()),
  hasParent: optional(flag()),
  attributes: optional(anyObject('Workflows whose attributes contain these; in a query string as JSON.')),
};

/** Figures cannot be asked for by this one. */
export const filters = { ...figureFilters, isFork: optional(flag()) };

type Filters = ReadFields<typeof filters>;

export function toFilters({ workflowID, workflowIDPrefix, ...rest }: Filters): WorkflowFilters {
  return { ...rest, workflowIDs: workflowID, workflow_id_prefix: workflowIDPrefix };
}

const tag = 'Figures';
const figure = nullable(integer());
const group = mapOf(nullable(text()));

const page = {
  limit: optional(integer({ min: 1, max: 1000, about: '100 unless given.' })),
  cursor: optional(nonEmpty('The nextCursor of the page before, with the same filters and order.')),
  sortDesc: optional(flag('The newest first, unless false.')),
  loadInput: optional(flag('With the inputs.')),
  loadOutput: optional(flag('With outputs and errors.')),
};

const workflowPage = named(
  'WorkflowPage',
  object({ workflows: listOf(workflowView), nextCursor: nullable(text({ about: 'Null after the last page.' })) }),
);

export const LISTING_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/workflows',
    tag: 'Workflows',
    summary: 'A page of the workflows that match.',
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
    summary: 'How many workflows match.',
    query: filters,
    result: object({ count: integer() }),
    async handle({ operator, query }) {
      return { count: await countWorkflows(operator, toFilters(query)) };
    },
  }),
  route({
    method: 'POST',
    path: '/aggregates/workflows',
    tag,
    summary: 'Counts, and the longest waits and times, of the workflows that match, by group.',
    body: object({
      groupByStatus: optional(flag()),
      groupByName: optional(flag()),
      groupByQueueName: optional(flag()),
      groupByExecutorId: optional(flag()),
      groupByApplicationVersion: optional(flag()),
      groupByApplicationName: optional(flag()),
      timeBucketSizeMs: optional(integer({ min: 1, about: 'Groups by time of creation.' })),
      selectCount: optional(flag()),
      selectMinCreatedAt: optional(flag()),
      selectMaxQueueWaitMs: optional(flag()),
      selectMaxTotalLatencyMs: optional(flag()),
      ...figureFilters,
    }),
    result: object({
      aggregates: listOf(
        object({
          group,
          count: figure,
          minCreatedAt: figure,
          maxQueueWaitMs: figure,
          maxTotalLatencyMs: figure,
        }),
        { max: Number.MAX_SAFE_INTEGER },
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
    tag,
    summary: 'Counts, and the longest times, of the steps that match, by group.',
    body: object({
      groupByFunctionName: optional(flag()),
      groupByStatus: optional(flag()),
      timeBucketSizeMs: optional(integer({ min: 1, about: 'Groups by time of completion.' })),
      selectCount: optional(flag()),
      selectMaxDurationMs: optional(flag()),
      status: optional(listOf(oneOfTexts(OUTCOME_STATUSES))),
      functionName: names,
      workflowIdPrefix: names,
      completedAfter: time,
      completedBefore: time,
      applicationName: names,
    }),
    result: object({
      aggregates: listOf(object({ group, count: figure, maxDurationMs: figure }), { max: Number.MAX_SAFE_INTEGER }),
    }),
    async handle({ operator, body }) {
      return { aggregates: await getStepAggregates(operator, body) };
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    tag,
    summary: 'How many workflows were created and steps completed, by name, from a time on and before another.',
    query: { startTime: moment(), endTime: moment(), applicationName: names },
    result: object({
      metrics: listOf(
        object({ metricType: oneOfTexts(['workflow_count', 'step_count']), metricName: text(), value: integer() }),
        { max: Number.MAX_SAFE_INTEGER },
      ),
    }),
    async handle({ operator, query: { applicationName, ...span } }) {
      return { metrics: await getMetrics(operator, span, applicationName) };
    },
  }),
];
