// Steps: runs user code under a retry policy. perform.ts replays and records the outcome.
import { type DurationText, inMs, inSeconds } from '../kernel/base/duration.js';
import { type BackoffPolicy, backoffMs } from '../kernel/base/backoff.js';
import { eitherOf } from '../kernel/base/abortable.js';
import { sleep } from '../kernel/base/clock.js';
import { deferred } from '../kernel/base/deferred.js';
import type { ErrorClasses } from '../kernel/codec/error-classes.js';
import { DBOSMaxStepRetriesError, DBOSStepTimeoutError } from '../kernel/errors/errors.js';
import { type Context, inContext, type StepStatus } from './ambient.js';
import { failedBefore, keepFailure } from './history/step-attempts.js';
import { own, perform } from './perform.js';
import type { Run } from './run.js';

export interface StepConfig {
  readonly name?: string;
  /** Whether failed attempts are retried. Default: false. */
  readonly retriesAllowed?: boolean;
  /** Delay before the second attempt. Default: 1. */
  readonly intervalSeconds?: number | DurationText;
  /** Attempts in all. Default: 3. */
  readonly maxAttempts?: number;
  /** Multiplies the interval after each attempt. Default: 2. */
  readonly backoffRate?: number;
  /** Varies the interval by up to this fraction in both directions. Default: 0. */
  readonly jitter?: number;
  /** Decides whether to retry after an error. Default: always. */
  readonly shouldRetry?: (error: unknown) => boolean | Promise<boolean>;
  /** The timeout of one attempt. Default: none. */
  readonly timeoutMS?: number | DurationText;
  /**
   * Classes of errors that it may throw: a replay gets instances of them. Those that the application registers with
   * `DBOS.registerErrors` need no mention. Give classes whose names change, or are not unique, in an object:
   * `[CardDeclined, { 'orders.NotFound': NotFound }]`.
   */
  readonly errors?: ErrorClasses;
  /** Ends the step at once when its workflow is cancelled, without waiting for its code. Default: false. */
  readonly preemptible?: boolean;
}

const RETRY_INTERVAL_MAX_MS = 3_600_000;
/** A step whose number was reserved before the first await. */
export interface StepCall {
  readonly stepID: number;
  readonly name: string;
  readonly config: StepConfig;
  /** The arguments of a registered step. */
  readonly args?: readonly unknown[];
}

export function runStep<R>(
  context: Context & { readonly run: Run },
  step: StepCall,
  body: () => Promise<R>,
): Promise<R> {
  const { spans } = context.run;
  if (!spans) return performStep(context, step, body);
  const { name, config } = step;
  const { retriesAllowed, intervalSeconds, maxAttempts, backoffRate, timeoutMS } = config;
  return spans.operation(context, {
    type: 'step',
    name,
    attributes: {
      ...(retriesAllowed !== undefined && { retriesAllowed }),
      ...(intervalSeconds !== undefined && { intervalSeconds: inSeconds(intervalSeconds) }),
      ...(maxAttempts !== undefined && { maxAttempts }),
      ...(backoffRate !== undefined && { backoffRate }),
      ...(timeoutMS !== undefined && { timeoutMS: inMs(timeoutMS) }),
    },
    perform: (traced, begin) => performStep(traced, step, begin(body)),
  });
}

function performStep<R>(context: Context & { readonly run: Run }, step: StepCall, body: () => Promise<R>): Promise<R> {
  const { stepID, name, args } = step;
  const { errors } = step.config;
  return perform(
    context.run,
    { name, stepID, isEffect: true, format: 'named', args, errors },
    own(() => (step.config.retriesAllowed ? attemptUntilDone(context, step, body) : attempt(context, step, body))),
  );
}

async function attemptUntilDone<R>(
  context: Context & { readonly run: Run },
  step: StepCall,
  body: () => Promise<R>,
): Promise<R> {
  const { config, name } = step;
  const maxAttempts = config.maxAttempts ?? 3;
  const policy: BackoffPolicy = {
    firstMs: (inSeconds(config.intervalSeconds) ?? 1) * 1000,
    rate: config.backoffRate ?? 2,
    maxMs: RETRY_INTERVAL_MAX_MS,
    jitter: config.jitter ?? 0,
  };
  const { run } = context;
  const past = run.isFirst ? undefined : await failedBefore(run, step.stepID, config.errors);
  if (past) await backOff(run, past.retryAt);
  // The look at earlier attempts may have taken as long as any wait.
  else if (!run.isFirst) await run.barrier();
  const errors: Error[] = past?.errors ?? [];
  for (let number = 1 + (past?.attempts ?? 0); ; number += 1) {
    try {
      return await attempt(context, step, body, { currentAttempt: number, maxAttempts });
    } catch (error) {
      context.run.check();
      if (config.shouldRetry && !(await config.shouldRetry(error))) throw error;
      errors.push(error instanceof Error ? error : new Error(String(error)));
      if (number >= maxAttempts) throw new DBOSMaxStepRetriesError(name, maxAttempts, errors);
      const { databaseClock, logger } = context.runtime;
      const delayMs = backoffMs(policy, number);
      logger.warn(
        `Attempt ${number} of ${maxAttempts} of step "${name}" failed, retrying in ${Math.round(delayMs)} ms: ${String(error)}`,
      );
      context.span?.addEvent(`Step attempt ${number} failed`, {
        retryIntervalSeconds: delayMs / 1000,
        error: errors.at(-1)?.message,
      });
      run.recordRetry(step, { attempt: number, error, delayMs });
      await databaseClock.settle();
      const retryAt = Math.ceil(databaseClock.latest() + delayMs);
      keepFailure(run, step.stepID, { attempts: number, retryAt, errors }, config.errors);
      await backOff(run, retryAt, delayMs);
    }
  }
}

/** Waits for the next attempt, if that is in the future. A long wait parks the workflow. */
async function backOff(
  run: Run,
  retryAt: number,
  delayMs = retryAt - run.runtime.databaseClock.latest(),
): Promise<void> {
  const { clock, databaseClock } = run.runtime;
  if (delayMs >= run.parkAfterMs) {
    await run.waits.waitFor((suspended) => databaseClock.reached(retryAt, eitherOf(run.signal, suspended)), {
      awaited: undefined,
      endsAt: retryAt,
      isOperation: true,
    });
  } else if (delayMs > 0) await sleep(clock, delayMs, run.signal);
  // Another attempt begins, perhaps after a long time.
  await run.barrier();
}

/** May throw what the body throws synchronously. */
function attempt<R>(
  context: Context & { readonly run: Run },
  step: StepCall,
  body: () => Promise<R>,
  count?: { readonly currentAttempt: number; readonly maxAttempts: number },
): Promise<R> {
  const { run } = context;
  const { preemptible } = step.config;
  const timeoutMS = inMs(step.config.timeoutMS);
  const timeout = timeoutMS === undefined ? undefined : new AbortController();
  const status: StepStatus = {
    stepID: step.stepID,
    ...count,
    ...(timeout && { timeoutSignal: timeout.signal }),
    get cancelSignal() {
      return run.signal;
    },
  };
  const inStep = { ...context, step: status };
  if (!timeout && !preemptible) return inContext(inStep, body);
  const started = inContext(inStep, () => callAsync(body));
  return interruptible(started, context, (interrupt) => {
    const timer =
      timeout && timeoutMS !== undefined
        ? context.runtime.clock.after(timeoutMS, () => {
            const error = new DBOSStepTimeoutError(step.name, timeoutMS);
            timeout.abort(error);
            interrupt(error);
          })
        : undefined;
    const onStop = (): void => interrupt(run.stopReason);
    if (preemptible) run.signal.addEventListener('abort', onStop, { once: true });
    return () => {
      timer?.cancel();
      run.signal.removeEventListener('abort', onStop);
    };
  });
}

/** Awaits the promise until interrupted. The interrupted code keeps running, and its outcome is ignored. */
async function interruptible<R>(
  started: Promise<R>,
  context: Context,
  arm: (interrupt: (error: unknown) => void) => () => void,
): Promise<R> {
  const interrupted = deferred<never>();
  const disarm = arm((error) => {
    interrupted.reject(error);
    started.catch((late: unknown) => context.runtime.logger.debug(`An abandoned step failed late: ${String(late)}`));
  });
  try {
    return await Promise.race([started, interrupted.promise]);
  } finally {
    disarm();
  }
}

/** Turns a synchronous throw into a rejection, and a plain value into a promise. */
async function callAsync<R>(body: () => Promise<R>): Promise<R> {
  return body();
}
