// Routes that read a single workflow.
import { explainWorkflow } from '../diagnosis/explain.js';
import { remedyOf } from '../../faces/http/views/remedy.js';
import { getAllEvents, getAllNotifications, getStreamPage, getWorkflow } from './inspection.js';
import { listWorkflowSteps } from './steps.js';
import { listStreams } from '../message/streams.sql.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import { explanation } from '../queue/queue-view.http.js';
import { notFound } from '../../faces/http/http/refusal.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { integer, INT_MAX, optional, record } from '../../kernel/check/validation.js';
import { listOf, text } from '../../faces/http/shape.js';
import type { StoreOperator } from '../../faces/http/source.js';
import { showValue } from '../../faces/http/views/value.js';
import {
  eventsView,
  messageView,
  stepView,
  streamPageView,
  streamView,
  viewMessage,
  viewStep,
  viewWorkflow,
  workflowView,
} from '../../faces/http/views/workflow-view.js';

const tag = 'Workflows';
const ONE = '/workflows/{workflowID}';
const STREAM_PAGE = 1000;

export const WORKFLOW_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: ONE,
    tag,
    summary: 'Returns a workflow with its input and outcome.',
    result: workflowView,
    async handle({ operator, path }) {
      const found = await getWorkflow(operator, idIn(path));
      if (!found) throw workflowMissing(idIn(path));
      return viewWorkflow(found);
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/steps`,
    tag,
    summary: 'Lists its steps in order.',
    query: { limit: optional(integer({ min: 1, max: 10_000 })), offset: optional(integer({ max: INT_MAX })) },
    result: record({ steps: listOf(stepView) }),
    async handle({ operator, path, query }) {
      await requireWorkflow(operator, idIn(path));
      return { steps: ((await listWorkflowSteps(operator, idIn(path), query)) ?? []).map(viewStep) };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/events`,
    tag,
    summary: 'Returns its events.',
    result: record({ events: eventsView }),
    async handle({ operator, path }) {
      await requireWorkflow(operator, idIn(path));
      return { events: mapValues(await getAllEvents(operator, idIn(path)), showValue) };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/messages`,
    tag,
    summary: 'Lists the messages sent to it, oldest first.',
    result: record({ messages: listOf(messageView) }),
    async handle({ operator, path }) {
      await requireWorkflow(operator, idIn(path));
      return { messages: (await getAllNotifications(operator, idIn(path))).map(viewMessage) };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/streams`,
    tag,
    summary: 'Lists its streams.',
    result: record({ streams: listOf(streamView) }),
    async handle({ operator, path }) {
      await requireWorkflow(operator, idIn(path));
      return { streams: await operator.retrying(() => listStreams(operator.database, idIn(path))) };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/stream-values`,
    tag,
    summary: 'Returns values of a stream, one page at a time.',
    query: {
      key: text,
      after: optional(integer({ max: INT_MAX }).about('Only values with higher offsets.')),
      limit: optional(integer({ min: 1, max: 1000 }).about('Defaults to 1000.')),
    },
    result: streamPageView,
    async handle({ operator, path, query: { key, after = -1, limit = STREAM_PAGE } }) {
      await requireWorkflow(operator, idIn(path));
      const asked = { workflowID: idIn(path), key, after, limit };
      const { values, nextAfter } = await getStreamPage(operator, asked);
      return { values: values.map(({ offset, value }) => ({ offset, value: showValue(value) })), nextAfter };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/explanation`,
    tag,
    summary: 'Explains its status, such as why it has not started.',
    result: explanation,
    async handle({ operator, path }) {
      const found = await explainWorkflow(operator, idIn(path));
      if (found.status === null) throw workflowMissing(idIn(path));
      return { ...found, action: remedyOf(found) };
    },
  }),
];

export function idIn(path: Readonly<Record<string, string>>): string {
  return path['workflowID'] ?? '';
}

export function workflowMissing(id: string): Error {
  return notFound(`Workflow ${JSON.stringify(id)} not found.`);
}

/** Verbs skip missing workflows, but a request for a single one should get a 404. */
export async function requireWorkflow(operator: StoreOperator, id: string): Promise<void> {
  const found = await operator.retrying(() => findWorkflows(operator.database, [id]));
  if (found.length === 0) throw workflowMissing(id);
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
