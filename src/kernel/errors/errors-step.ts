// Errors about what happens inside a workflow: its steps, their checkpoints, and streams.
import { errorOf, hasErrorCode } from './errors-base.js';

export const UnexpectedStep = 26;
export const StreamTimeout = 33;
export const StreamNondeterminism = 34;
export const StepNondeterminism = 37;
const STREAM_TIMEOUT_CODE = 'STREAM_TIMEOUT';

/** How many of the previous errors a message lists; the `errors` field holds them all. */
const LISTED_ERRORS_MAX = 20;

/** A step failed in every attempt it was allowed. */
export class DBOSMaxStepRetriesError extends errorOf('DBOSMaxStepRetriesError', 'MAX_STEP_RETRIES', 23) {
  constructor(
    readonly stepName: string,
    readonly maxRetries: number,
    readonly errors: readonly Error[],
    options?: ErrorOptions,
  ) {
    super(
      `Step ${stepName} has exceeded its maximum of ${maxRetries} retries. Previous errors: ${listErrors(errors)}`,
      options,
    );
  }
}

function listErrors(errors: readonly Error[]): string {
  const listed = errors.slice(0, LISTED_ERRORS_MAX).map((error, index) => `Error ${index + 1}: ${error.message}`);
  if (errors.length > listed.length) listed.push(`and ${errors.length - listed.length} more`);
  return listed.join('. ');
}

const PATCH_PREFIX = 'DBOS.patch';

/** A workflow did something else than its checkpoints say. */
export class DBOSUnexpectedStepError extends errorOf('DBOSUnexpectedStepError', 'UNEXPECTED_STEP', UnexpectedStep) {
  readonly recordedName: string;

  /** `recorded` is the name of the operation that is recorded, or what is wrong with the record. */
  constructor(
    readonly workflowID: string,
    readonly stepID: number,
    readonly expectedName: string,
    recorded: string | UnusableRecord,
  ) {
    const {
      name: recordedName,
      problem,
      cause,
    } = typeof recorded === 'string' ? { name: recorded, problem: undefined, cause: undefined } : recorded;
    const patchAdvice = recordedName.startsWith(PATCH_PREFIX)
      ? ' The record is a patch marker: keep the DBOS.patch call, or DBOS.deprecatePatch in its place, ' +
        'until no workflow that has passed it is left.'
      : '';
    const fault =
      problem ??
      `function ${recordedName} was recorded when ${expectedName} was expected. Check that your workflow is deterministic.`;
    const options = cause === undefined ? undefined : { cause };
    super(`During execution of workflow ${workflowID} step ${stepID}, ${fault}${patchAdvice}`, options);
    this.recordedName = recordedName;
  }
}

/** The record of an operation that does not fit what the code calls, although it may have its name. */
export interface UnusableRecord {
  readonly name: string;
  /** What is wrong with it, and what to do about it. Default: the name. */
  readonly problem?: string;
  readonly cause?: unknown;
}

/** One attempt of a step took longer than it may. */
export class DBOSStepTimeoutError extends errorOf('DBOSStepTimeoutError', 'STEP_TIMEOUT', 31) {
  constructor(
    readonly stepName: string,
    readonly timeoutMS: number,
    options?: ErrorOptions,
  ) {
    super(`Step ${stepName} timed out after ${timeoutMS}ms`, options);
  }
}

/** No further stream value came in time, or, without a timeout, the stream ended before the wanted value. */
export class DBOSStreamTimeoutError extends errorOf('DBOSStreamTimeoutError', STREAM_TIMEOUT_CODE, StreamTimeout) {
  constructor(
    readonly workflowID: string,
    readonly key: string,
    readonly timeoutMS?: number,
    options?: ErrorOptions,
  ) {
    const stream = `stream ${key} of workflow ${workflowID}`;
    const message =
      timeoutMS === undefined
        ? `The ${stream} ended before the wanted value. Read from a smaller offset.`
        : `No value came on ${stream} within ${timeoutMS}ms. Read again, or with a longer timeoutSeconds.`;
    super(message, options);
  }
}

/** True for a DBOSStreamTimeoutError, also one that was stored and read back. */
export function isStreamTimeoutError(error: unknown): boolean {
  return hasErrorCode(error, StreamTimeout, STREAM_TIMEOUT_CODE);
}

/** One workflow reads streams in a way that cannot be replayed. */
export class DBOSStreamNondeterminismError extends errorOf(
  'DBOSStreamNondeterminismError',
  'STREAM_NONDETERMINISM',
  StreamNondeterminism,
) {
  constructor(
    readonly workflowID: string,
    readonly key: string,
    options?: ErrorOptions,
  ) {
    super(
      `A read of stream ${key} of workflow ${workflowID} overlaps another stream read of the same workflow, ` +
        `so their order cannot be replayed. Finish one read before the next, or read each in a child workflow.`,
      options,
    );
  }
}

/** One run recorded two different outcomes under one step number. */
export class DBOSStepNondeterminismError extends errorOf(
  'DBOSStepNondeterminismError',
  'STEP_NONDETERMINISM',
  StepNondeterminism,
) {
  constructor(
    readonly workflowID: string,
    readonly stepID: number,
    options?: ErrorOptions,
  ) {
    super(
      `Step ${stepID} of workflow ${workflowID} was recorded twice by one execution. ` +
        `Start the steps of a workflow in a fixed order, also those that run at the same time.`,
      options,
    );
  }
}

/** An operation failed that its workflow does not await, which fails the workflow. The operation's error is the cause. */
export class DBOSUnawaitedOperationError extends errorOf('DBOSUnawaitedOperationError', 'UNAWAITED_OPERATION') {
  constructor(
    readonly workflowID: string,
    cause: unknown,
  ) {
    super(
      `An operation of workflow ${workflowID} failed, and the workflow does not await it: ${
        cause instanceof Error ? cause.message : String(cause)
      }. Await or catch every step, transaction and start.`,
      { cause },
    );
  }
}

/** A twin of this step has recorded its outcome first. The data source replays that outcome. */
export class DBOSStepAlreadyRecordedError extends errorOf('DBOSStepAlreadyRecordedError', 'STEP_ALREADY_RECORDED') {
  constructor(
    readonly workflowID: string,
    readonly stepID: number,
    options?: ErrorOptions,
  ) {
    super(
      `Step ${stepID} of workflow ${workflowID} is already recorded. Replay the recorded outcome instead.`,
      options,
    );
  }
}

/** A message that a step has received is gone from the database, so the step can't be recorded. */
export class MessageLostError extends errorOf('MessageLostError', 'MESSAGE_LOST') {
  constructor(
    readonly workflowID: string,
    readonly stepID: number,
    options?: ErrorOptions,
  ) {
    super(
      `The message that step ${stepID} of workflow "${workflowID}" received is no longer in the database: ` +
        'it was deleted by hand, or the database was restored. Resume the workflow, or fork it from this step.',
      options,
    );
  }
}
