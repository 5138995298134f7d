// Routes that create or change a single workflow.
import { enqueue, send } from '../../faces/client/enqueueing.js';
import { updateWorkflowAttributes } from './attributes.js';
import { forkWorkflows } from './forks.js';
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from './lifecycle.js';
import { rewindWorkflow } from './rewind.js';
import { setWorkflowDelay, type SetWorkflowDelayOptions, setWorkflowPriority } from '../queue/reschedule.js';
import type { StoreOperator } from '../../faces/http/source.js';
import { invalid } from '../../faces/http/http/refusal.js';
import { type Route, route } from '../../faces/http/http/route.js';
import {
  anything,
  boolean,
  integer,
  INT_MAX,
  jsonObject,
  mapOf,
  number,
  oneOf,
  optional,
  record,
} from '../../kernel/check/validation.js';
import { text, nonEmpty, listOf } from '../../faces/http/shape.js';
import { idIn, requireWorkflow } from '../listing/workflows.http.js';

const tag = 'Workflows';
const ONE = '/workflows/{workflowID}';

export const workflowID = record({ workflowID: text }).named('WorkflowID');
/** The changed or created workflows. With descendants their number has no limit. */
export const someWorkflows = record({ workflowIDs: listOf(text, { max: Number.MAX_SAFE_INTEGER }) }).named(
  'WorkflowIDs',
);

/** The result of a change to one thing. */
export const changeResult = record({ changed: boolean.about('False if there was nothing to change.') }).named('Change');

/** Kept in the workflow's history. */
export const changeReason = {
  reason: optional(text.about('Why. Kept in its history.')),
  actor: optional(text.about('Who asks for it. Kept in its history.')),
};

/** A deleted workflow has no history any more. */
export const deletionReason = {
  reason: optional(text.about('Why. Written to the log.')),
  actor: optional(text.about('Who asks for it. Written to the log.')),
};

/** The queue to enqueue a workflow in. */
export const queueTarget = {
  queueName: optional(nonEmpty.about('Defaults to the internal queue.')),
  queuePartitionKey: optional(nonEmpty),
};

export const forkFields = {
  ...queueTarget,
  applicationVersion: optional(nonEmpty.about("Defaults to the original's version.")),
  timeoutMS: optional(number({ min: 1, max: INT_MAX })),
};

export const replacementChildren = optional(
  mapOf(nonEmpty).about('Maps IDs of children to those that replace them in the copied steps.'),
);

const enqueueBody = record({
  queueName: nonEmpty,
  workflowName: nonEmpty,
  workflowClassName: optional(text),
  workflowConfigName: optional(text),
  workflowID: optional(nonEmpty.about('Defaults to a new one.')),
  workflowIDReusePolicy: optional(oneOf(['return-existing', 'reject'])),
  args: optional(listOf(anything).about('The arguments of the workflow.')),
  namedArgs: optional(jsonObject.about('Only with serializationType portable.')),
  serializationType: optional(oneOf(['native', 'portable'])),
  appVersion: optional(nonEmpty.about('Defaults to the latest.')),
  workflowTimeoutMS: optional(number({ max: INT_MAX })),
  deduplicationID: optional(nonEmpty),
  duplicationPolicy: optional(oneOf(['reject', 'return-existing'])),
  priority: optional(integer({ max: INT_MAX })),
  queuePartitionKey: optional(nonEmpty),
  delaySeconds: optional(number({ max: INT_MAX })),
  attributes: optional(jsonObject),
  authenticatedUser: optional(text),
  authenticatedRoles: optional(listOf(text)),
  applicationName: optional(nonEmpty),
});

/** The verb refuses a delay of 0, as DBOS does. */
function dueNowIfZero({ databaseClock }: StoreOperator, given: SetWorkflowDelayOptions): SetWorkflowDelayOptions {
  const { delaySeconds, delayUntilEpochMS, ...rest } = given;
  if (delaySeconds !== 0 || delayUntilEpochMS !== undefined) return given;
  return { ...rest, delayUntilEpochMS: Math.floor(databaseClock.now()) };
}

export const WORKFLOW_ACTION_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/workflows',
    tag,
    summary: 'Enqueues a workflow by function name.',
    body: enqueueBody,
    status: 201,
    result: workflowID,
    async handle({ operator, body: { args = [], namedArgs, ...options } }) {
      if (namedArgs !== undefined && options.serializationType !== 'portable') {
        throw invalid('namedArgs needs serializationType "portable".');
      }
      return { workflowID: await enqueue(operator, options, { args, namedArgs }) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/cancel`,
    tag,
    summary: 'Cancels it unless it has ended, and returns the IDs of the cancelled workflows.',
    body: record({ cancelChildren: optional(boolean.about('Also cancels its descendants.')), ...changeReason }),
    result: someWorkflows,
    async handle({ operator, path, body }) {
      await requireWorkflow(operator, idIn(path));
      return { workflowIDs: await cancelWorkflows(operator, [idIn(path)], body) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/resume`,
    tag,
    summary:
      'Resumes it from its last checkpoint unless it has a result or an error. Returns its ID if it was resumed.',
    body: record({ ...queueTarget, ...changeReason }),
    result: someWorkflows,
    async handle({ operator, path, body }) {
      return { workflowIDs: await resumeWorkflows(operator, [idIn(path)], body) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/fork`,
    tag,
    summary: 'Starts a copy of it from one of its steps.',
    body: record({
      startStep: integer({ max: INT_MAX }).about('The first step that the fork runs again.'),
      newWorkflowID: optional(nonEmpty),
      ...forkFields,
      ...changeReason,
      replacementChildren,
    }),
    status: 201,
    result: workflowID,
    async handle({ operator, path, body: { startStep, newWorkflowID, ...settings } }) {
      const request = { workflowID: idIn(path), startStep, newWorkflowID };
      const [forkID] = await forkWorkflows(operator, [request], settings);
      return { workflowID: forkID };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/rewind`,
    tag,
    summary: 'Runs it again under its own ID, from one of its steps. It must have ended.',
    body: record({
      startStep: optional(integer({ max: INT_MAX })),
      applicationVersion: optional(nonEmpty),
      ...queueTarget,
      ...changeReason,
    }),
    handle: ({ operator, path, body }) => rewindWorkflow(operator, idIn(path), body),
  }),
  route({
    method: 'POST',
    path: `${ONE}/messages`,
    tag,
    summary: 'Sends it a message.',
    body: record({
      message: anything,
      topic: optional(nonEmpty),
      idempotencyKey: optional(nonEmpty.about('Calls with the same key send the message once.')),
      serializationType: optional(oneOf(['native', 'portable'])),
    }),
    handle: ({ operator, path, body }) => send(operator, { destinationID: idIn(path), ...body, message: body.message }),
  }),
  route({
    method: 'PUT',
    path: `${ONE}/delay`,
    tag,
    summary: 'Delays it if it is enqueued or delayed.',
    body: record({
      delaySeconds: optional(number({ max: INT_MAX }).about('From now; 0 makes it due now.')),
      delayUntilEpochMS: optional(integer({ min: 1 })),
      ...changeReason,
    }),
    result: changeResult,
    async handle({ operator, path, body }) {
      await requireWorkflow(operator, idIn(path));
      return { changed: await setWorkflowDelay(operator, idIn(path), dueNowIfZero(operator, body)) };
    },
  }),
  route({
    method: 'PUT',
    path: `${ONE}/priority`,
    tag,
    summary: 'Sets its priority unless it has ended; lower numbers run first.',
    body: record({ priority: integer({ max: INT_MAX }), ...changeReason }),
    result: changeResult,
    async handle({ operator, path, body }) {
      await requireWorkflow(operator, idIn(path));
      return { changed: await setWorkflowPriority(operator, idIn(path), body) };
    },
  }),
  route({
    method: 'PATCH',
    path: `${ONE}/attributes`,
    tag,
    summary: 'Changes the given attributes; null removes one. Others stay.',
    body: record({ attributes: jsonObject }),
    handle: ({ operator, path, body }) => updateWorkflowAttributes(operator, idIn(path), body.attributes),
  }),
  route({
    method: 'DELETE',
    path: ONE,
    tag,
    summary: 'Deletes it in any status with all its data, and returns the IDs of the deleted workflows.',
    query: { deleteChildren: optional(boolean.about('Also deletes its descendants.')), ...deletionReason },
    result: someWorkflows,
    async handle({ operator, path, query }) {
      await requireWorkflow(operator, idIn(path));
      return { workflowIDs: await deleteWorkflows(operator, [idIn(path)], query) };
    },
  }),
];
