// Calls a workflow's function and makes its outcome durable.
import {
  DBOSNonExistentWorkflowError,
  DBOSWorkflowCancelledError,
  DBOSWorkflowConflictError,
} from '../../model/errors/errors.js';
import type { Outcome } from '../../store/runs/workflows.js';
import { type Context, inContext } from './ambient.js';
import { validateInputs } from '../registration/input-schema.js';
import { intercept } from '../registration/registry.js';
import type { Run } from './run.js';

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

/** Runs to the end and records the outcome. Never rejects. */
export async function execute(invocation: Invocation): Promise<RunEnd> {
  const { run } = invocation;
  const result = await call(invocation);
  try {
    return run.stopReason ? await endStoppedRun(run, result) : await recordOutcome(run, result);
  } catch (error) {
    // Neither the value nor the error could be stored, or the process is shutting down.
    return { outcome: { kind: 'error', error }, isRecorded: false };
  }
}

type CallResult = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

async function call({ run, target, args, context }: Invocation): Promise<CallResult> {
  try {
    if (args instanceof Error) throw args;
    const { registration } = run;
    const value = await inContext({ ...context, run }, async () => {
      let accepted = args;
      if (registration.interceptors.length > 0) accepted = await intercept(registration, accepted);
      if (registration.config.inputSchema) accepted = await validateInputs(registration.config.inputSchema, accepted);
      return registration.origFunction.apply(target, accepted as never[]);
    });
    return { ok: true, value };
  } catch (error) {
    return { ok: false, error };
  }
}

/** A stopped run records no outcome, unless it still owns the workflow, such as after a failed write. */
async function endStoppedRun(run: Run, result: CallResult): Promise<RunEnd> {
  const reason = run.stopReason;
  // Even if this run still owns the workflow: a shutdown is about to put it back on its queue.
  const isLost = reason instanceof DBOSWorkflowCancelledError || reason instanceof DBOSWorkflowConflictError;
  if (isLost || (await run.checkOwnership()) === 'lost')
    return { outcome: outcomeOfStopped(reason), isRecorded: false };
  const error = result.ok ? reason : result.error;
  return recordOutcome(run, { ok: false, error });
}

/** The outcome of a run that recorded none. A deleted workflow will never have one, so its handles get the error. */
export function outcomeOfStopped(reason: Error | undefined): RunOutcome {
  return reason instanceof DBOSNonExistentWorkflowError ? { kind: 'error', error: reason } : { kind: 'elsewhere' };
}

async function recordOutcome(run: Run, result: CallResult): Promise<RunEnd> {
  const { codec, store } = run.runtime;
  const format = run.isPortable ? 'portable' : undefined;
  const base = { workflowID: run.workflowID, owner: run.owner };
  let outcome: Outcome;
  let ended: RunOutcome;
  try {
    if (!result.ok) throw result.error;
    const encoded = await codec.roundTripValue(result.value, { format, path: [run.registration.name] });
    outcome = { ...base, status: 'SUCCESS', output: encoded.text, error: null };
    ended = { kind: 'success', value: encoded.value };
  } catch (error) {
    const encoded = await codec.encodeError(error, format);
    outcome = { ...base, status: 'ERROR', output: null, error: encoded.text };
    // The first caller of a portable workflow must see the same error as later ones.
    const seen = run.isPortable ? await codec.decodeError(encoded.text, encoded.serialization) : error;
    ended = { kind: 'error', error: seen };
  }
  const verdict = await store.writer.finish(outcome);
  if (verdict === 'lost') {
    const reason = await run.findLossReason();
    run.stop(reason);
    return { outcome: outcomeOfStopped(reason), isRecorded: false };
  }
  return { outcome: ended, isRecorded: true };
}
