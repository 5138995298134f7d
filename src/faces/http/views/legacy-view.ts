// Workflows, steps and queues as the legacy endpoints return them.
import type { StepInfo, WorkflowStatus } from '../../../features/listing/status.js';
import { type QueueRecord, toQueueParameters } from '../../../features/queue/queue.js';
import { inspectValue, showValue } from './value.js';

/** Numbers are strings, values are inspected, and empty fields are omitted. */
export function legacyWorkflow(workflow: WorkflowStatus): Record<string, unknown> {
  return {
    WorkflowUUID: workflow.workflowID,
    Status: workflow.status,
    WorkflowName: workflow.workflowName,
    WorkflowClassName: workflow.workflowClassName || undefined,
    WorkflowConfigName: workflow.workflowConfigName || undefined,
    AuthenticatedUser: workflow.authenticatedUser || undefined,
    AssumedRole: workflow.assumedRole || undefined,
    AuthenticatedRoles: workflow.authenticatedRoles?.length ? json(workflow.authenticatedRoles) : undefined,
    Input: printed(workflow.input),
    Output: printed(workflow.output),
    Error: errorText(workflow.error),
    CreatedAt: decimal(workflow.createdAt),
    UpdatedAt: decimal(workflow.updatedAt),
    QueueName: workflow.queueName || undefined,
    ApplicationVersion: workflow.applicationVersion,
    ExecutorID: workflow.executorId,
    WorkflowTimeoutMS: decimal(workflow.timeoutMS),
    WorkflowDeadlineEpochMS: decimal(workflow.deadlineEpochMS),
    DeduplicationID: workflow.deduplicationID || undefined,
    Priority: decimal(workflow.priority),
    QueuePartitionKey: workflow.queuePartitionKey || undefined,
    DequeuedAt: decimal(workflow.dequeuedAt),
    ForkedFrom: workflow.forkedFrom || undefined,
    WasForkedFrom: workflow.wasForkedFrom,
    ParentWorkflowID: workflow.parentWorkflowID || undefined,
    DelayUntilEpochMS: decimal(workflow.delayUntilEpochMS),
    CompletedAt: decimal(workflow.completedAt),
    Attributes: json(workflow.attributes),
    ScheduleName: workflow.scheduleName || undefined,
    ApplicationName: workflow.applicationName || undefined,
  };
}

export function legacyStep(step: StepInfo): Record<string, unknown> {
  return {
    function_id: step.functionID,
    function_name: step.name,
    output: step.output === null ? undefined : printed(step.output),
    error: errorText(step.error ?? undefined),
    child_workflow_id: step.childWorkflowID ?? undefined,
    started_at_epoch_ms: decimal(step.startedAtEpochMs),
    completed_at_epoch_ms: decimal(step.completedAtEpochMs),
  };
}

export function legacyQueue(record: QueueRecord): Record<string, unknown> {
  const { globalConcurrency, workerConcurrency, rateLimit, ...rest } = toQueueParameters(record);
  const { partitionConcurrency, partitionWorkerConcurrency, partitionRateLimit } = rest;
  return {
    name: record.name,
    concurrency: globalConcurrency,
    workerConcurrency,
    rateLimit,
    partitionConcurrency,
    partitionWorkerConcurrency,
    partitionRateLimit,
  };
}

function printed(value: unknown): string | undefined {
  return value === undefined ? undefined : inspectValue(value);
}

function json(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

function errorText(error: unknown): string | undefined {
  return error === undefined ? undefined : JSON.stringify(showValue(error).json);
}

function decimal(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}
