// The route table of the JSON API, and the OpenAPI document generated from it.
import { openapiDocument } from './http/openapi.js';
import { type Route, route } from './http/route.js';
import { BULK_ROUTES, MAINTENANCE_ROUTES } from './routes/bulk.js';
import { HEALTH_ROUTES } from './routes/health.js';
import { HISTORY_ROUTES } from './routes/history.js';
import { LISTING_ROUTES } from './routes/listing.js';
import { OUTBOX_ROUTES } from './routes/outboxes.js';
import { OVERVIEW_ROUTES } from './routes/overview.js';
import { QUEUE_ROUTES } from './routes/queues.js';
import { RECEIVED_LETTER_ROUTES } from './routes/received-letters.js';
import { SCHEDULE_ROUTES } from './routes/schedules.js';
import { SESSION_ROUTES } from './routes/session.js';
import { SYSTEM_ROUTES } from './routes/system.js';
import { TIMELINE_ROUTES } from './routes/timeline.js';
import { TRANSFER_ROUTES } from './routes/transfer.js';
import { VALUE_ROUTES } from './routes/values.js';
import { WORKFLOW_ACTION_ROUTES } from './routes/workflow-actions.js';
import { WORKFLOW_ROUTES } from './routes/workflows.js';
import { jsonObject } from '../model/validation/validation.js';

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
