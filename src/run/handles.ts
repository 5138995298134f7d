// Workflow handles. A handle of a run in this process awaits it directly; any other waits for the outcome in the
// database. Both stay valid if the workflow is cancelled and resumed.
import type { DurationText } from '../kernel/base/duration.js';
import { internals } from '../kernel/base/internals.js';
import { getHistory, type HistoryEvent, type HistoryOptions } from '../features/history/history.js';
import { historyOptions } from '../operator/verb-checks.js';
import {
  DBOSAwaitedWorkflowCancelledError,
  DBOSInvalidArgumentError,
  DBOSMaxRecoveryAttemptsExceededError,
  DBOSWorkflowCancelledError,
} from '../kernel/errors/errors.js';
import { recognizeCopies } from '../kernel/base/copies.js';
import { filledName } from '../kernel/check/validation.js';
import { abortable, eitherOf } from '../kernel/base/abortable.js';
import type { Codec } from '../kernel/codec/codec.js';
import { explainRecords } from '../features/listing/explained-records.js';
import type { ExplainedRecord } from '../features/history/cancellations.js';
import type { WaitLimits } from '../operator/row-watcher.js';
import { type KnownWorkflow, outcomeBy, readOutcome, type WorkflowHandle } from '../operator/outcome.js';
import { callersOf, currentContext, isWorkflowCode, refuseInOtherWorkflow, whileWaiting } from './ambient.js';
import { attempted } from './shielded.js';
import type { Runtime } from './runtime.js';
import { operation, readStored, recordTime, refuseInTransaction } from './operation.js';
import { own, perform } from './perform.js';
import type { Run } from './run.js';
import type { RunEnding } from './runs.js';
import { maxRecoveryAttempts, type WorkflowRegistration } from './registration/registry.js';
import { type EndedWorkflow, findWorkflows } from './rows/workflows.js';
import { toStatus, type WorkflowStatus } from '../features/listing/status.js';
import { deadlineOf, pollMsOf, pollMsOfWait, type PollingOptions, type TimeLimit } from '../operator/time-limit.js';

export type GetResultOptions = TimeLimit;

const GET_RESULT = { name: 'DBOS.getResult', isEffect: false } as const;

export interface HandleOptions extends Partial<KnownWorkflow> {
  /** How the workflow's run in this process ends. Not the run: the handle may outlive its stay in memory. */
  readonly local?: RunEnding | undefined;
  /** The function of the workflow, if this handle started it. */
  readonly own?: WorkflowRegistration;
}

export class Handle<R> implements WorkflowHandle<R> {
  static {
    recognizeCopies(this, 'Handle');
  }

  readonly [internals]: KnownWorkflow;
  readonly #runtime: Runtime;
  readonly #local: RunEnding | undefined;
  readonly #own: WorkflowRegistration | undefined;

  constructor(
    runtime: Runtime,
    readonly workflowID: string,
    { local, own, hasExisted = local !== undefined }: HandleOptions = {},
  ) {
    this.#runtime = runtime;
    this.#local = local;
    this.#own = own;
    this[internals] = { hasExisted };
  }

  /** After a shutdown, that of the next launch. */
  get #current(): Runtime {
    return (this.#runtime.registry.engine?.runtime as Runtime | undefined) ?? this.#runtime;
  }

  /** Throws for the handle of another instance: its workflow is in another database. */
  static refuseOthers(runtime: Runtime, handles: readonly object[]): void {
    if (handles.every((handle) => !(#runtime in handle) || handle.#runtime.registry === runtime.registry)) return;
    throw new DBOSInvalidArgumentError('handles must be of workflows of this instance', 'handles');
  }

  getStatus(): Promise<WorkflowStatus | null> {
    return attempted(() => {
      refuseInOtherWorkflow(this.#runtime.registry, 'getStatus');
      return getWorkflowStatus(this.#current, this.workflowID);
    });
  }

  getResult(options?: PollingOptions): Promise<R> {
    return attempted(() => this.#result(options));
  }

  #result(options: PollingOptions = {}): Promise<R> {
    const pollMs = pollMsOfWait(options);
    refuseInOtherWorkflow(this.#runtime.registry, 'getResult');
    const context = currentContext();
    refuseInTransaction(context, GET_RESULT.name);
    if (!isWorkflowCode(context)) return this.#outcome({ pollMs }) as Promise<R>;
    return this.resultAs(context.run, context.run.nextStepID(), pollMs);
  }

  /** Awaits the result as an operation of `run`, under a number reserved earlier. */
  resultAs(run: Run, stepID: number, pollMs?: number): Promise<R> {
    const limits = { signal: run.signal, pollMs };
    return resultIn(run, { stepID, childWorkflowID: this.workflowID }, () => this.#outcome(limits)) as Promise<R>;
  }

  history(options: HistoryOptions = {}): AsyncGenerator<HistoryEvent, void, undefined> {
    historyOptions.read(options, 'options');
    return getHistory(callersOf(this.#current), this.workflowID, options);
  }

  async getWorkflowInputs<T extends unknown[]>(): Promise<T> {
    const status = await getWorkflowStatus(this.#current, this.workflowID);
    return (status?.input ?? []) as T;
  }

  async #outcome(limits: Pick<WaitLimits, 'signal' | 'pollMs'>): Promise<unknown> {
    const isInWorkflow = currentContext()?.run !== undefined;
    if (this.#local) {
      const local = this.#local;
      const ended = await whileWaiting((suspended) => abortable(local.wait(), eitherOf(limits.signal, suspended)), {
        awaited: { kind: 'outcome', workflowID: this.workflowID },
        endsAt: undefined,
        isOperation: true,
      });
      if (ended.kind === 'success') return ended.value;
      if (ended.kind === 'error') throw ended.error;
    }
    const lookup = { workflowID: this.workflowID, hasExisted: this[internals].hasExisted };
    const { codec, divergences, watchers } = this.#current;
    // Not in workflows and their steps: that another workflow has diverged is nothing to compensate for.
    const finished = isInWorkflow
      ? await watchers.outcomes.wait(lookup, limits)
      : await divergences.orDivergence(this.workflowID, (signal) =>
          watchers.outcomes.wait(lookup, { ...limits, signal }),
        );
    if (this.#own) throwOwnEnd(this.#own, finished);
    return readOutcome(codec, finished);
  }
}

/** The caller that started a run learns that it was cancelled or dead-lettered, not that one it awaits was. */
function throwOwnEnd(registration: WorkflowRegistration, { workflowID, status }: EndedWorkflow): void {
  if (status === 'CANCELLED') throw new DBOSWorkflowCancelledError(workflowID);
  if (status === 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') {
    throw new DBOSMaxRecoveryAttemptsExceededError(workflowID, maxRecoveryAttempts(registration));
  }
}

/** Records the row with its values still encoded, which are plain text in any format. */
export async function getWorkflowStatus(runtime: Runtime, workflowID: string): Promise<WorkflowStatus | null> {
  const named = { name: 'getStatus', isEffect: false, format: 'portable' } as const;
  const find = async (): Promise<ExplainedRecord | null> => {
    const operator = callersOf(runtime);
    const found = await operator.retrying(() => findWorkflows(operator.database, [workflowID]));
    return (await explainRecords(operator, found))[0] ?? null;
  };
  const record = await operation(named, () => readStored(find));
  return record ? toStatus(runtime.codec, record) : null;
}

/** `DBOS.getResult`. Null on timeout. */
export async function getResult(
  runtime: Runtime,
  workflowID: string,
  options: number | DurationText | GetResultOptions = {},
): Promise<unknown> {
  filledName.read(workflowID, 'workflowID');
  const givenDeadline = deadlineOf(runtime.databaseClock, options);
  const pollMs = pollMsOf(options);
  const context = currentContext();
  refuseInTransaction(context, GET_RESULT.name);
  const run = isWorkflowCode(context) ? context.run : undefined;
  if (!context?.run) {
    return runtime.divergences.orDivergence(workflowID, (signal) =>
      outcomeBy(runtime, workflowID, { deadlineAt: givenDeadline, pollMs, signal }),
    );
  }
  if (!run) return outcomeBy(runtime, workflowID, { deadlineAt: givenDeadline, pollMs });
  const timerID = givenDeadline === undefined ? undefined : run.nextStepID();
  const stepID = run.nextStepID();
  const deadline =
    givenDeadline === undefined || timerID === undefined
      ? undefined
      : await recordTime(run, timerID, givenDeadline, runtime.clock.now());
  return resultIn(run, { stepID, childWorkflowID: workflowID }, () =>
    outcomeBy(runtime, workflowID, { deadlineAt: deadline, signal: run.signal, pollMs }),
  );
}

function resultIn(
  run: Run,
  child: { readonly stepID: number; readonly childWorkflowID: string },
  body: () => Promise<unknown>,
): Promise<unknown> {
  return perform(
    run,
    { ...GET_RESULT, ...child, identity: [child.childWorkflowID] },
    own(() => body().catch((error: unknown) => rethrowUnlessOverdue(run, error))),
  );
}

/** A child that has our deadline may be cancelled a moment earlier. This run is then about to be, so its code must not go on. */
async function rethrowUnlessOverdue(run: Run, error: unknown): Promise<never> {
  const isCancellation =
    error instanceof DBOSWorkflowCancelledError || error instanceof DBOSAwaitedWorkflowCancelledError;
  const { deadlineAt, runtime } = run;
  if (isCancellation && deadlineAt !== null && runtime.databaseClock.latest() >= deadlineAt) {
    await abortable(new Promise(() => {}), run.signal);
  }
  throw error;
}

/** Makes the codec store a handle as its workflow's ID. */
export function registerHandles(codec: Codec, handleOf: (workflowID: string) => Handle<unknown>): void {
  codec.registerRecipe<Handle<unknown>, { wfid: string }>({
    name: 'DBOS.WorkflowHandle',
    isApplicable: (value): value is Handle<unknown> => value instanceof Handle,
    serialize: ({ workflowID }) => ({ wfid: workflowID }),
    deserialize: ({ wfid }) => handleOf(wfid),
  });
}
