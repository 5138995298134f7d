// The management members of `DBOS` that make new workflows or change one more than once; the verbs stand in the control
// room. In workflow code the IDs and the tokens of a call follow from its number: a call that is repeated after a crash,
// because its record was lost, finds what it has done.
import { invariant } from '../base/assert.js';
import {
  forkFromFailure as forkFailed,
  type ForkFromFailureOptions,
  type ForkOptions,
  type ForkRequest,
  type ForkSettings,
  forkWorkflows as fork,
} from '../control/management/forks.js';
import type { WorkflowHandle } from '../control/runs/outcome.js';
import { type RewindCall, type RewindOptions, rewindWorkflow as rewind } from '../control/management/rewind.js';
import { currentContext, isWorkflowCode } from '../engine/runs/ambient.js';
import type { Engine } from '../engine/engine.js';
import { operation } from '../engine/runs/operation.js';
import { takeAssignedID } from '../engine/runs/start.js';

const FORK = 'DBOS.forkWorkflow';

/** Names the call that comes next in workflow code: the same after a recovery. */
function nextToken(): string | undefined {
  const context = currentContext();
  return isWorkflowCode(context) ? `${context.run.workflowID}-${context.run.upcomingStepID}` : undefined;
}

export async function forkWorkflow<R>(
  engine: Engine,
  request: ForkRequest,
  { newWorkflowID: givenID, ...settings }: ForkOptions,
): Promise<WorkflowHandle<R>> {
  const token = nextToken();
  const newWorkflowID = takeAssignedID(givenID, currentContext()) ?? token;
  const [handle] = await forkAs<R>(engine, FORK, () =>
    fork(engine, [{ ...request, newWorkflowID }], { ...forHere(engine, settings), token }),
  );
  invariant(handle, 'One fork was asked for.');
  return handle;
}

export function forkWorkflows<R>(
  engine: Engine,
  requests: readonly ForkRequest[],
  settings: ForkSettings,
): Promise<WorkflowHandle<R>[]> {
  const token = nextToken();
  return forkAs(engine, FORK, () => fork(engine, requests, { ...forHere(engine, settings), token }));
}

export function forkFromFailure<R>(
  engine: Engine,
  workflowIDs: readonly string[],
  options: ForkFromFailureOptions,
): Promise<WorkflowHandle<R>[]> {
  const token = nextToken();
  const call = { ...forHere(engine, options), token };
  return forkAs(engine, 'DBOS.forkFromFailure', () => forkFailed(engine, workflowIDs, call));
}

/** A fork runs the code that is there now, unless another version is given. */
function forHere<Settings extends ForkSettings>(engine: Engine, settings: Settings): Settings {
  return { ...settings, applicationVersion: settings.applicationVersion ?? engine.applicationVersion };
}

async function forkAs<R>(engine: Engine, name: string, body: () => Promise<string[]>): Promise<WorkflowHandle<R>[]> {
  const forkedIDs = await operation({ name, isEffect: true }, body);
  return forkedIDs.map((workflowID) => engine.handleOf<R>(workflowID));
}

export async function rewindWorkflow<R>(
  engine: Engine,
  workflowID: string,
  options: RewindOptions,
): Promise<WorkflowHandle<R>> {
  const token = nextToken();
  await operation({ name: 'DBOS.rewindWorkflow', isEffect: true }, async () => {
    const deleteCheckpoints: RewindCall['deleteCheckpoints'] = (...given) => engine.transactions.deleteFrom(...given);
    await rewind(engine, workflowID, { ...options, token, deleteCheckpoints });
    return null;
  });
  return engine.handleOf<R>(workflowID);
}
