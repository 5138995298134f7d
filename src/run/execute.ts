// Calls a workflow's function and makes its outcome durable.
import { andThen, isPromise, type MaybePromise, orElse } from '../kernel/codec/maybe-promise.js';
import {
  DatabaseClosedError,
  DBOSAwaitedWorkflowCancelledError,
  DBOSNonExistentWorkflowError,
  DBOSOutcomeNotStorableError,
  DBOSWorkflowCancelledError,
  DBOSWorkflowConflictError,
} from '../kernel/errors/errors.js';
import type { Refill } from '../features/queue/refills.sql.js';
import { classifyFailure } from '../database/retry.js';
import { deadLetterIfOwned } from './rows/lifecycle.js';
import type { Outcome } from './rows/workflows.js';
import type { OutcomeVerdict } from './writer/writer-verdicts.js';
import { type Context, inContext } from './ambient.js';
import { validateInputs } from './registration/input-schema.js';
import { intercept, type WorkflowRegistration } from './registration/registry.js';
import type { Run } from './run.js';
import { findLossReason, isOwner } from './loss.js';

/** How a run ended, as far as its own process knows. */
export type RunOutcome =
  | { readonly kind: 'success'; readonly value: unknown }
  | { readonly kind: 'error'; readonly error: unknown }
  /** The workflow was cancelled or has another owner. Its outcome is, or will be, in the database. */
  | { readonly kind: 'elsewhere' };

export interface Invocation {
  readonly run: Run;
  /** The instance for an instance method. */
  readonly target: unknown;
  /** Or the error of decoding them, which becomes the workflow's outcome. */
  readonly args: unknown[] | Error;
  readonly context: Context;
}

/** How a run ended, and whether it recorded the outcome itself. */
export interface RunEnd {
  readonly outcome: RunOutcome;
  readonly isRecorded: boolean;
}

/** What may get the slot of a run when its outcome is recorded: the same if it is asked again. */
export type OfferRefill = (run: Run) => Refill | undefined;

/** Runs to the end and records the outcome. Never rejects. */
export async function execute(invocation: Invocation, offerRefill?: OfferRefill): Promise<RunEnd> {
  const { run } = invocation;
  // Inlined, as the first attempt to record is below: each further async function costs two promises per workflow.
  let result: CallResult;
  try {
    result = { ok: true, value: await call(invocation) };
  } catch (error) {
    result = { ok: false, error };
  }
  if (run.waits.isAway && !run.isHalted) await run.waits.comeBack();
  if (run.history && !run.history.isEmpty) await run.endReplay(result.ok ? undefined : result.error);
  if (run.isHalted) return { outcome: { kind: 'elsewhere' }, isRecorded: false };
  run.unawaited.endFunction(result.ok ? undefined : result.error);
  try {
    if (run.stopReason) return await endStoppedRun(run, result);
    const { end, failure } = await tryToRecord(run, () => encodeOutcome(run, result), offerRefill);
    return end ?? (await recordSubstitute(run, failure, offerRefill));
  } catch (error) {
    // The process is shutting down, and another one will record the outcome: callers must not see one that is not durable.
    run.runtime.logger.debug(`The outcome of workflow "${run.workflowID}" was not recorded: ${String(error)}`);
    return { outcome: { kind: 'elsewhere' }, isRecorded: false };
  }
}

type CallResult = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

/** May throw what the function throws synchronously. */
function call({ run, target, args, context }: Invocation): Promise<unknown> {
  if (args instanceof Error) throw args;
  const { registration } = run;
  const isPlain = registration.interceptors.length === 0 && !registration.config.inputSchema;
  const { spans } = run;
  const apply = (): Promise<unknown> =>
    isPlain ? registration.origFunction.apply(target, args as never[]) : callChecked(registration, target, args);
  return spans ? inContext({ ...context, span: spans.own }, () => spans.within(apply)) : inContext(context, apply);
}

async function callChecked(registration: WorkflowRegistration, target: unknown, args: unknown[]): Promise<unknown> {
  let accepted = args;
  if (registration.interceptors.length > 0) accepted = await intercept(registration, accepted);
  if (registration.config.inputSchema) accepted = await validateInputs(registration.config.inputSchema, accepted);
  return registration.origFunction.apply(target, accepted as never[]);
}

/** A stopped run records no outcome, unless it still owns the workflow, such as after a failed write. */
async function endStoppedRun(run: Run, result: CallResult): Promise<RunEnd> {
  const reason = run.stopReason;
  // Even if this run still owns the workflow: a shutdown is about to put it back on its queue.
  const isLost = reason instanceof DBOSWorkflowCancelledError || reason instanceof DBOSWorkflowConflictError;
  if (isLost || !(await isOwner(run))) return { outcome: outcomeOfStopped(reason), isRecorded: false };
  const error = result.ok ? reason : result.error;
  const attempt = await tryToRecord(run, () => encodeOutcome(run, { ok: false, error }));
  return attempt.end ?? recordSubstitute(run, attempt.failure);
}

/** The outcome of a run that recorded none. A deleted workflow will never have one, so its handles get the error. */
export function outcomeOfStopped(reason: Error | undefined): RunOutcome {
  return reason instanceof DBOSNonExistentWorkflowError ? { kind: 'error', error: reason } : { kind: 'elsewhere' };
}

/** An outcome as it is stored, and as callers in this process see it. */
interface EncodedOutcome {
  readonly stored: Outcome;
  readonly seen: RunOutcome;
}

/** What cannot be stored is replaced by an error that says so. If that cannot be either, the workflow is dead-lettered. */
async function recordSubstitute(run: Run, cause: unknown, offerRefill?: OfferRefill): Promise<RunEnd> {
  const substitute = new DBOSOutcomeNotStorableError(run.workflowID, cause);
  const { end, failure } = await tryToRecord(run, () => encodeFailure(run, substitute), offerRefill);
  return end ?? deadLetter(run, failure);
}

/** How the run ended, or why its outcome can never be stored. */
interface Attempt {
  readonly end?: RunEnd;
  readonly failure?: unknown;
}

async function tryToRecord(
  run: Run,
  encode: () => MaybePromise<EncodedOutcome>,
  offerRefill?: OfferRefill,
): Promise<Attempt> {
  let encoded: EncodedOutcome;
  let verdict: OutcomeVerdict;
  try {
    const encoding = encode();
    encoded = isPromise(encoding) ? await encoding : encoding;
  } catch (failure) {
    return { failure };
  }
  try {
    verdict = await run.runtime.store.writer.finish(encoded.stored, offerRefill?.(run));
  } catch (failure) {
    // At a shutdown the outcome is not refused, only not written.
    if (classifyFailure(failure) !== 'final' || failure instanceof DatabaseClosedError) throw failure;
    return { failure };
  }
  if (verdict === 'recorded') return { end: { outcome: encoded.seen, isRecorded: true } };
  const reason = await findLossReason(run);
  run.stop(reason);
  return { end: { outcome: outcomeOfStopped(reason), isRecorded: false } };
}

function encodeOutcome(run: Run, result: CallResult): MaybePromise<EncodedOutcome> {
  if (!result.ok) return encodeFailure(run, asAwaited(run, result.error));
  const format = run.isPortable ? 'portable' : undefined;
  const options = { format, path: [run.registration.name] } as const;
  return orElse<EncodedOutcome>(
    () =>
      andThen(run.runtime.codec.roundTripValue(result.value, options), ({ text, value }) => ({
        stored: outcomeOf(run, 'SUCCESS', text),
        seen: { kind: 'success', value },
      })),
    (error) => encodeFailure(run, error),
  );
}

/** To those who await this workflow, a child's cancellation is not its own. */
function asAwaited(run: Run, error: unknown): unknown {
  const { code, workflowID } = (error ?? {}) as { code?: unknown; workflowID?: unknown };
  const isOfOther = code === 'WORKFLOW_CANCELLED' && typeof workflowID === 'string' && workflowID !== run.workflowID;
  return isOfOther ? new DBOSAwaitedWorkflowCancelledError(workflowID) : error;
}

async function encodeFailure(run: Run, error: unknown): Promise<EncodedOutcome> {
  const { codec } = run.runtime;
  // Those who await the run here must see the same error as others.
  const { text, error: copy } = await codec.roundTripError(error, { format: run.isPortable ? 'portable' : undefined });
  return { stored: outcomeOf(run, 'ERROR', text), seen: { kind: 'error', error: copy } };
}

function outcomeOf({ workflowID, owner, journal }: Run, status: Outcome['status'], text: string): Outcome {
  const isSuccess = status === 'SUCCESS';
  const outcome = { workflowID, owner, status, output: isSuccess ? text : null, error: isSuccess ? null : text };
  return journal.isFull ? { ...outcome, ...journal.ended(status) } : outcome;
}

/** Otherwise the workflow would stay PENDING and be run again and again. */
async function deadLetter(run: Run, failure: unknown): Promise<RunEnd> {
  const { runtime } = run;
  runtime.logger.error(new DBOSOutcomeNotStorableError(run.workflowID, failure));
  await runtime.retrying(() => deadLetterIfOwned(runtime.database, [run]));
  return { outcome: { kind: 'elsewhere' }, isRecorded: false };
}
