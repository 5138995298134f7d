// Workflows, their steps, messages, events and streams as the API returns them.
import type { NotificationInfo } from '../../../features/listing/inspection.js';
import type { StepInfo, WorkflowStatus } from '../../../features/listing/status.js';
import type { WaitingFor } from '../../../features/parking/waiting-for.js';
import { StatusString } from '../../../kernel/workflow/status.js';
import type { ChangedWorkflow } from '../../../features/listing/changes.sql.js';
import {
  boolean,
  integer,
  jsonObject,
  mapOf,
  nullable,
  oneOf,
  optional,
  record,
  type Checked,
} from '../../../kernel/check/validation.js';
import { text, listOf } from '../shape.js';
import { showValue, shownValue } from './value.js';

export const status = oneOf(Object.values(StatusString));

const WAITS = ['sleep', 'retry', 'message', 'event', 'workflow'] as const satisfies readonly WaitingFor['kind'][];

const waitingFor = record({
  kind: oneOf(WAITS),
  until: optional(integer()).about('When it continues at the latest. Without it, there is no limit.'),
  topic: optional(nullable(text)).about('Of a message. Null: without a topic.'),
  workflowID: optional(text).about('The workflow that ends or sets the event.'),
  key: optional(text).about('Of an event.'),
  stepID: optional(integer()).about('The step that is retried.'),
  failedAttempts: optional(integer()),
}).named('WaitingFor');

export const workflowView = record({
  workflowID: text,
  status,
  workflowName: text,
  workflowClassName: text,
  workflowConfigName: text,
  queueName: optional(text),
  queuePartitionKey: optional(text),
  deduplicationID: optional(text),
  priority: integer(),
  authenticatedUser: optional(text),
  assumedRole: optional(text),
  authenticatedRoles: optional(listOf(text)),
  input: optional(shownValue),
  output: optional(shownValue),
  error: optional(shownValue),
  executorId: optional(text),
  applicationVersion: optional(text),
  applicationID: optional(text),
  applicationName: optional(text),
  createdAt: integer(),
  updatedAt: optional(integer()),
  dequeuedAt: optional(integer()),
  completedAt: optional(integer()),
  delayUntilEpochMS: optional(integer()),
  timeoutMS: optional(integer()),
  deadlineEpochMS: optional(integer()),
  forkedFrom: optional(text),
  wasForkedFrom: boolean,
  parentWorkflowID: optional(text),
  attributes: optional(jsonObject),
  scheduleName: optional(text),
  recoveryAttempts: optional(integer()),
  waitingFor: optional(listOf(waitingFor)).about('What a pending workflow waits for that is parked, out of memory.'),
  cancelReason: optional(text),
  cancelledBy: optional(text),
}).named('Workflow');

export type WorkflowView = Checked<typeof workflowView>;

export interface ViewOptions {
  /** False if the outcome was not loaded. */
  readonly hasOutcome?: boolean;
}

export function viewWorkflow(workflow: WorkflowStatus, { hasOutcome = true }: ViewOptions = {}): WorkflowView {
  const { input, output, error, ...rest } = workflow;
  return {
    ...rest,
    input: input === undefined ? undefined : showValue(input),
    // A successful workflow has an output even if it returned undefined.
    output: hasOutcome && workflow.status === 'SUCCESS' ? showValue(output) : undefined,
    error: error === undefined ? undefined : showValue(error),
  };
}

export const changedWorkflow = record({
  workflowID: text,
  status,
  workflowName: text,
  workflowClassName: text,
  queueName: nullable(text),
  queuePartitionKey: nullable(text),
  executorId: nullable(text),
  applicationName: nullable(text),
  parentWorkflowID: nullable(text),
  createdAt: integer(),
  updatedAt: integer(),
  dequeuedAt: nullable(integer()),
  completedAt: nullable(integer()),
}).named('ChangedWorkflow');

export function viewChanged(workflow: ChangedWorkflow): Checked<typeof changedWorkflow> {
  const { name, className, executorID, startedAt, owner: _, ...rest } = workflow;
  return {
    ...rest,
    workflowName: name,
    workflowClassName: className ?? '',
    executorId: executorID,
    dequeuedAt: startedAt,
  };
}

export const stepView = record({
  functionID: integer(),
  name: text,
  output: optional(shownValue),
  error: optional(shownValue),
  childWorkflowID: nullable(text),
  startedAtEpochMs: optional(integer()),
  completedAtEpochMs: optional(integer()),
}).named('Step');

export function viewStep({ output, error, ...rest }: StepInfo): Checked<typeof stepView> {
  return {
    ...rest,
    output: error === null ? showValue(output) : undefined,
    error: error === null ? undefined : showValue(error),
  };
}

export const messageView = record({
  topic: nullable(text),
  message: shownValue,
  createdAtEpochMs: integer(),
  consumed: boolean,
}).named('Message');

export function viewMessage({ message, ...rest }: NotificationInfo): Checked<typeof messageView> {
  return { ...rest, message: showValue(message) };
}

export const eventsView = mapOf(shownValue).about('Events by key.');
export const streamView = record({
  key: text,
  length: integer().about('How many values it has.'),
  isClosed: boolean,
}).named('Stream');

export const streamPageView = record({
  values: listOf(record({ offset: integer(), value: shownValue })),
  nextAfter: nullable(integer().about('Pass it as after for the next page. Null: there are no more values yet.')),
}).named('StreamPage');
