// Routes for the outboxes that the interface was given: the verbs of `OutboxBroker`.
import type { ChangeFilter, DeadLetterFilter } from './dead-letters/filter.js';
import {
  anything,
  boolean,
  type CheckedFields,
  integer,
  nullable,
  oneOf,
  optional,
  parseTimestamp,
  record,
  timestamp,
} from '../../kernel/check/validation.js';
import { jsonResponse } from '../../faces/http/http/response.js';
import { notFound } from '../../faces/http/http/refusal.js';
import { type Call, type Route, route } from '../../faces/http/http/route.js';
import { listOf, nonEmpty, text } from '../../faces/http/shape.js';
import { changeResult } from '../../features/lifecycle/workflow-actions.http.js';
import {
  type AdminOutbox,
  deadLetterView,
  findingView,
  groupView,
  healthView,
  queueStatistics,
  viewDeadLetter,
  withNulls,
} from './outbox-view.http.js';

const tag = 'Outboxes';
const PAGE_MAX = 1000;
const pageLimit = optional(integer({ min: 1, max: PAGE_MAX }));

const filters = {
  topic: optional(nonEmpty.about('The topic; with `#` and its name for those of one subscription.')),
  reason: optional(nonEmpty),
  fingerprint: optional(nonEmpty.about('A group of equal failures.')),
  since: optional(timestamp.about('Failed at this time or later.')),
  before: optional(timestamp.about('Failed before this time.')),
  archived: optional(oneOf(['yes', 'no', 'both']).about('Defaults to no.')),
};
const changes = {
  ids: optional(listOf(nonEmpty, { min: 1 })),
  ...filters,
  all: optional(boolean.about('Needed to mean all dead letters.')),
  limit: optional(integer({ min: 1 })),
  dryRun: optional(boolean.about('Only counts.')),
};

type Filters = CheckedFields<typeof filters>;

function outboxOf({ environment, path }: Call): AdminOutbox {
  const outbox = environment.outboxes.get(path['outbox'] ?? '');
  if (!outbox) throw notFound(`There is no outbox "${path['outbox']}". Pass it to createAdmin.`);
  return outbox;
}

function filterOf({ topic, reason, fingerprint, since, before, archived }: Filters): DeadLetterFilter {
  return {
    ...(topic !== undefined && { topic }),
    ...(reason !== undefined && { reason }),
    ...(fingerprint !== undefined && { fingerprint }),
    ...(since !== undefined && { since: parseTimestamp(since) }),
    ...(before !== undefined && { before: parseTimestamp(before) }),
    ...(archived !== undefined && { archived: archived === 'both' ? archived : archived === 'yes' }),
  };
}

interface Change {
  readonly filter: ChangeFilter;
  readonly bounds: { readonly limit?: number; readonly dryRun?: boolean };
}

function changeOf({ ids, all, limit, dryRun, ...rest }: CheckedFields<typeof changes>): Change {
  return {
    filter: { ...filterOf(rest), ...(ids && { ids }), ...(all === true && { all }) },
    bounds: { ...(limit !== undefined && { limit }), ...(dryRun !== undefined && { dryRun }) },
  };
}

const STATE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/outboxes',
    tag,
    summary: 'Lists the names of the outboxes.',
    result: record({ outboxes: listOf(text) }),
    handle: async ({ environment }) => ({ outboxes: [...environment.outboxes.keys()] }),
  }),
  route({
    method: 'GET',
    path: '/outboxes/{outbox}/statistics',
    tag,
    summary: 'Counts messages and dead letters by queue. Reads the whole table of the messages.',
    result: record({ queues: listOf(queueStatistics) }),
    handle: async (call) => ({ queues: await outboxOf(call).statistics() }),
  }),
  route({
    method: 'GET',
    path: '/outboxes/{outbox}/health',
    tag,
    summary: 'Says whether messages are fetched in time and dead letters do not pile up. Answers 503 if not.',
    query: {
      maxLagMs: optional(integer().about('Defaults to 5 minutes.')),
      maxDeadLetters: optional(integer()),
      schema: optional(boolean.about('Compares the schema too.')),
    },
    result: healthView,
    async handle(call) {
      const { maxLagMs: maxLag, ...rest } = call.query;
      const health = await outboxOf(call).health({ ...rest, ...(maxLag !== undefined && { maxLag }) });
      return health.ok ? health : jsonResponse(health, 503);
    },
  }),
  route({
    method: 'GET',
    path: '/outboxes/{outbox}/schema',
    tag,
    summary: 'Compares the tables with their declaration.',
    result: record({ ok: boolean, findings: listOf(findingView) }),
    handle: (call) => outboxOf(call).checkSchema(),
  }),
  route({
    method: 'POST',
    path: '/outboxes/{outbox}/topics/{topic}/pause',
    tag,
    summary: 'Stops all processes from fetching messages of a topic.',
    result: changeResult,
    handle: async (call) => ({ changed: await outboxOf(call).pause(call.path['topic'] ?? '') }),
  }),
  route({
    method: 'POST',
    path: '/outboxes/{outbox}/topics/{topic}/resume',
    tag,
    summary: 'Resumes a paused topic.',
    result: changeResult,
    handle: async (call) => ({ changed: await outboxOf(call).resume(call.path['topic'] ?? '') }),
  }),
];

const DEAD_LETTER_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/outboxes/{outbox}/dead-letters',
    tag,
    summary: 'Lists dead letters, the newest first.',
    query: { ...filters, limit: pageLimit, cursor: optional(nonEmpty) },
    result: record({ letters: listOf(deadLetterView), cursor: nullable(text) }),
    async handle(call) {
      const { limit, cursor, ...rest } = call.query;
      const page = await outboxOf(call).dlq.list({
        ...filterOf(rest),
        ...(limit !== undefined && { limit }),
        ...(cursor !== undefined && { cursor }),
      });
      return { letters: page.letters.map(viewDeadLetter), cursor: page.cursor ?? null };
    },
  }),
  route({
    method: 'GET',
    path: '/outboxes/{outbox}/dead-letter-groups',
    tag,
    summary: 'Counts dead letters that failed the same way, the most frequent first.',
    query: { ...filters, limit: pageLimit },
    result: record({ groups: listOf(groupView) }),
    async handle(call) {
      const { limit, ...rest } = call.query;
      const groups = await outboxOf(call).dlq.groups({ ...filterOf(rest), ...(limit !== undefined && { limit }) });
      return { groups: groups.map(withNulls) };
    },
  }),
  route({
    method: 'GET',
    path: '/outboxes/{outbox}/dead-letters/{id}',
    tag,
    summary: 'Returns a dead letter.',
    result: deadLetterView,
    async handle(call) {
      const letter = await outboxOf(call).dlq.get(call.path['id'] ?? '');
      if (!letter) throw notFound(`There is no dead letter "${call.path['id']}".`);
      return viewDeadLetter(letter);
    },
  }),
  route({
    method: 'POST',
    path: '/outboxes/{outbox}/dead-letters/{id}/requeue',
    tag,
    summary: 'Puts a dead letter back into the outbox, archived or not, with another body if one is passed.',
    body: record({ body: optional(anything.about('Replaces the body.')), delayMs: optional(integer()) }),
    result: record({ requeued: integer(), skipped: integer() }),
    async handle(call) {
      const { delayMs: delay, ...rest } = call.body;
      const id = call.path['id'] ?? '';
      const result = await outboxOf(call).dlq.requeue(
        { ids: [id], archived: 'both' },
        // null is a body too.
        { ...('body' in rest && { edit: () => rest.body }), ...(delay !== undefined && { delay }) },
      );
      if (result.requeued + result.skipped === 0) throw notFound(`There is no dead letter "${id}".`);
      return result;
    },
  }),
  route({
    method: 'POST',
    path: '/outboxes/{outbox}/bulk/requeue',
    tag,
    summary: 'Puts dead letters back into the outbox. One whose timer ID is pending is skipped.',
    body: record({ ...changes, delayMs: optional(integer()) }),
    result: record({ requeued: integer(), skipped: integer() }),
    handle(call) {
      const { delayMs: delay, ...rest } = call.body;
      const { filter, bounds } = changeOf(rest);
      return outboxOf(call).dlq.requeue(filter, { ...bounds, ...(delay !== undefined && { delay }) });
    },
  }),
  route({
    method: 'POST',
    path: '/outboxes/{outbox}/bulk/discard',
    tag,
    summary: 'Deletes dead letters.',
    body: record(changes),
    result: record({ discarded: integer() }),
    handle(call) {
      const { filter, bounds } = changeOf(call.body);
      return outboxOf(call).dlq.discard(filter, bounds);
    },
  }),
  route({
    method: 'POST',
    path: '/outboxes/{outbox}/bulk/archive',
    tag,
    summary: 'Takes dead letters out of the lists, and keeps them.',
    body: record(changes),
    result: record({ archived: integer() }),
    handle(call) {
      const { filter, bounds } = changeOf(call.body);
      return outboxOf(call).dlq.archive(filter, bounds);
    },
  }),
];

export const OUTBOX_ROUTES: readonly Route[] = [...STATE_ROUTES, ...DEAD_LETTER_ROUTES];
