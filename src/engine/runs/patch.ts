// Patching: changing the code of workflows while some are in flight. A marker in the history says which path a workflow
// took at a changed spot.
import { DBOSInvalidWorkflowTransitionError } from '../../model/errors/errors.js';
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

/** True if the workflow takes the new path: it did so before, or reaches this spot for the first time. */
export async function patch(patchName: string): Promise<boolean> {
  const run = runForPatch();
  const name = `DBOS.patch-${patchName}`;
  // A look before the number is taken: it belongs to the next operation if the workflow took the old path.
  const record = run.recordAt(run.upcomingStepID);
  run.check();
  if (record && record.name !== name) return false;
  return perform(
    run,
    { name, isEffect: false, read: () => true },
    joined(async (step) => {
      step.record({});
      return true;
    }),
  );
}

/** Steps over the marker of a patch whose old path has been removed. Writes nothing, so it is no operation. */
export async function deprecatePatch(patchName: string): Promise<boolean> {
  const run = runForPatch();
  if (run.recordAt(run.upcomingStepID)?.name === `DBOS.patch-${patchName}`) run.nextStepID();
  run.check();
  return true;
}
