// Waits for a workflow to end, and decodes its outcome for the caller.
import { internals } from '../kernel/base/internals.js';
import type { Codec } from '../kernel/codec/codec.js';
import { andThen, type MaybePromise } from '../kernel/codec/maybe-promise.js';
import {
  DBOSAwaitedWorkflowCancelledError,
  DBOSAwaitedWorkflowExceededMaxRecoveryAttempts,
  DBOSInvalidArgumentError,
  DBOSNonExistentWorkflowError,
} from '../kernel/errors/errors.js';
import { array, checkThat, isRecord } from '../kernel/check/validation.js';
import { type EndedWorkflow, findEarliestEnd } from '../run/rows/workflows.js';
import type { Operator } from './operator.js';
import type { HistoryEvent, HistoryOptions } from '../features/history/history.js';
import type { WorkflowStatus } from '../features/listing/status.js';
import type { PollingOptions } from './time-limit.js';
import type { WaitLimits } from './row-watcher.js';
import type { OutcomeLookup } from './row-watchers.js';

/** A started workflow, wherever it runs. */
export interface WorkflowHandle<R> {
  readonly workflowID: string;
  getStatus(): Promise<WorkflowStatus | null>;
  /** Waits for the outcome: returns the result or throws the error. */
  getResult(options?: PollingOptions): Promise<R>;
  getWorkflowInputs<T extends unknown[]>(): Promise<T>;
  /** What happened to it, in order. */
  history(options?: HistoryOptions): AsyncGenerator<HistoryEvent, void, undefined>;
}

/** Decodes the outcome: returns the value or throws the error. */
export function readOutcome(codec: Codec, ended: EndedWorkflow): MaybePromise<unknown> {
  const { workflowID, status, output, error, serialization } = ended;
  if (status === null) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
  if (status === 'SUCCESS') return codec.decodeValue(output, serialization);
  if (status === 'CANCELLED') throw new DBOSAwaitedWorkflowCancelledError(workflowID);
  if (status === 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') {
    throw new DBOSAwaitedWorkflowExceededMaxRecoveryAttempts(workflowID);
  }
  return andThen(codec.decodeError(error, serialization), (thrown) => {
    throw thrown;
  });
}

/** Waits for the outcome; null when the deadline passes. */
export async function outcomeBy(
  { watchers, codec }: Operator,
  workflowID: string,
  limits: WaitLimits,
): Promise<unknown> {
  const ended = await watchers.outcomes.waitUntil({ workflowID }, limits);
  return ended ? readOutcome(codec, ended) : null;
}

/** The ID of the first workflow to end; of several that have ended when the wait begins, the one that ended first. */
export async function firstToEnd(
  operator: Operator,
  handles: readonly WorkflowHandle<unknown>[],
  { signal, pollMs }: Pick<WaitLimits, 'signal' | 'pollMs'>,
): Promise<string> {
  const { database, watchers } = operator;
  const rest = new AbortController();
  const both = signal ? AbortSignal.any([signal, rest.signal]) : rest.signal;
  try {
    const ends = handles.map((handle) =>
      watchers.outcomes.wait(lookupOf(handle), { signal: both, pollMs, isPart: true }),
    );
    const { workflowID } = await Promise.race(ends);
    // Others may have been seen to end at the same moment. That one may have been deleted since.
    const workflowIDs = handles.map((handle) => handle.workflowID);
    const earliest = await operator.retrying(() => findEarliestEnd(database, workflowIDs));
    return earliest ?? workflowID;
  } finally {
    rest.abort();
  }
}

/** Resolves when all workflows have ended, whatever the outcome. */
export async function allEnded(
  { watchers }: Operator,
  handles: readonly WorkflowHandle<unknown>[],
  limits: Pick<WaitLimits, 'signal' | 'pollMs'>,
): Promise<void> {
  const all = { ...limits, isPart: true };
  await Promise.all(handles.map((handle) => watchers.outcomes.wait(lookupOf(handle), all)));
}

/** What a handle knows of its workflow. */
export interface KnownWorkflow {
  readonly hasExisted: boolean;
}

function lookupOf(handle: WorkflowHandle<unknown> & { readonly [internals]?: KnownWorkflow }): OutcomeLookup {
  return { workflowID: handle.workflowID, hasExisted: handle[internals]?.hasExisted };
}

/** Refuses handles that `waitFirst` could not distinguish. */
const handlesCheck = array(
  checkThat<WorkflowHandle<unknown>>(
    'the handle of a workflow',
    (value) => isRecord(value) && typeof value['workflowID'] === 'string',
  ),
);

/** Each must be a handle. */
export function checkAreHandles(handles: readonly WorkflowHandle<unknown>[]): void {
  handlesCheck.read(handles, 'handles');
}

/** There must be at least one, and none twice. */
export function checkHandles(handles: readonly WorkflowHandle<unknown>[]): void {
  checkAreHandles(handles);
  if (handles.length === 0) throw new DBOSInvalidArgumentError('handles must not be empty', 'handles');
  const seen = new Set<string>();
  for (const { workflowID } of handles) {
    if (seen.has(workflowID)) {
      throw new DBOSInvalidArgumentError(`Duplicate workflow ID in waitFirst: ${workflowID}`, 'handles');
    }
    seen.add(workflowID);
  }
}
