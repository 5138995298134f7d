// The failed attempts of a step, kept so that the next process continues their count and the backoff.
import type { Encoded } from '../../kernel/codec/codec.js';
import type { ErrorClasses } from '../../kernel/codec/error-classes.js';
import { findFailedAttempts, recordFailedAttempts } from '../rows/step-attempts.js';
import type { Run } from '../run.js';

/** Errors that are kept. Those before them are not in the error of a step that gives up in another process. */
const ERRORS_MAX = 20;

export interface FailedBefore {
  readonly attempts: number;
  readonly retryAt: number;
  readonly errors: Error[];
}

/** The attempts of earlier runs; undefined if there were none. */
export async function failedBefore(
  run: Run,
  stepID: number,
  classes?: ErrorClasses,
): Promise<FailedBefore | undefined> {
  const { codec, database } = run.runtime;
  run.pastAttempts ??= run.runtime.retrying(() => findFailedAttempts(database, run.workflowID), run.signal);
  const past = (await run.pastAttempts).get(stepID);
  if (!past) return undefined;
  const errors: Error[] = [];
  for (const { text, serialization } of JSON.parse(past.errors) as Encoded[]) {
    errors.push((await codec.decodeError(text, serialization, classes)) as Error);
  }
  return { attempts: past.attempts, retryAt: past.retryAt, errors };
}

/** Keeps a failed attempt. It is durable once the next barrier resolves. */
export function keepFailure(run: Run, stepID: number, failed: FailedBefore, classes?: ErrorClasses): void {
  const { runtime, workflowID, owner } = run;
  const { attempts, retryAt } = failed;
  // Other branches may have written, and the barrier waits for the last write only.
  const { lastWrite } = run;
  const write = async (): Promise<'recorded' | 'lost'> => {
    const encoded: Encoded[] = [];
    for (const error of failed.errors.slice(-ERRORS_MAX)) {
      encoded.push(await runtime.codec.encodeError(error, { errors: classes }));
    }
    const row = { workflowID, owner, stepID, attempts, retryAt, errors: JSON.stringify(encoded) };
    const isRecorded = await runtime.retrying(() => recordFailedAttempts(runtime.database, row), run.signal);
    await lastWrite;
    return isRecorded ? 'recorded' : 'lost';
  };
  // Without the number of the step, which has no checkpoint yet.
  run.follow(write(), (verdict) => verdict);
}
