// Routes for schedules.
import {
  applySchedules,
  backfillSchedule,
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  nextRuns,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
  updateSchedule,
  type WorkflowSchedule,
} from './schedules.js';
import { occurrencesBetween } from './occurrences.js';
import { scheduleView, viewSchedule } from '../queue/queue-view.http.js';
import { notFound } from '../../faces/http/http/refusal.js';
import { type Call, type Route, route } from '../../faces/http/http/route.js';
import {
  anything,
  array,
  boolean,
  integer,
  INT_MAX,
  nullable,
  number,
  oneOf,
  optional,
  record,
  timestamp,
} from '../../kernel/check/validation.js';
import { text, nonEmpty, listOf } from '../../faces/http/shape.js';
import { changeResult, workflowID } from '../lifecycle/workflow-actions.http.js';

const tag = 'Schedules';
const ONE = '/schedules/{name}';

const settings = {
  context: optional(anything.about('Passed to the workflow.')),
  automaticBackfill: optional(
    boolean.about('Runs occurrences at launch that were missed while no process was running.'),
  ),
  overlap: optional(oneOf(['allow', 'skip', 'cancelPrevious'])),
  jitterMs: optional(number({ max: INT_MAX }).about('The maximum random delay.')),
};

const definition = record({
  scheduleName: nonEmpty,
  workflowName: nonEmpty,
  workflowClassName: optional(text),
  schedule: nonEmpty.about('A cron expression.'),
  cronTimezone: optional(nonEmpty.about('An IANA name. Defaults to UTC.')),
  queueName: optional(nonEmpty),
  applicationName: optional(nonEmpty),
  ...settings,
}).named('ScheduleDefinition');

const PREVIEW_SHOWN = 100;
const PREVIEW_MAX = 10_000;

const COLLECTION: readonly Route[] = [
  route({
    method: 'GET',
    path: '/schedule-preview',
    tag,
    summary: 'Returns the next occurrences of a cron expression, before a schedule has it.',
    query: {
      schedule: nonEmpty.about('A cron expression.'),
      cronTimezone: optional(nonEmpty.about('An IANA name. Defaults to UTC.')),
      count: optional(integer({ min: 1, max: 1000 }).about('Defaults to 10.')),
    },
    result: record({ nextRuns: listOf(text) }),
    async handle({ operator, query: { count = 10, ...cron } }) {
      return { nextRuns: (await nextRuns(operator, cron, count)).map((date) => date.toISOString()) };
    },
  }),
  route({
    method: 'GET',
    path: '/schedules',
    tag,
    summary: 'Lists matching schedules, sorted by name.',
    query: {
      status: optional(listOf(oneOf(['ACTIVE', 'PAUSED']))),
      workflowName: optional(listOf(nonEmpty)),
      scheduleNamePrefix: optional(listOf(nonEmpty)),
      applicationName: optional(listOf(nonEmpty)),
    },
    result: record({ schedules: listOf(scheduleView) }),
    async handle({ operator, query }) {
      return { schedules: (await listSchedules(operator, query)).map(viewSchedule) };
    },
  }),
  route({
    method: 'POST',
    path: '/schedules',
    tag,
    summary: 'Creates a schedule.',
    body: definition,
    status: 201,
    result: scheduleView,
    async handle({ operator, body }) {
      await createSchedule(operator, { ...body, workflowClassName: body.workflowClassName ?? null });
      return viewSchedule(await requireSchedule({ operator, path: { name: body.scheduleName } }));
    },
  }),
  route({
    method: 'PUT',
    path: '/schedules',
    tag,
    summary: 'Creates or replaces schedules, all or none. Existing ones keep their status and last run.',
    body: record({ schedules: listOf(definition, { max: 1000 }) }),
    handle: ({ operator, body: { schedules } }) =>
      applySchedules(
        operator,
        schedules.map((one) => ({ ...one, workflowClassName: one.workflowClassName ?? null })),
      ),
  }),
];

const SINGLE: readonly Route[] = [
  route({
    method: 'GET',
    path: ONE,
    tag,
    summary: 'Returns a schedule.',
    result: scheduleView,
    handle: async (call) => viewSchedule(await requireSchedule(call)),
  }),
  route({
    method: 'PATCH',
    path: ONE,
    tag,
    summary: 'Changes the given settings; null removes the time zone or the queue.',
    body: record({
      schedule: optional(nonEmpty),
      cronTimezone: optional(nullable(nonEmpty)),
      queueName: optional(nullable(nonEmpty)),
      ...settings,
    }),
    result: scheduleView,
    async handle(call) {
      await requireSchedule(call);
      await updateSchedule(call.operator, nameIn(call), call.body);
      return viewSchedule(await requireSchedule(call));
    },
  }),
  route({
    method: 'DELETE',
    path: ONE,
    tag,
    summary: 'Deletes a schedule. Workflows it has enqueued stay.',
    async handle(call) {
      await requireSchedule(call);
      await deleteSchedule(call.operator, nameIn(call));
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/pause`,
    tag,
    summary: 'Stops it from firing until it is resumed.',
    result: changeResult,
    async handle(call) {
      await requireSchedule(call);
      return { changed: await pauseSchedule(call.operator, nameIn(call)) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/resume`,
    tag,
    summary: 'Lets it fire again.',
    result: changeResult,
    async handle(call) {
      await requireSchedule(call);
      return { changed: await resumeSchedule(call.operator, nameIn(call)) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/trigger`,
    tag,
    summary: 'Enqueues its workflow now, even if it is paused.',
    status: 201,
    result: workflowID,
    async handle(call) {
      await requireSchedule(call);
      return { workflowID: await triggerSchedule(call.operator, nameIn(call)) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/backfill`,
    tag,
    summary: 'Enqueues workflows for all occurrences after start and before end.',
    body: record({ start: timestamp, end: timestamp }),
    status: 201,
    result: record({ workflowIDs: array(text) }),
    async handle(call) {
      await requireSchedule(call);
      const span = { start: new Date(call.body.start), end: new Date(call.body.end) };
      return { workflowIDs: await backfillSchedule(call.operator, nameIn(call), span) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/backfill-preview`,
    tag,
    summary: 'Lists what a backfill would enqueue, without doing it.',
    isReading: true,
    body: record({ start: timestamp, end: timestamp }),
    result: record({
      count: integer(),
      occurrences: listOf(text).about(`The first ${PREVIEW_SHOWN}.`),
      isTruncated: boolean.about(`There are more than ${PREVIEW_MAX}; the rest is not counted.`),
    }),
    async handle(call) {
      const { schedule, cronTimezone } = await requireSchedule(call);
      const span = { start: new Date(call.body.start), end: new Date(call.body.end) };
      const dates = occurrencesBetween({ schedule, cronTimezone }, span, PREVIEW_MAX + 1);
      const occurrences = dates.slice(0, PREVIEW_SHOWN).map((date) => date.toISOString());
      return { count: Math.min(dates.length, PREVIEW_MAX), occurrences, isTruncated: dates.length > PREVIEW_MAX };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/next-runs`,
    tag,
    summary: 'Returns its next occurrences.',
    query: { count: optional(integer({ min: 1, max: 1000 }).about('Defaults to 10.')) },
    result: record({ nextRuns: listOf(text) }),
    async handle(call) {
      await requireSchedule(call);
      const dates = await nextRuns(call.operator, nameIn(call), call.query.count ?? 10);
      return { nextRuns: dates.map((date) => date.toISOString()) };
    },
  }),
];

export const SCHEDULE_ROUTES: readonly Route[] = [...COLLECTION, ...SINGLE];

type AnyCall = Pick<Call, 'operator' | 'path'>;

function nameIn({ path }: AnyCall): string {
  return path['name'] ?? '';
}

async function requireSchedule(call: AnyCall): Promise<WorkflowSchedule> {
  const found = await getSchedule(call.operator, nameIn(call));
  if (found) return found;
  throw notFound(`Schedule ${JSON.stringify(nameIn(call))} not found.`);
}
