// Patching: changing the code of workflows while some are under way. A marker in the history tells which way a workflow
// has taken at a changed place.
import { DBOSInvalidWorkflowTransitionError } from '../../model/errors/errors.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import type { Run } from './run.js';

function runForPatch(): Run {
  const context = currentContext();
  if (!isWorkflowCode(context)) {
    throw new DBOSInvalidWorkflowTransitionError(
      'DBOS.patch and DBOS.deprecatePatch can only be called in workflow code.',
    );
  }
  if (!context.engine.config.enablePatching) {
    throw new DBOSInvalidWorkflowTransitionError(
      'Patching is off. Set enablePatching in the configuration to use DBOS.patch.',
    );
  }
  return context.run;
}

/** True if the workflow takes the new way: it did so before, or comes to this place for the first time. */
export async function patch(patchName: string): Promise<boolean> {
  const run = runForPatch();
  const name = `DBOS.patch-${patchName}`;
  const stepID = run.upcomingStepID;
  const record = run.recordAt(stepID);
  run.check();
  if (record && record.name !== name) return false;
  run.nextStepID();
  if (!record) {
    const now = run.engine.clock.now();
    const times = { startedAt: now, completedAt: now };
    run.record({ stepID, name, output: null, error: null, childWorkflowID: null, serialization: null, ...times });
  }
  return true;
}

/** Steps over the marker of a patch whose old way has been removed. Writes nothing. */
export async function deprecatePatch(patchName: string): Promise<boolean> {
  const run = runForPatch();
  if (run.recordAt(run.upcomingStepID)?.name === `DBOS.patch-${patchName}`) run.nextStepID();
  run.check();
  return true;
}
