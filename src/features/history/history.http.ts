// Routes that show what happened to workflows.
import { getHistory, tailHistory } from './history.js';
import { boolean, integer, optional, record } from '../../kernel/check/validation.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { listOf, nonEmpty } from '../../faces/http/shape.js';
import { eventView, viewEvent } from './event-view.http.js';
import { idIn, requireWorkflow } from '../listing/workflows.http.js';

const tag = 'Workflows';
const LIMIT = 1000;
const LIMIT_MAX = 10_000;
const events = record({ events: listOf(eventView, { max: LIMIT_MAX }) });
const types = optional(listOf(nonEmpty).about('Only events of these types.'));
const limit = optional(integer({ min: 1, max: LIMIT_MAX }).about(`Defaults to ${LIMIT}.`));

export const HISTORY_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/workflows/{workflowID}/history',
    tag,
    summary: 'Lists what happened to it, in order.',
    query: {
      after: optional(nonEmpty.about('The cursor of an event.')),
      limit,
      types,
      payloads: optional(boolean.about('Adds inputs, results and errors.')),
    },
    result: events,
    async handle({ operator, path, query }) {
      const found: object[] = [];
      const options = { ...query, limit: query.limit ?? LIMIT };
      for await (const event of getHistory(operator, idIn(path), options)) found.push(viewEvent(event));
      // A deleted workflow may have an event.
      if (found.length === 0) await requireWorkflow(operator, idIn(path));
      return { events: found };
    },
  }),
  route({
    method: 'GET',
    path: '/history',
    tag,
    summary: 'Lists the stored events of all workflows since a time, in an order in which none is skipped.',
    query: {
      since: optional(integer().about('Epoch milliseconds. Defaults to 30 seconds ago.')),
      after: optional(nonEmpty.about('The cursor of an event, instead of a time.')),
      limit,
      types,
    },
    result: events,
    async handle({ operator, query }) {
      const { since = operator.clock.now() - 30_000, after, types: only, limit: most = LIMIT } = query;
      const found: object[] = [];
      for await (const event of tailHistory(operator, { since: after ?? since, types: only, follow: false })) {
        if (found.push(viewEvent(event)) >= most) break;
      }
      return { events: found };
    },
  }),
];
