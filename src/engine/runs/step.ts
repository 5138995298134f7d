// Steps: user code that runs once. A recorded step is replayed from history; any other is attempted under its retry
// policy, held back until everything before it is durable, and its outcome is sent as a checkpoint.
import { type BackoffPolicy, backoffMs } from '../../base/backoff.js';
import { sleep } from '../../base/clock.js';
import { deferred } from '../../base/deferred.js';
import { DBOSMaxStepRetriesError, DBOSStepTimeoutError } from '../../model/errors/errors.js';
import { number, positiveInteger, positiveNumber } from '../../model/validation/validation.js';
import type { StepRecord } from '../../model/records.js';
import { type Context, inContext, type StepStatus } from './ambient.js';
import type { Run, RunStep } from './run.js';

export interface StepConfig {
  readonly name?: string;
  /** Whether a failed attempt is repeated. */
  readonly retriesAllowed?: boolean;
  /** Seconds before the second attempt; 1 unless given. */
  readonly intervalSeconds?: number;
  /** Attempts in all; 3 unless given. */
  readonly maxAttempts?: number;
  /** What the interval is multiplied with after each attempt; 2 unless given. */
  readonly backoffRate?: number;
  /** Spreads the interval by up to this share of it in both directions; 0 unless given. */
  readonly jitter?: number;
  /** Decides whether an error is worth another attempt. */
  readonly shouldRetry?: (error: unknown) => boolean | Promise<boolean>;
  /** Milliseconds that one attempt may take. */
  readonly timeoutMS?: number;
  /** Ends the step at once when its workflow is cancelled, without waiting for its code. */
  readonly preemptible?: boolean;
}

const RETRY_INTERVAL_MAX_MS = 3_600_000;
const intervalCheck = number();
const backoffCheck = number({ min: 1 });
const jitterCheck = number({ max: 1 });

/** Refuses a configuration that cannot be meant. */
export function checkStepConfig(config: StepConfig): void {
  const { timeoutMS, maxAttempts, intervalSeconds, backoffRate, jitter } = config;
  if (timeoutMS !== undefined) positiveNumber.read(timeoutMS, 'config.timeoutMS');
  if (maxAttempts !== undefined) positiveInteger.read(maxAttempts, 'config.maxAttempts');
  if (intervalSeconds !== undefined) intervalCheck.read(intervalSeconds, 'config.intervalSeconds');
  if (backoffRate !== undefined) backoffCheck.read(backoffRate, 'config.backoffRate');
  if (jitter !== undefined) jitterCheck.read(jitter, 'config.jitter');
}

/** Runs a step in workflow code. The number must have been reserved before the first await. */
export async function runStep<R>(
  context: Context & { readonly run: Run },
  step: { readonly stepID: number; readonly name: string; readonly config: StepConfig },
  body: () => Promise<R>,
): Promise<R> {
  const { run } = context;
  const recorded = run.replay(step.stepID, step.name);
  run.check();
  if (recorded) return replayOutcome(run, recorded) as Promise<R>;
  await run.barrier();
  const startedAt = run.engine.clock.now();
  try {
    const value = await attemptUntilDone(context, step, body);
    run.check();
    const { text, serialization, value: copy } = await run.engine.codec.roundTripValue(value, { path: [step.name] });
    run.record(outcome(run, step, startedAt, { output: text, error: null, serialization }));
    return copy as R;
  } catch (error) {
    // The end of the run is no outcome of the step.
    run.check();
    const { text, serialization } = await run.engine.codec.encodeError(error);
    run.record(outcome(run, step, startedAt, { output: null, error: text, serialization }));
    throw error;
  }
}

/** Gives what was recorded: the value is returned, the error thrown. */
export async function replayOutcome(run: Run, record: StepRecord): Promise<unknown> {
  const { codec } = run.engine;
  if (record.error !== null) throw await codec.decodeError(record.error, record.serialization);
  return codec.decodeValue(record.output, record.serialization);
}

function outcome(
  run: Run,
  step: { readonly stepID: number; readonly name: string },
  startedAt: number,
  result: Pick<StepRecord, 'output' | 'error' | 'serialization'>,
): RunStep {
  const completedAt = run.engine.clock.now();
  return { stepID: step.stepID, name: step.name, childWorkflowID: null, startedAt, completedAt, ...result };
}

async function attemptUntilDone<R>(
  context: Context & { readonly run: Run },
  step: { readonly stepID: number; readonly name: string; readonly config: StepConfig },
  body: () => Promise<R>,
): Promise<R> {
  const { config, name } = step;
  if (!config.retriesAllowed) return attempt(context, step, body, undefined);
  const maxAttempts = config.maxAttempts ?? 3;
  const policy: BackoffPolicy = {
    firstMs: (config.intervalSeconds ?? 1) * 1000,
    rate: config.backoffRate ?? 2,
    maxMs: RETRY_INTERVAL_MAX_MS,
    jitter: config.jitter ?? 0,
  };
  const errors: Error[] = [];
  for (let number = 1; ; number += 1) {
    try {
      return await attempt(context, step, body, { currentAttempt: number, maxAttempts });
    } catch (error) {
      context.run.check();
      if (config.shouldRetry && !(await config.shouldRetry(error))) throw error;
      errors.push(error instanceof Error ? error : new Error(String(error)));
      if (number >= maxAttempts) throw new DBOSMaxStepRetriesError(name, maxAttempts, errors);
      const { clock, logger } = context.engine;
      const delayMs = backoffMs(policy, number);
      logger.warn(
        `Attempt ${number} of ${maxAttempts} of step "${name}" failed, next one in ${Math.round(delayMs)} ms: ${String(error)}`,
      );
      await sleep(clock, delayMs, context.run.signal);
    }
  }
}

function attempt<R>(
  context: Context & { readonly run: Run },
  step: { readonly stepID: number; readonly name: string; readonly config: StepConfig },
  body: () => Promise<R>,
  count: { readonly currentAttempt: number; readonly maxAttempts: number } | undefined,
): Promise<R> {
  const { run } = context;
  const { timeoutMS, preemptible } = step.config;
  const timeout = timeoutMS === undefined ? undefined : new AbortController();
  const status: StepStatus = {
    stepID: step.stepID,
    ...count,
    ...(timeout && { timeoutSignal: timeout.signal }),
    get cancelSignal() {
      return run.signal;
    },
  };
  const started = inContext({ ...context, step: status }, () => callAsync(body));
  if (!timeout && !preemptible) return started;
  return interruptible(started, context, (interrupt) => {
    const timer =
      timeout && timeoutMS !== undefined
        ? context.engine.clock.after(timeoutMS, () => {
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

/** Waits for the promise, unless interrupted first. The code behind it runs on, but nobody heeds its outcome. */
async function interruptible<R>(
  started: Promise<R>,
  context: Context,
  arm: (interrupt: (error: unknown) => void) => () => void,
): Promise<R> {
  const interrupted = deferred<never>();
  const disarm = arm((error) => {
    interrupted.reject(error);
    started.catch((late: unknown) => context.engine.logger.debug(`An abandoned step failed late: ${String(late)}`));
  });
  try {
    return await Promise.race([started, interrupted.promise]);
  } finally {
    disarm();
  }
}

/** Calls a function so that a synchronous throw is a rejection as well. */
async function callAsync<R>(body: () => Promise<R>): Promise<R> {
  return body();
}
