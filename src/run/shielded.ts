// Promises that code gets from us.
import { currentContext, isWorkflowCode } from './ambient.js';
import { noteRejection } from './unhandled-rejections.js';

/**
 * A promise that code gets from us. In workflow code it never settles once the run is halted. If it rejects with the reason
 * for which the run was stopped, the rejection counts as handled; any other is up to the code, and fails the workflow if
 * the code does not handle it.
 */
export function shielded<T>(promise: Promise<T>): Promise<T> {
  const context = currentContext();
  const run = context?.run;
  if (!run) return promise;
  // Not in steps and transactions, which have to end: they may hold a connection.
  const mayHang = isWorkflowCode(context);
  const given: Promise<T> = promise.then(
    (value) => (mayHang && run.isHalted ? never() : value),
    (error: unknown) => {
      if (mayHang && run.hasEnded && error !== run.stopReason) run.unawaited.fail(error);
      if (mayHang && run.isHalted) return never();
      if (error === run.stopReason) given.catch(() => {});
      else noteRejection(run.unawaited, given, error);
      throw error;
    },
  );
  return given;
}

/** One of its own for each caller: what waits for a shared one would stay in memory. */
function never(): Promise<never> {
  return new Promise(() => {});
}

/** Calls what makes such a promise. What the call throws is a rejection as well. */
export function attempted<T>(body: () => Promise<T>): Promise<T> {
  try {
    return shielded(body());
  } catch (error) {
    return shielded(rejected(error));
  }
}

async function rejected(error: unknown): Promise<never> {
  throw error;
}
