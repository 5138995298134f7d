// Routes for the first page of the dashboard: what has gone on lately, and what needs attention. Their readings are shared by
// all viewers for some seconds.
import { OVERVIEW_WINDOWS, type OverviewWindow } from './overview.js';
import { integer, mapOf, nullable, oneOf, optional, record } from '../../kernel/check/validation.js';
import { ATTENTION_KINDS, findAttention, HARMS, PAGES } from '../../faces/http/dashboard/attention.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { listOf, text } from '../../faces/http/shape.js';
import { queueStats } from '../queue/queue-view.http.js';

const tag = 'Overview';
const figure = nullable(integer());

const bucket = record({
  at: integer().about('When it begins.'),
  created: integer(),
  succeeded: integer(),
  failed: integer(),
  cancelled: integer(),
  deadLettered: integer(),
  p50Ms: nullable(integer().about('From start to end, of those that ended in it.')),
  p95Ms: figure,
  waiting: integer().about('Enqueued workflows at its end, derived from what was created and claimed since.'),
  longestWaitMs: nullable(integer().about('The longest wait of a workflow that was claimed in it.')),
}).named('OverviewBucket');

const overview = record({
  window: oneOf(Object.keys(OVERVIEW_WINDOWS)),
  bucketMs: integer(),
  buckets: listOf(bucket).about('Oldest first. The last one is not over.'),
  queues: listOf(queueStats).about('As they are now.'),
}).named('Overview');

const attentionItem = record({
  kind: oneOf(ATTENTION_KINDS),
  title: text.about('What is concerned, such as the name of a queue.'),
  count: integer(),
  reason: text.about('For people.'),
  harm: oneOf(HARMS),
  link: record({ page: oneOf(PAGES), query: mapOf(text) }).about('The page that shows more, with its filters.'),
}).named('AttentionItem');

export const OVERVIEW_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/overview',
    tag,
    summary: 'Counts workflows created and ended over time, with durations and queue depths.',
    query: { window: optional(oneOf(Object.keys(OVERVIEW_WINDOWS)).about('Defaults to 1h.')) },
    result: overview,
    async handle({ operator, environment, query }) {
      const window = (query.window ?? '1h') as OverviewWindow;
      return { window, ...(await environment.readings.overview(window, operator)) };
    },
  }),
  route({
    method: 'GET',
    path: '/attention',
    tag,
    summary: 'Lists what needs attention, the most harmful first.',
    result: record({ items: listOf(attentionItem) }),
    async handle({ operator, environment }) {
      const read = () => findAttention(operator, environment.outboxes);
      return { items: await environment.readings.attention(operator.clock, read) };
    },
  }),
];
