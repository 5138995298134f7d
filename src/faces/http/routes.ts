// The route table of the JSON API, and the OpenAPI document generated from it.
import { openapiDocument } from './http/openapi.js';
import { type Route, route } from './http/route.js';
import { BULK_ROUTES, MAINTENANCE_ROUTES } from '../../features/lifecycle/bulk.http.js';
import { HEALTH_ROUTES } from './routes/health.js';
import { HISTORY_ROUTES } from '../../features/history/history.http.js';
import { LISTING_ROUTES } from '../../features/listing/listing.http.js';
import { OUTBOX_ROUTES } from '../../plugins/outbox/outboxes.http.js';
import { OVERVIEW_ROUTES } from '../../features/listing/overview.http.js';
import { QUEUE_ROUTES } from '../../features/queue/queues.http.js';
import { RECEIVED_LETTER_ROUTES } from '../../features/dead-letter/received-letters.http.js';
import { SCHEDULE_ROUTES } from '../../features/schedule/schedules.http.js';
import { SESSION_ROUTES } from './routes/session.js';
import { SYSTEM_ROUTES } from './routes/system.js';
import { TIMELINE_ROUTES } from '../../features/history/timeline.http.js';
import { TRANSFER_ROUTES } from '../../features/transfer/transfer.http.js';
import { VALUE_ROUTES } from './routes/values.js';
import { WORKFLOW_ACTION_ROUTES } from '../../features/lifecycle/workflow-actions.http.js';
import { WORKFLOW_ROUTES } from '../../features/listing/workflows.http.js';
import { jsonObject } from '../../kernel/check/validation.js';

/** Relative to `/api/v1`. */
export const ROUTES: readonly Route[] = [
  ...OVERVIEW_ROUTES,
  ...LISTING_ROUTES,
  ...WORKFLOW_ROUTES,
  ...HISTORY_ROUTES,
  ...TIMELINE_ROUTES,
  ...VALUE_ROUTES,
  ...WORKFLOW_ACTION_ROUTES,
  ...BULK_ROUTES,
  ...TRANSFER_ROUTES,
  ...QUEUE_ROUTES,
  ...SCHEDULE_ROUTES,
  ...RECEIVED_LETTER_ROUTES,
  ...OUTBOX_ROUTES,
  ...SYSTEM_ROUTES,
  ...MAINTENANCE_ROUTES,
  ...HEALTH_ROUTES,
  ...SESSION_ROUTES,
  route({
    method: 'GET',
    path: '/openapi.json',
    tag: 'This interface',
    summary: 'Returns the OpenAPI document of this interface.',
    result: jsonObject,
    handle: async () => openapiDocument(ROUTES),
  }),
];
