// Routes for the pages of a workflow: its timeline, its family, and how it differs from another.
import { getFamily } from '../listing/family.js';
import { getHistory, type HistoryEvent } from './history.js';
import { diffEvents } from './history-diff.js';
import { getTimeline } from './timeline.js';
import { anything, boolean, integer, nullable, oneOf, optional, record } from '../../kernel/check/validation.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { listOf, nonEmpty, text } from '../../faces/http/shape.js';
import type { StoreOperator } from '../../faces/http/source.js';
import { eventView, viewEvent } from './event-view.http.js';
import { status } from '../../faces/http/views/workflow-view.js';
import { idIn, requireWorkflow, workflowMissing } from '../listing/workflows.http.js';

const tag = 'Workflows';
const ONE = '/workflows/{workflowID}';
const ROWS = 1000;
const ROWS_MAX = 10_000;
const time = nullable(integer());

const timelineRow = record({
  step: integer(),
  name: text,
  kind: oneOf(['step', 'sleep', 'wait', 'child', 'message', 'event', 'stream', 'operation']),
  state: oneOf(['done', 'failed', 'running', 'stopped']),
  startedAt: time,
  endedAt: nullable(integer().about('Null while it runs.')),
  dueAt: nullable(integer().about('When a sleep, or the time limit of a wait, ends.')),
  childWorkflowID: nullable(text),
  retries: listOf(record({ attempt: integer(), at: integer(), error: nullable(text) })).about('Its failed attempts.'),
}).named('TimelineRow');

const timelineView = record({
  workflowID: text,
  status,
  createdAt: integer(),
  startedAt: time,
  completedAt: time,
  now: integer().about("By the database's clock."),
  rows: listOf(timelineRow, { max: ROWS_MAX }),
  marks: listOf(
    record({ type: text, at: integer(), attempt: time, executor: nullable(text), actor: nullable(text) }),
  ).about('What happened to the workflow as a whole.'),
  nextAfter: nullable(integer().about('Pass it as `after` for the next operations.')),
}).named('Timeline');

const member = record({
  workflowID: text,
  parentWorkflowID: nullable(text),
  workflowName: text,
  status,
  createdAt: integer(),
  dequeuedAt: time,
  completedAt: time,
}).named('FamilyMember');

const difference = record({
  at: anything.about('The number of a step, or `outcome`.'),
  first: optional(eventView),
  second: optional(eventView),
}).named('HistoryDifference');

/** Histories are compared in memory. */
const COMPARED_MAX = 50_000;

async function readAll(operator: StoreOperator, workflowID: string): Promise<HistoryEvent[]> {
  await requireWorkflow(operator, workflowID);
  const events: HistoryEvent[] = [];
  const options = { payloads: true, limit: COMPARED_MAX };
  for await (const event of getHistory(operator, workflowID, options)) events.push(event);
  return events;
}

export const TIMELINE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: `${ONE}/timeline`,
    tag,
    summary: 'Returns when its steps, sleeps, waits and children began and ended, with failed attempts.',
    query: {
      after: optional(integer().about('The number of the last operation seen.')),
      limit: optional(integer({ min: 1, max: ROWS_MAX }).about(`Defaults to ${ROWS}.`)),
    },
    result: timelineView,
    async handle({ operator, path, query: { after, limit = ROWS } }) {
      const timeline = await getTimeline(operator, idIn(path), { after, limit });
      if (!timeline) throw workflowMissing(idIn(path));
      return timeline;
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/tree`,
    tag,
    summary: 'Returns its parents and children, each parent before its children.',
    result: record({ workflows: listOf(member), isTruncated: boolean.about('There are more.') }),
    async handle({ operator, path }) {
      const family = await getFamily(operator, idIn(path));
      if (!family) throw workflowMissing(idIn(path));
      const workflows = family.members.map(({ name, startedAt, ...rest }) => ({
        ...rest,
        workflowName: name,
        dequeuedAt: startedAt,
      }));
      return { workflows, isTruncated: family.isTruncated };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/comparison`,
    tag,
    summary: 'Compares its steps and outcome with those of another workflow, such as the one it was forked from.',
    query: { with: nonEmpty.about('The ID of the other workflow.') },
    result: record({
      same: integer().about('How many steps are the same.'),
      differences: listOf(difference, { max: COMPARED_MAX }),
    }),
    async handle({ operator, path, query }) {
      const [first, second] = [await readAll(operator, idIn(path)), await readAll(operator, query.with)];
      const { same, differences } = diffEvents(first, second);
      const view = (event: HistoryEvent | undefined): object | undefined => event && viewEvent(event);
      return {
        same,
        differences: differences.map((one) => ({ at: one.at, first: view(one.first), second: view(one.second) })),
      };
    },
  }),
];
