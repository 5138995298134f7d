// Letting workflows that have ended run again, themselves, from one of their steps.
import { newID } from '../../base/ids.js';
import { DatabaseStatementError } from '../../model/errors/database-errors.js';
import { DBOSError, DBOSNonExistentWorkflowError } from '../../model/errors/errors.js';
import { isActive } from '../../model/status.js';
import { rewindIfEnded } from '../../store/management/rewind.js';
import { findWorkflows } from '../../store/runs/workflows.js';
import { checkStartStep } from './forks.js';
import { topics } from '../../store/notify/topics.js';
import { announceChanged } from '../notify/announcements.js';
import type { Operator } from '../operator.js';
import { checkPlace, type CheckedPlace, type PlaceOptions, refuseMissingKey } from '../queues/places.js';

/** Without a partition key the workflow keeps its own. */
export interface RewindOptions extends PlaceOptions {
  /** The first step that is executed again: the first of all unless given. */
  readonly startStep?: number;
  /** The version that is to run it; its own unless given. */
  readonly applicationVersion?: string;
}

/** What a caller knows besides. */
export interface RewindCall extends RewindOptions {
  /** Names this very call: repeated with the same one, it does not rewind again. */
  readonly token?: string;
  /**
   * Deletes what data sources keep of the steps from `startStep` on. Called before the workflow is rewound. `assertEnded` is
   * to be awaited between the deletion and its commit: if somebody else has rewound the workflow, what its new run has
   * recorded must stay.
   */
  readonly deleteCheckpoints?: (
    workflowID: string,
    startStep: number,
    assertEnded: () => Promise<void>,
  ) => Promise<void>;
}

/** Puts a workflow that has ended back into a queue, as it was before a step of it. */
export async function rewindWorkflow(operator: Operator, workflowID: string, call: RewindCall = {}): Promise<void> {
  const { startStep = 0, applicationVersion = null, token: creator = newID(), deleteCheckpoints } = call;
  checkStartStep(startStep);
  const { database, bus } = operator;
  const place = await checkPlace(operator, call);
  const { queueName, partitionKey } = place;
  const rewind = { workflowID, startStep, creator, queueName, partitionKey, applicationVersion };
  const assertEnded = async (): Promise<void> => {
    if (!(await isRewound(operator, rewind, place))) return;
    // An attempt in doubt was carried out late. Reported as a serialization failure, which is tried again.
    throw new DatabaseStatementError(`Workflow "${workflowID}" has just been rewound.`, { sqlState: '40001' });
  };
  const rewound = await operator.retrying(async () => {
    // Once more if its state has changed between the two: the look then tells why it cannot be rewound.
    while (!(await isRewound(operator, rewind, place))) {
      await deleteCheckpoints?.(workflowID, startStep, assertEnded);
      const done = await rewindIfEnded(database, rewind);
      if (done) return done;
    }
    return { queueName };
  });
  await announceChanged(bus, [workflowID]);
  bus.publish(topics.work, rewound);
}

/** Whether an earlier attempt of this very call has rewound the workflow. Throws if it is not to be rewound. */
async function isRewound(
  { database }: Operator,
  { workflowID, creator }: { readonly workflowID: string; readonly creator: string },
  place: CheckedPlace,
): Promise<boolean> {
  const [workflow] = await findWorkflows(database, [workflowID]);
  if (!workflow) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
  if (workflow.creator === creator) return true;
  if (isActive(workflow.status)) {
    throw new DBOSError(
      `Workflow "${workflowID}" is ${workflow.status}, and only a workflow that has ended can be rewound. Cancel it first, or fork it.`,
    );
  }
  refuseMissingKey({ ...place, partitionKey: place.partitionKey ?? workflow.queuePartitionKey });
  return false;
}
