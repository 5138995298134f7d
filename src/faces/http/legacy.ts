// The endpoints of DBOS 4's admin server: same paths, bodies, responses and status codes, but no CORS headers.
import { forkWorkflows } from '../../features/lifecycle/forks.js';
import { getWorkflow } from '../../features/listing/inspection.js';
import { cancelWorkflows, resumeWorkflows } from '../../features/lifecycle/lifecycle.js';
import { type GetWorkflowsInput, listQueuedWorkflows, listWorkflows } from '../../features/listing/listing.js';
import { listQueueRecords } from '../../features/queue/queues.js';
import { garbageCollect, globalTimeout } from '../../features/retention/retention.js';
import { listWorkflowSteps } from '../../features/listing/steps.js';
import { DBOSError, DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { toQueueRecord, INTERNAL_QUEUE } from '../../features/queue/queue.js';
import { emptyResponse, jsonResponse, textResponse } from './http/response.js';
import { legacyQueue, legacyStep, legacyWorkflow } from './views/legacy-view.js';
import type { Routed } from './http/route.js';
import { type AdminSource, localEngine, type StoreOperator } from './source.js';

/** Event loop utilization since the last call. */
export interface Perf {
  sinceLastCall(): unknown;
}

export interface LegacyCall {
  readonly operator: StoreOperator;
  readonly source: AdminSource;
  readonly perf: Perf;
  readonly workflowID: string;
  /** An empty object without a body. */
  readonly body: unknown;
}

export interface LegacyRoute extends Routed {
  handle(call: LegacyCall): Promise<Response>;
}

const ONE = '/workflows/{workflowID}';

export const LEGACY_ROUTES: readonly LegacyRoute[] = [
  get('/dbos-healthz', async () => textResponse('healthy')),
  post('/dbos-workflow-recovery', recover),
  get('/dbos-perf', async ({ perf }) => jsonResponse(perf.sinceLastCall())),
  {
    method: 'GET',
    path: '/deactivate',
    isReading: false,
    async handle({ source }) {
      await source.deactivateEventReceivers?.();
      return textResponse('Deactivated');
    },
  },
  get('/conductor', async () => jsonResponse({ status: true })),
  get('/dbos-workflow-queues-metadata', describeQueues),
  post('/dbos-garbage-collect', async ({ operator, body }) => {
    const { cutoff_epoch_timestamp_ms: cutoffEpochTimestampMs, rows_threshold: rowsThreshold } = fieldsOf(body);
    // The verb refuses wrong types.
    await garbageCollect(operator, { cutoffEpochTimestampMs, rowsThreshold } as Parameters<typeof garbageCollect>[1]);
    return emptyResponse();
  }),
  post('/dbos-global-timeout', async ({ operator, body }) => {
    await globalTimeout(operator, fieldsOf(body)['cutoff_epoch_timestamp_ms'] as number);
    return emptyResponse();
  }),
  post(`${ONE}/cancel`, async ({ operator, workflowID }) => {
    await cancelWorkflows(operator, [workflowID]);
    return emptyResponse();
  }),
  post(`${ONE}/resume`, ({ operator, workflowID }) =>
    orMessage(async () => {
      await resumeWorkflows(operator, [workflowID]);
      return emptyResponse();
    }),
  ),
  post(`${ONE}/restart`, async ({ operator, workflowID }) => fork(operator, { workflowID, startStep: 0 })),
  post(`${ONE}/fork`, forkFromBody),
  get(`${ONE}/steps`, async ({ operator, workflowID }) =>
    jsonResponse(((await listWorkflowSteps(operator, workflowID)) ?? []).map(legacyStep)),
  ),
  get(ONE, async ({ operator, workflowID }) => {
    const found = await getWorkflow(operator, workflowID);
    return found
      ? jsonResponse(legacyWorkflow(found))
      : jsonResponse({ error: `Workflow ${workflowID} not found` }, 404);
  }),
  list('/workflows', async ({ operator, body }) =>
    jsonResponse((await listWorkflows(operator, toInput(body))).map(legacyWorkflow)),
  ),
  list('/queues', async ({ operator, body }) =>
    jsonResponse((await listQueuedWorkflows(operator, toInput(body))).map(legacyWorkflow)),
  ),
];

function get(path: string, handle: LegacyRoute['handle']): LegacyRoute {
  return { method: 'GET', path, handle };
}

function post(path: string, handle: LegacyRoute['handle']): LegacyRoute {
  return { method: 'POST', path, handle };
}

function list(path: string, handle: LegacyRoute['handle']): LegacyRoute {
  return { method: 'POST', path, isReading: true, handle };
}

function fieldsOf(body: unknown): Record<string, unknown> {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
}

async function recover({ source, body }: LegacyCall): Promise<Response> {
  const engine = localEngine(source);
  const isList = Array.isArray(body) && body.every((executorID) => typeof executorID === 'string');
  if (!engine || !isList) throw new DBOSInvalidArgumentError('Recovery needs an engine and an array of executor IDs.');
  const workflowIDs: string[] = [];
  for (const executorID of body) workflowIDs.push(...(await engine.recoverExecutor(executorID)));
  return jsonResponse(workflowIDs);
}

/** In-memory queues hide database queues of the same name. */
async function describeQueues({ operator, source }: LegacyCall): Promise<Response> {
  const stored = await listQueueRecords(operator);
  const inMemory = localEngine(source)?.memoryQueues() ?? [];
  const internal = toQueueRecord(INTERNAL_QUEUE, {}, null);
  const queues = new Map([...stored, internal, ...inMemory].map((record) => [record.name, record]));
  return jsonResponse([...queues.values()].map(legacyQueue));
}

async function forkFromBody({ operator, workflowID, body }: LegacyCall): Promise<Response> {
  const fields = fieldsOf(body);
  const startStep = fields['start_step'];
  if (startStep === undefined) return jsonResponse({ error: 'start_step is required' }, 400);
  // The verb or the database refuses wrong types.
  const request = { workflowID, startStep: startStep as number, newWorkflowID: textIn(fields, 'new_workflow_id') };
  const settings = {
    applicationVersion: textIn(fields, 'application_version'),
    timeoutMS: fields['timeout_ms'] as number | undefined,
  };
  return orMessage(() => fork(operator, request, settings));
}

async function fork(
  operator: StoreOperator,
  request: Parameters<typeof forkWorkflows>[1][number],
  settings: Parameters<typeof forkWorkflows>[2] = {},
): Promise<Response> {
  const [forkID] = await forkWorkflows(operator, [request], settings);
  return jsonResponse({ workflow_id: forkID });
}

function textIn(fields: Record<string, unknown>, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  throw new DBOSInvalidArgumentError(`${name} must be a string.`, name);
}

/** Two endpoints report why they failed, except for database errors. */
async function orMessage(act: () => Promise<Response>): Promise<Response> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof DBOSError) || /^(DATABASE|COMMIT|INVALID_ARGUMENT)/.test(error.code)) throw error;
    return jsonResponse({ error: error.message }, 500);
  }
}

const INPUT_FIELDS: Readonly<Record<string, keyof GetWorkflowsInput>> = {
  workflow_uuids: 'workflowIDs',
  workflow_name: 'workflowName',
  authenticated_user: 'authenticatedUser',
  start_time: 'startTime',
  end_time: 'endTime',
  status: 'status',
  application_version: 'applicationVersion',
  fork_from: 'forkedFrom',
  parent_workflow_id: 'parentWorkflowID',
  queue_name: 'queueName',
  limit: 'limit',
  offset: 'offset',
  sort_desc: 'sortDesc',
  workflow_id_prefix: 'workflow_id_prefix',
};

/** The verb validates the values. */
function toInput(body: unknown): GetWorkflowsInput {
  const fields = fieldsOf(body);
  const given = Object.entries(INPUT_FIELDS).filter(([name]) => fields[name] !== undefined && fields[name] !== null);
  return {
    ...Object.fromEntries(given.map(([name, field]) => [field, fields[name]])),
    loadInput: fields['load_input'] === true,
    loadOutput: fields['load_output'] === true,
  };
}
