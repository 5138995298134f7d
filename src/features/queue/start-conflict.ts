// Resolves conflicts of a new workflow with an existing one: the same ID, or the same deduplication ID.
import type { DLogger } from '../../kernel/base/log.js';
import {
  DBOSConflictingWorkflowError,
  DBOSInvalidWorkflowTransitionError,
  DBOSQueueDuplicatedError,
  DBOSWorkflowIDInUseError,
} from '../../kernel/errors/errors.js';
import { asSeen } from '../parking/parked.sql.js';
import type { NewWorkflow, WorkflowSummary } from '../../run/rows/workflows.js';
import type { StartVerdict } from '../../run/writer/writer-verdicts.js';
import type { DuplicationPolicy, WorkflowIDReusePolicy } from './enqueue.js';

export interface ConflictingStart {
  readonly logger: DLogger;
  readonly workflow: NewWorkflow;
  readonly duplicationPolicy?: DuplicationPolicy;
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
}

/** Returns the ID of the existing workflow to use instead, or throws. */
export function resolveStartConflict(
  start: ConflictingStart,
  verdict: Exclude<StartVerdict, { kind: 'created' }>,
): string {
  const { workflow, duplicationPolicy } = start;
  switch (verdict.kind) {
    case 'exists':
      refuseConflict(start, verdict.workflow);
      return workflow.workflowID;
    case 'duplicated':
      if (duplicationPolicy === 'return-existing') return verdict.holderID;
      throw new DBOSQueueDuplicatedError(workflow.workflowID, workflow.queueName ?? '', workflow.deduplicationID ?? '');
    case 'orphaned':
      throw new DBOSInvalidWorkflowTransitionError(`Workflow "${workflow.parentWorkflowID}" was stopped.`);
  }
}

function refuseConflict({ logger, workflow, workflowIDReusePolicy }: ConflictingStart, stored: WorkflowSummary): void {
  const existing = asSeen(stored);
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
      `Workflow "${workflow.workflowID}" already exists in queue "${existing.queueName}"; it was not enqueued in "${workflow.queueName}".`,
    );
  }
}
