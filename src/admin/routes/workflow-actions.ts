// Routes that act on single workflows.
import { enqueue, send } from '../../client/enqueueing.js';
import { updateWorkflowAttributes } from '../../control/management/attributes.js';
import { forkWorkflows } from '../../control/management/forks.js';
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from '../../control/management/lifecycle.js';
import { rewindWorkflow } from '../../control/management/rewind.js';
import { setWorkflowDelay, setWorkflowPriority } from '../../control/queues/reschedule.js';
import { invalid } from '../http/refusal.js';
import { type Route, route } from '../http/route.js';
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
} from '../../model/validation/validation.js';
import { text, nonEmpty, listOf } from '../shape.js';
import { idIn, requireWorkflow } from './workflows.js';

const tag = 'Workflows';
const ONE = '/workflows/{workflowID}';

export const workflowID = record({ workflowID: text }).named('WorkflowID');
/** The workflows that were changed or created. With children there is no limit to their number. */
export const someWorkflows = record({ workflowIDs: listOf(text, { max: Number.MAX_SAFE_INTEGER }) }).named(
  'WorkflowIDs',
);

/** What a change of one thing answers with. */
export const changeResult = record({ changed: boolean.about('False if there was nothing to change.') }).named('Change');

/** The queue to enqueue a workflow in. */
export const queueTarget = {
  queueName: optional(nonEmpty.about('The internal queue unless given.')),
  queuePartitionKey: optional(nonEmpty),
};

export const forkFields = {
  ...queueTarget,
  applicationVersion: optional(nonEmpty.about('That of the original unless given.')),
  timeoutMS: optional(number({ min: 1, max: INT_MAX })),
};

export const replacementChildren = optional(
  mapOf(nonEmpty).about('IDs of children, and of those that take their place in the copied steps.'),
);

const enqueueBody = record({
  queueName: nonEmpty,
  workflowName: nonEmpty,
  workflowClassName: optional(text),
  workflowConfigName: optional(text),
  workflowID: optional(nonEmpty.about('A fresh one unless given.')),
  workflowIDReusePolicy: optional(oneOf(['return-existing', 'reject'])),
  args: optional(listOf(anything).about('The arguments of the workflow.')),
  namedArgs: optional(jsonObject.about('With serializationType portable only.')),
  serializationType: optional(oneOf(['native', 'portable'])),
  appVersion: optional(nonEmpty.about('The latest one unless given.')),
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

export const WORKFLOW_ACTION_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/workflows',
    tag,
    summary: 'Enqueues a workflow by the name of its function.',
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
    summary: 'Cancels it unless it has ended, and answers with the IDs of the workflows that were cancelled.',
    body: record({ cancelChildren: optional(boolean.about('Also cancels its descendants.')) }),
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
      'Lets it continue from its last checkpoint unless it has a result or an error. Answers with its ID, or with none.',
    body: record(queueTarget),
    result: someWorkflows,
    async handle({ operator, path, body }) {
      return { workflowIDs: await resumeWorkflows(operator, [idIn(path)], body) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/fork`,
    tag,
    summary: 'Makes a copy of it that goes on from one of its steps.',
    body: record({
      startStep: integer({ max: INT_MAX }).about('The first step that the fork executes by itself.'),
      newWorkflowID: optional(nonEmpty),
      ...forkFields,
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
    summary: 'Runs it again, itself, from one of its steps. It must have ended.',
    body: record({
      startStep: optional(integer({ max: INT_MAX })),
      applicationVersion: optional(nonEmpty),
      ...queueTarget,
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
      idempotencyKey: optional(nonEmpty.about('With one, the message is sent once, however often this is called.')),
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
      delaySeconds: optional(number({ max: INT_MAX })),
      delayUntilEpochMS: optional(integer()),
    }),
    result: changeResult,
    async handle({ operator, path, body }) {
      await requireWorkflow(operator, idIn(path));
      return { changed: await setWorkflowDelay(operator, idIn(path), body) };
    },
  }),
  route({
    method: 'PUT',
    path: `${ONE}/priority`,
    tag,
    summary: 'Changes its priority unless it has ended; lower numbers come first.',
    body: record({ priority: integer({ max: INT_MAX }) }),
    result: changeResult,
    async handle({ operator, path, body }) {
      await requireWorkflow(operator, idIn(path));
      return { changed: await setWorkflowPriority(operator, idIn(path), body.priority) };
    },
  }),
  route({
    method: 'PATCH',
    path: `${ONE}/attributes`,
    tag,
    summary: 'Changes the attributes that are named; null takes one out. The others stay.',
    body: record({ attributes: jsonObject }),
    handle: ({ operator, path, body }) => updateWorkflowAttributes(operator, idIn(path), body.attributes),
  }),
  route({
    method: 'DELETE',
    path: ONE,
    tag,
    summary:
      'Deletes it in any state with everything that belongs to it, and answers with the IDs of the workflows that were deleted.',
    query: { deleteChildren: optional(boolean.about('Also deletes its descendants.')) },
    result: someWorkflows,
    async handle({ operator, path, query }) {
      await requireWorkflow(operator, idIn(path));
      return { workflowIDs: await deleteWorkflows(operator, [idIn(path)], query) };
    },
  }),
];
