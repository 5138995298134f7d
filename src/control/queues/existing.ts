// What stands in the way of a new workflow: one with the same ID, or the holder of its deduplication ID.
import type { DLogger } from '../../base/log.js';
import {
  DBOSConflictingWorkflowError,
  DBOSInvalidWorkflowTransitionError,
  DBOSQueueDuplicatedError,
  DBOSWorkflowIDInUseError,
} from '../../model/errors/errors.js';
import type { NewWorkflow, WorkflowSummary } from '../../store/runs/workflows.js';
import type { StartVerdict } from '../../store/writer/writer-verdicts.js';
import type { DuplicationPolicy, WorkflowIDReusePolicy } from './enqueue.js';

export interface Refusable {
  readonly logger: DLogger;
  readonly workflow: NewWorkflow;
  readonly duplicationPolicy?: DuplicationPolicy;
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
}

/** The ID of the workflow that stands for the one that was not created, or the error that says why there is none. */
export function existingOf(refusable: Refusable, verdict: Exclude<StartVerdict, { kind: 'created' }>): string {
  const { workflow, duplicationPolicy } = refusable;
  switch (verdict.kind) {
    case 'exists':
      refuseConflict(refusable, verdict.workflow);
      return workflow.workflowID;
    case 'duplicated':
      if (duplicationPolicy === 'return-existing') return verdict.holderID;
      throw new DBOSQueueDuplicatedError(workflow.workflowID, workflow.queueName ?? '', workflow.deduplicationID ?? '');
    case 'orphaned':
      throw new DBOSInvalidWorkflowTransitionError(`Workflow "${workflow.parentWorkflowID}" was stopped.`);
  }
}

function refuseConflict({ logger, workflow, workflowIDReusePolicy }: Refusable, existing: WorkflowSummary): void {
  const differs =
    existing.name !== workflow.name
      ? `it runs "${existing.name}", not "${workflow.name}"`
      : (existing.className ?? '') !== (workflow.className ?? '')
        ? `it belongs to class "${existing.className ?? ''}", not "${workflow.className ?? ''}"`
        : (existing.configName ?? '') !== (workflow.configName ?? '')
          ? `it belongs to instance "${existing.configName ?? ''}", not "${workflow.configName ?? ''}"`
          : undefined;
  if (differs !== undefined) throw new DBOSConflictingWorkflowError(workflow.workflowID, differs);
  if (workflowIDReusePolicy === 'reject') {
    throw new DBOSWorkflowIDInUseError(workflow.workflowID, existing.status, existing.name);
  }
  if (workflow.queueName !== null && existing.queueName !== null && existing.queueName !== workflow.queueName) {
    logger.warn(
      `Workflow "${workflow.workflowID}" is in queue "${existing.queueName}", not in "${workflow.queueName}".`,
    );
  }
}
