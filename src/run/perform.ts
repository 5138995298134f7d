// The protocol that every recorded operation of a workflow follows:
//
//   take a number ──► in history? ──yes──► return the recorded value, or throw the recorded error
//                          └──no──► check that the run was not stopped ──► barrier, for an effect ──► body ──► checkpoint
//
// What differs is how the checkpoint gets written:
//
//   own        by itself: sent at once, not awaited. It holds what the body returned or threw.
//   joined     as part of another write that the body makes: a message, an event, a child, a receipt. What the body
//              throws is recorded only if it calls `fail`.
//   elsewhere  a data source may hold the outcome already. The body says where it is durable, which decides whether a
//              checkpoint is still needed and what waits for it.
import { invariant } from '../kernel/base/assert.js';
import type { RoundTrip } from '../kernel/codec/codec.js';
import type { ErrorClasses } from '../kernel/codec/error-classes.js';
import { andThen, isPromise, type MaybePromise } from '../kernel/codec/maybe-promise.js';
import { PORTABLE_FORMAT } from '../kernel/codec/serializer.js';
import { DBOSWorkflowCancelledError } from '../kernel/errors/errors.js';
import type { StepRecord } from '../kernel/workflow/records.js';
import type { StoredMessage } from '../features/message/messages.sql.js';
import { hashOf, type Misfit } from './history/crossings.js';
import type { Checkpoint } from './rows/steps.js';
import type { RecordOptions, Run, RunStep, VerdictOf } from './run.js';

/** Operations of one workflow at which the log says so. */
const LONG_HISTORY = 10_000;

/** How an operation differs from others. */
export interface Operation<R> {
  readonly name: string;
  /** The number, if the caller has reserved it. Default: the next one, taken before any await. */
  readonly stepID?: number;
  /** The number of its timer, which may have a record that a replay does not need. */
  readonly timerID?: number;
  /** Whether it is visible outside of the run. Then everything before it must be durable first. */
  readonly isEffect: boolean;
  /**
   * How the outcome is encoded. `named`: by the configured serializer, whose name is stored with it. `portable`: as
   * plain JSON. Default: by the configured serializer, without its name.
   */
  readonly format?: 'named' | 'portable';
  /** The workflow that it starts or waits for. */
  readonly childWorkflowID?: string;
  /** Its completion time. Default: when its checkpoint is sent. */
  readonly completedAt?: number;
  /** Whether it only waits, for other operations of the run or for several things at once. */
  readonly isPassive?: boolean;
  /** Makes the value from a recorded checkpoint. Default: decodes its output. */
  readonly read?: (record: StepRecord) => R;
  /** The arguments of a registered step, for its history. */
  readonly args?: readonly unknown[] | undefined;
  /** What tells it from other operations of its name. Default: its arguments. */
  readonly identity?: readonly unknown[] | undefined;
  /** Classes of errors that it may fail with, besides those that the application has registered. */
  readonly errors?: ErrorClasses | undefined;
}

/** The body of an operation, and how its checkpoint gets written. */
export type Strategy<R> =
  | { readonly kind: 'own'; readonly body: () => Promise<R> }
  | { readonly kind: 'joined' | 'elsewhere'; readonly body: (step: ActiveStep) => Promise<R> };

/** Runs an operation in workflow code, or replays it. */
export async function perform<R>(run: Run, operation: Operation<R>, strategy: Strategy<R>): Promise<R> {
  const { name, isEffect, isPassive, stepID = run.nextStepID() } = operation;
  const { waits } = run;
  // Before any await: code may change its arguments.
  const hash = hashOfCall(run, stepID, operation);
  if (waits.isAway) await waits.comeBack();
  waits.performed += 1;
  if (waits.performed === LONG_HISTORY) warnOfLongHistory(run);
  const record = run.replay(stepID, name);
  run.check();
  const misfit = hash === undefined ? undefined : run.crossings.judge({ stepID, name, hash }, record);
  if (misfit) refuseCrossing(run, misfit);
  if (record) return (await replay(run, operation, record, misfit)) as R;
  // Not taken back if the barrier throws: then the run has ended.
  if (!isPassive) waits.operations += 1;
  const step = new ActiveStep(run, stepID, operation, hash);
  if (isEffect) {
    // Before the barrier: the code may end while the first operation still waits for the workflow's own row.
    run.unawaited.begin(step);
    const { lastWrite } = run;
    if (lastWrite) await lastWrite;
    if (run.isCertain) run.check();
    else await run.barrier();
  }
  step.begin();
  // Inlined, as the barrier is above: another async function around each step would cost measurably.
  try {
    if (strategy.kind !== 'own') {
      const value = await strategy.body(step);
      invariant(strategy.kind === 'elsewhere' || step.hasCheckpoint, `operation "${name}" made no checkpoint`);
      return value;
    }
    const value = await strategy.body();
    if (waits.isAway) await waits.comeBack();
    if (run.stopReason) await step.keepIfCancelled(value);
    const copy = step.recordValue(value);
    return (isPromise(copy) ? await copy : copy) as R;
  } catch (error) {
    if (strategy.kind !== 'own') throw error;
    if (waits.isAway) await waits.comeBack();
    return await step.fail(error);
  } finally {
    if (!isPassive) waits.operations -= 1;
    if (isEffect) run.unawaited.end(step);
  }
}

function warnOfLongHistory({ runtime, workflowID, registration }: Run): void {
  runtime.logger.warn(
    `Workflow "${workflowID}" (${registration.name}) has called ${LONG_HISTORY} operations, all of which a recovery replays. ` +
      'Use DBOS.continueAsNew in a workflow that never ends, or children.',
  );
}

/** Undefined for an operation whose number cannot depend on timing, or of which nothing tells it from others. */
function hashOfCall(run: Run, stepID: number, { identity, args }: Operation<unknown>): number | undefined {
  const told = run.mayCross(stepID) || run.recordAt(stepID)?.argumentsHash != null ? (identity ?? args) : undefined;
  return told && hashOf(told);
}

/** Ends the run if its branches have taken the numbers of each other. */
function refuseCrossing(run: Run, misfit: Misfit): void {
  const other = run.crossings.findOther(misfit);
  if (!other) return;
  const { name } = misfit;
  const [stepID, otherID] = [misfit.stepID, other.stepID].sort((a, b) => a - b) as [number, number];
  const problem =
    `function ${name} was called with the arguments of another branch, whose call came as step ${otherID}: the order of the ` +
    'branches depends on timing. Use DBOS.parallel for branches of several operations.';
  run.diverge(stepID, name, { name, problem });
}

async function replay(
  run: Run,
  operation: Operation<unknown>,
  record: StepRecord,
  misfit: Misfit | undefined,
): Promise<unknown> {
  const { history } = run;
  const { timerID } = operation;
  invariant(history, 'a record is part of a history');
  if (timerID !== undefined) history.pass(timerID);
  return history.during(async () => {
    if (misfit) {
      await run.crossings.hold(misfit);
      run.check();
    }
    const pause = history.pause();
    if (pause) await pause;
    return replayOutcome(run, await run.completed(record), operation);
  });
}

/** Returns the recorded value or throws the recorded error. If it cannot be read, the run has diverged. */
export async function replayOutcome(
  run: Run,
  record: StepRecord,
  { read, errors }: Pick<Operation<unknown>, 'read' | 'errors'> = {},
): Promise<unknown> {
  const { codec } = run.runtime;
  let thrown: unknown;
  try {
    if (record.error === null)
      return await (read ? read(record) : codec.decodeValue(record.output, record.serialization));
    thrown = await codec.decodeError(record.error, record.serialization, errors);
  } catch (cause) {
    const { stepID, name } = record;
    const problem = `the recorded outcome of function ${name} cannot be read. Configure the serializer that has written it.`;
    run.diverge(stepID, name, { name, problem, cause });
  }
  throw thrown;
}

/** Records the value or error in a checkpoint of its own. Returns the copy that a replay would return. */
export function own<R>(body: () => Promise<R>): Strategy<R> {
  return { kind: 'own', body };
}

/** The body writes the checkpoint together with something else: by `commit` or `follow`, or by `record`. */
export function joined<R>(body: (step: ActiveStep) => Promise<R>): Strategy<R> {
  return { kind: 'joined', body };
}

/** How an operation ended. */
export type StepOutcome =
  { readonly kind: 'value'; readonly value: unknown } | { readonly kind: 'error'; readonly error: unknown };

/** Where the outcome is durable when the data source returns it. */
export type Durability =
  /** In the system database: the checkpoint was committed with the transaction. */
  | 'checkpointed'
  /** In a completion record in the data source, where it is found even if the checkpoint is lost. */
  | 'recorded'
  /** Nowhere: the transaction has changed nothing. */
  | 'none'
  /** Not known: the handler is a plugin with a protocol of its own. */
  | 'unknown';

export interface KeptOutcome {
  readonly outcome: StepOutcome;
  readonly durability: Durability;
}

/** A data source runs the body and says where the outcome is durable. */
export function elsewhere(body: (step: ActiveStep) => Promise<KeptOutcome>): Strategy<unknown> {
  return { kind: 'elsewhere', body: (step) => settle(step, body) };
}

async function settle(step: ActiveStep, body: (step: ActiveStep) => Promise<KeptOutcome>): Promise<unknown> {
  let durability: Durability = 'unknown';
  try {
    const kept = await body(step);
    durability = kept.durability;
    if (durability === 'checkpointed') step.run.noteRecorded(step.stepID);
    if (kept.outcome.kind === 'error') throw kept.outcome.error;
    step.run.check();
    const { value } = kept.outcome;
    const copy =
      durability === 'checkpointed'
        ? andThen(step.encode(value), (encoded) => encoded.value)
        : step.recordValue(value, { isKeptElsewhere: durability === 'recorded' });
    return isPromise(copy) ? await copy : copy;
  } catch (error) {
    if (durability !== 'checkpointed') return step.fail(error, { isKeptElsewhere: durability === 'recorded' });
    step.run.check();
    throw error;
  }
}

/** What a checkpoint takes from its operation. */
type Described = Pick<
  Operation<unknown>,
  'name' | 'isEffect' | 'format' | 'childWorkflowID' | 'completedAt' | 'args' | 'errors'
>;

/** What a checkpoint holds besides its number, name and times. */
type Stored = Partial<Pick<StepRecord, 'output' | 'error' | 'serialization' | 'childWorkflowID'>>;

type KeptOptions = Pick<RecordOptions, 'isKeptElsewhere'>;

/** Plain JSON. Default: null, for an operation without a value. */
export function portable(json = 'null'): { readonly output: string; readonly serialization: string } {
  return { output: json, serialization: PORTABLE_FORMAT };
}

/** Text that is already encoded. */
export function encodedAs({ text, serialization }: Pick<StoredMessage, 'text' | 'serialization'>): Stored {
  return { output: text, serialization };
}

/** An operation that runs, as opposed to being replayed. Builds and sends its checkpoint. */
export class ActiveStep {
  readonly #operation: Described;
  #startedAt = 0;
  #encoded: { readonly of: unknown; readonly roundTrip: RoundTrip } | undefined;
  #hasCheckpoint = false;

  constructor(
    readonly run: Run,
    readonly stepID: number,
    operation: Described,
    readonly argumentsHash?: number,
  ) {
    this.#operation = operation;
  }

  /** Its body begins. */
  begin(): void {
    this.#startedAt = this.run.runtime.clock.now();
  }

  get name(): string {
    return this.#operation.name;
  }

  /** A joined operation must have made one. */
  get hasCheckpoint(): boolean {
    return this.#hasCheckpoint;
  }

  /** The checkpoint, to be part of another write. */
  checkpoint(stored: Stored): Checkpoint {
    this.run.check();
    return this.run.checkpoint(this.#recordOf(stored));
  }

  /** Follows a write that contains the checkpoint. Call it right after submitting it; see `Run.follow`. */
  follow<V>(written: Promise<V>, verdictOf: VerdictOf<V>): void {
    this.run.follow(written, verdictOf, this.stepID);
  }

  /** Follows the write and awaits it. Throws if it failed or the workflow is lost. */
  commit<V>(written: Promise<V>, verdictOf: VerdictOf<V>): Promise<V> {
    return this.run.commit(written, verdictOf, this.stepID);
  }

  /** Sends the checkpoint by itself. Throws if the run was stopped: it must record nothing more. */
  record(stored: Stored, options?: KeptOptions): void {
    this.run.check();
    const { isEffect, args } = this.#operation;
    this.run.record(this.#recordOf(stored), { isEffect, isKeptElsewhere: options?.isKeptElsewhere, args });
  }

  /** Sends the checkpoint of a value, and returns the copy that the workflow continues with. */
  recordValue(value: unknown, options?: KeptOptions): MaybePromise<unknown> {
    this.run.check();
    return andThen(this.encode(value), ({ text, serialization, value: copy }) => {
      this.record({ output: text, serialization: this.#operation.format ? serialization : null }, options);
      return copy;
    });
  }

  /**
   * The run was stopped while the body ran. If its workflow was cancelled, a resume should not repeat an effect. Resolves
   * when that is recorded, or refused because the workflow was resumed already.
   */
  async keepIfCancelled(value: unknown): Promise<void> {
    const { run } = this;
    if (!this.#operation.isEffect || !(run.stopReason instanceof DBOSWorkflowCancelledError)) return;
    const { text, serialization } = await this.encode(value);
    await run.keep(this.#recordOf({ output: text, serialization: this.#operation.format ? serialization : null }));
  }

  /** Records the error as the outcome and throws the copy that a replay will throw. If the run was stopped, throws the reason and records nothing. */
  async fail(error: unknown, options?: KeptOptions): Promise<never> {
    const { run } = this;
    // For the log.
    if (run.hasEnded) throw error;
    run.check();
    const { errors, format } = this.#operation;
    const { text, serialization, error: copy } = await run.runtime.codec.roundTripError(error, { errors });
    this.record({ error: text, serialization: format === 'named' ? serialization : null }, options);
    throw copy;
  }

  /** The text of a value, and the copy that the workflow continues with. The same value is encoded once. */
  encode(value: unknown): MaybePromise<RoundTrip> {
    if (this.#encoded && this.#encoded.of === value) return this.#encoded.roundTrip;
    const { format, name } = this.#operation;
    // Functions cannot be stored. Calling one on the copy throws an error that names this path.
    const options = format === 'portable' ? { format } : { path: format ? [name] : [] };
    return andThen(this.run.runtime.codec.roundTripValue(value, options), (roundTrip) => {
      this.#encoded = { of: value, roundTrip };
      return roundTrip;
    });
  }

  #recordOf(stored: Stored): RunStep {
    const { run, stepID, name } = this;
    this.#hasCheckpoint = true;
    return {
      stepID,
      name,
      output: stored.output ?? null,
      error: stored.error ?? null,
      childWorkflowID: stored.childWorkflowID ?? this.#operation.childWorkflowID ?? null,
      serialization: stored.serialization ?? null,
      startedAt: this.#startedAt,
      completedAt: this.#operation.completedAt ?? run.runtime.clock.now(),
      argumentsHash: this.argumentsHash ?? null,
    };
  }
}
