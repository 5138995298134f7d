// Errors in the code of workflows that nothing handles. A workflow that ends its process is recovered, and ends the next one
// as well.
//
// - Everything that the code of a stopped run waits for rejects with the reason for the stop, including what it does not
//   await yet. The code cannot prevent that, so such a rejection counts as handled.
// - An operation that fails without being awaited fails its workflow.
// - The rejection of another promise ends the process, as it does in any program. The workflow is named, and it becomes a dead
//   letter if it is its third attempt.
import { withTimeLimit } from '../kernel/base/time-limit.js';
import { deadLetterFatal } from './rows/lifecycle.js';
import { currentContext } from './ambient.js';
import { processWide } from './process-wide.js';
import type { Run } from './run.js';

/** The operations of the run in whose code one has failed. */
export interface FailingOperations {
  /** True if the run fails because of the error. False if the run itself has ended with it, and another gets it. */
  fail(error: unknown): boolean;
}

/** Process-wide, because unhandled rejections are reported to the process: a second listener would see the first one. */
const { stopReasons, runs, onUnhandled, onCrash } = processWide('unhandledRejections', () => {
  const known = { stopReasons: new WeakSet<Error>(), runs: new WeakMap<object, FailingOperations>() };
  return { ...known, onUnhandled: listenerFor(known), onCrash: nameWorkflow };
});

/** In which attempt a workflow becomes a dead letter if its code ends the process. Those before have ended theirs as well. */
const FATAL_ATTEMPTS = 3;
/** How long a process that is about to end may take to note which workflow has ended it. */
const BLAME_MS = 1000;

/** Call it before anything is rejected with the reason. */
export function addStopReason(reason: Error): void {
  stopReasons.add(reason);
  listen();
}

/** An operation of the run has failed with the error, and its code got the promise. */
export function noteRejection(run: FailingOperations, promise: Promise<unknown>, error: unknown): void {
  runs.set(promise, run);
  // Code makes promises of its own from ours, such as that of an async function or a `Promise.all`.
  if (typeof error === 'object' && error !== null) runs.set(error, run);
  listen();
}

function listen(): void {
  if (!process.listeners('unhandledRejection').includes(onUnhandled)) process.on('unhandledRejection', onUnhandled);
}

/** From the launch of an engine on, and for good: code of its workflows may go on after it. */
export function listenForErrors(): void {
  // Rejections are up to an application that listens for them, and to a test runner.
  if (process.listenerCount('unhandledRejection') === 0) listen();
  if (!process.listeners('uncaughtExceptionMonitor').includes(onCrash)) process.on('uncaughtExceptionMonitor', onCrash);
}

function listenerFor(known: {
  readonly stopReasons: WeakSet<Error>;
  readonly runs: WeakMap<object, FailingOperations>;
}): NodeJS.UnhandledRejectionListener {
  return function onRejection(reason, promise) {
    if (reason instanceof Error && known.stopReasons.has(reason)) return;
    // The application has its own way to handle them.
    if (process.listenerCount('unhandledRejection') > 1) return;
    const operations = known.runs.get(promise) ?? (reason instanceof Object ? known.runs.get(reason) : undefined);
    if (operations?.fail(reason)) return;
    const handBack = (): void => {
      // Ours is the only listener. Node acts as if there were none.
      process.off('unhandledRejection', onRejection);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- It is what the code has rejected with.
      void Promise.reject(reason);
      setImmediate(() => process.on('unhandledRejection', onRejection));
    };
    const run = currentContext()?.run;
    if (run) void blame(run).then(handBack);
    else handBack();
  };
}

/** Sets the workflow aside that ends the process, unless it is one of its first attempts. */
async function blame({ runtime, workflowID, owner }: Run): Promise<void> {
  const { clock, database, logger } = runtime;
  const blamed = deadLetterFatal(database, { workflowID, owner }, FATAL_ATTEMPTS).then((isDeadLetter) => {
    if (!isDeadLetter) return;
    logger.error(`Workflow "${workflowID}" is a dead letter now. Fix its code before you resume it.`);
  });
  await withTimeLimit(clock, BLAME_MS, blamed, () => {}).catch((error: unknown) => logger.warn(error));
}

/** It only says so. What becomes of the process is up to Node and to the application. */
function nameWorkflow(_: Error, origin: NodeJS.UncaughtExceptionOrigin): void {
  const { run, step } = currentContext() ?? {};
  if (!run) return;
  const { workflowID, registration, runtime } = run;
  const place = step ? `Step ${step.stepID} of workflow` : 'Workflow';
  const what =
    origin === 'unhandledRejection' ? 'a promise that it does not await or catch' : 'an exception that nothing catches';
  runtime.logger.error(`${place} "${workflowID}" (${registration.name}) ends the process by ${what}.`);
}
