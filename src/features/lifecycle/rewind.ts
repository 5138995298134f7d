// Rewinding: an ended workflow runs again under its own ID, from one of its steps.
import { newID } from '../../kernel/base/ids.js';
import { DatabaseStatementError } from '../../kernel/errors/database-errors.js';
import { DBOSInvalidWorkflowTransitionError, DBOSNonExistentWorkflowError } from '../../kernel/errors/errors.js';
import { afterRewind, rewindCreator } from '../../kernel/workflow/creator.js';
import { isActive } from '../../kernel/workflow/status.js';
import { asSeen } from '../parking/parked.sql.js';
import { rewindIfEnded } from './rewind.sql.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import { checkStartStep } from './forks.js';
import { topics } from '../../database/notify/topics.js';
import { announceChanged } from '../../operator/announcements.js';
import type { ChangeReason } from '../history/cancellations.js';
import type { Operator } from '../../operator/operator.js';
import {
  type QueueTarget,
  type QueueTargetOptions,
  refuseMissingKey,
  resolveQueueTarget,
} from '../queue/queue-target.js';

/** Without a partition key the workflow keeps its own. */
export interface RewindOptions extends QueueTargetOptions, ChangeReason {
  /** The first step to run again. Default: 0. */
  readonly startStep?: number;
  /** The version that runs it. Default: its own. */
  readonly applicationVersion?: string;
}

/** Internal options. */
export interface RewindCall extends RewindOptions {
  /** Identifies the call: a retry with the same token does not rewind again. */
  readonly token?: string;
}

/** Puts an ended workflow back into a queue, in the state it had before the given step. */
export async function rewindWorkflow(operator: Operator, workflowID: string, call: RewindCall = {}): Promise<void> {
  const { startStep = 0, applicationVersion = null, token = newID() } = call;
  checkStartStep(startStep);
  const creator = rewindCreator(startStep, token);
  const { database, bus, dataSources } = operator;
  const target = await resolveQueueTarget(operator, call);
  const { queueName, partitionKey } = target;
  const note = { reason: call.reason, actor: call.actor };
  const rewind = { workflowID, startStep, creator, queueName, partitionKey, applicationVersion, note };
  const assertEnded = async (): Promise<void> => {
    if (!(await isRewound(operator, rewind, target))) return;
    // An earlier attempt with an unknown outcome has committed after all. A serialization failure makes the caller retry.
    throw new DatabaseStatementError(`Workflow "${workflowID}" has just been rewound.`, { sqlState: '40001' });
  };
  const rewound = await operator.retrying(async () => {
    // If its status changed in between, check again: isRewound throws the reason.
    while (!(await isRewound(operator, rewind, target))) {
      await dataSources?.deleteFrom(workflowID, startStep, assertEnded);
      const done = await rewindIfEnded(database, rewind);
      if (done) return done;
    }
    return { queueName };
  });
  await announceChanged(bus, [workflowID]);
  bus.publish(topics.work, rewound);
}

/** Whether an earlier attempt of this call has rewound the workflow. Throws if it cannot be rewound. */
async function isRewound(
  { database }: Operator,
  { workflowID, creator }: { readonly workflowID: string; readonly creator: string },
  target: QueueTarget,
): Promise<boolean> {
  const [workflow] = await findWorkflows(database, [workflowID]);
  if (!workflow) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
  if (workflow.creator === afterRewind(creator, workflow.creator)) return true;
  if (isActive(workflow.status)) {
    throw new DBOSInvalidWorkflowTransitionError(
      `Workflow "${workflowID}" is ${asSeen(workflow).status}, and only a workflow that has ended can be rewound. Cancel it first, or fork it.`,
    );
  }
  refuseMissingKey({ ...target, partitionKey: target.partitionKey ?? workflow.queuePartitionKey });
  return false;
}
