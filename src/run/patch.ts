// Patching: changing workflow code while workflows are in flight. A marker in the history tells which path a workflow
// took at a patch.
import { DBOSInvalidWorkflowTransitionError } from '../kernel/errors/errors.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import { joined, perform } from './perform.js';
import type { Run } from './run.js';

function runForPatch(): Run {
  const context = currentContext();
  if (!isWorkflowCode(context)) {
    throw new DBOSInvalidWorkflowTransitionError(
      'DBOS.patch and DBOS.deprecatePatch can only be called in workflow code.',
    );
  }
  if (!context.runtime.config.enablePatching) {
    throw new DBOSInvalidWorkflowTransitionError(
      'Patching is off. Set enablePatching in the configuration to use DBOS.patch.',
    );
  }
  return context.run;
}

/** True if the workflow takes the new path: it did before, or it reaches the patch for the first time. */
export async function patch(patchName: string): Promise<boolean> {
  const run = runForPatch();
  const name = `DBOS.patch-${patchName}`;
  // Peek before taking the number: if the workflow took the old path, it belongs to the next operation.
  const record = run.recordAt(run.upcomingStepID);
  run.check();
  // Without a record under this number, a later one shows that the old path was taken: a marker would come first.
  if (record ? record.name !== name : run.hasPassedUpcoming) return false;
  return perform(
    run,
    { name, isEffect: false, read: () => true },
    joined(async (step) => {
      step.record({});
      return true;
    }),
  );
}

/** Skips the marker of a patch whose old path has been removed. Writes nothing, so it is not an operation. */
export async function deprecatePatch(patchName: string): Promise<boolean> {
  const run = runForPatch();
  const name = `DBOS.patch-${patchName}`;
  if (run.recordAt(run.upcomingStepID)?.name === name) run.replay(run.nextStepID(), name);
  run.check();
  return true;
}
