// `DBOS.continueAsNew`: the workflow starts again with new arguments and without a history, so that one that never ends does
// not replay ever more.
import { newID } from '../../kernel/base/ids.js';
import { refuseNUL } from '../../operator/storable.js';
import { continuedCreator } from '../../kernel/workflow/creator.js';
import { DBOSWorkflowConflictError } from '../../kernel/errors/errors.js';
import { topics } from '../../database/notify/topics.js';
import { continueIfOwned } from '../rows/continuation.js';
import { workflowCode } from '../operation.js';
import type { Run } from '../run.js';
import { findLossReason } from '../loss.js';

/** Ends this run. Its promise rejects, and every further operation throws. */
export async function continueAsNew(args: unknown[]): Promise<never> {
  const run = workflowCode('DBOS.continueAsNew');
  const { runtime, workflowID, owner, queueName, partitionKey } = run;
  const { text, serialization } = await encode(run, args);
  if (run.waits.isAway) await run.waits.comeBack();
  await run.endReplay();
  await run.barrier();
  const creator = continuedCreator(run.creator, newID());
  const continuation = { workflowID, owner, creator, inputs: text, serialization };
  const isContinued = await runtime.retrying(() => continueIfOwned(runtime.database, continuation), run.signal);
  const reason = isContinued ? new DBOSWorkflowConflictError(workflowID) : await findLossReason(run);
  run.stop(reason);
  if (isContinued) runtime.bus.publish(topics.work, { queueName, partitionKey });
  throw reason;
}

async function encode({ runtime, isPortable, registration }: Run, args: unknown[]) {
  const format = isPortable ? 'portable' : undefined;
  return refuseNUL(await runtime.codec.roundTripInputs(args, { format, path: [registration.name, '<arguments>'] }));
}
