// The fork members of `DBOS`; the verbs are in control/. In workflow code the IDs of the forks are derived from the
// operation number, so that a call repeated after a crash, its record lost, finds the forks it created.
import { invariant } from '../../kernel/base/assert.js';
import {
  forkFromFailure as forkFailed,
  type ForkFromFailureOptions,
  type ForkOptions,
  type ForkRequest,
  type ForkSettings,
  forkWorkflows as fork,
} from '../../features/lifecycle/forks.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import type { Runtime } from '../../run/runtime.js';
import { takeAssignedID } from '../../run/start.js';
import type { Instance } from './instance.js';

const FORK = 'forkWorkflow';

export async function forkWorkflow<R>(
  instance: Instance,
  request: ForkRequest,
  { newWorkflowID: givenID, ...settings }: ForkOptions,
): Promise<WorkflowHandle<R>> {
  // Consumed in a replay too, or the next workflow would get the ID.
  const assignedID = takeAssignedID(givenID, instance.contextFor(FORK));
  const [handle] = await forkAs<R>(instance, FORK, (runtime, token) =>
    fork(runtime, [{ ...request, newWorkflowID: assignedID ?? token }], { ...forHere(runtime, settings), token }),
  );
  invariant(handle, 'One fork was asked for.');
  return handle;
}

export function forkWorkflows<R>(
  instance: Instance,
  requests: readonly ForkRequest[],
  settings: ForkSettings,
): Promise<WorkflowHandle<R>[]> {
  return forkAs(instance, FORK, (runtime, token) => fork(runtime, requests, { ...forHere(runtime, settings), token }));
}

export function forkFromFailure<R>(
  instance: Instance,
  workflowIDs: readonly string[],
  options: ForkFromFailureOptions,
): Promise<WorkflowHandle<R>[]> {
  return forkAs(instance, 'forkFromFailure', (runtime, token) =>
    forkFailed(runtime, workflowIDs, { ...forHere(runtime, options), token }),
  );
}

/** A fork runs this process's version by default. */
function forHere<Settings extends ForkSettings>(runtime: Runtime, settings: Settings): Settings {
  return { ...settings, applicationVersion: settings.applicationVersion ?? runtime.applicationVersion };
}

async function forkAs<R>(
  instance: Instance,
  name: string,
  body: (runtime: Runtime, token: string | undefined) => Promise<string[]>,
): Promise<WorkflowHandle<R>[]> {
  const forkIDs = await instance.perform({ name, isEffect: true }, body);
  return forkIDs.map((workflowID) => instance.handleOf<R>(workflowID));
}
