// The protocol that every recorded operation of a workflow follows:
//
//   take a number ──► in history? ──yes──► return the recorded value, or throw the recorded error
//                          └──no──► may the run go on? ──► an effect waits for the barrier ──► body ──► checkpoint
//
// What differs is how the checkpoint gets written:
//
//   own        on its own: sent at once, not awaited. It holds what the body returned or threw.
//   joined     as part of another write (a message, an event, a child, a receipt …), which the body makes. What the body
//              throws is not recorded, unless it says so.
//   elsewhere  a data source may hold the outcome already. The body says how durable it is, and the checkpoint follows
//              from that.
import { invariant } from '../../base/assert.js';
import type { RoundTrip } from '../../codec/codec.js';
import { andThen, type MaybePromise } from '../../codec/maybe-promise.js';
import { PORTABLE_FORMAT } from '../../codec/serializer.js';
import type { StepRecord } from '../../model/records.js';
import type { StoredMessage } from '../../store/messaging/messages.js';
import type { Checkpoint } from '../../store/runs/steps.js';
import type { RecordOptions, Run, VerdictOf } from './run.js';

/** What is special about an operation. */
export interface Operation<R> {
  readonly name: string;
  /** The number, if the caller had to reserve it earlier. Default: the next one, taken before any await. */
  readonly stepID?: number;
  /** Whether others can see what it does. Then everything before it must be durable first. */
  readonly isEffect: boolean;
  /**
   * How an outcome is encoded. `named`: by the configured serializer, whose name is stored with it; `portable`: values as
   * JSON that every program reads. Default: by the configured serializer, without its name.
   */
  readonly format?: 'named' | 'portable';
  /** The workflow that the operation is about. */
  readonly childWorkflowID?: string;
  /** When it counts as completed. Default: when its checkpoint is written. */
  readonly completedAt?: number;
  /** Makes the value from a record. Default: decodes its output. */
  readonly read?: (record: StepRecord) => R;
}

/** The body of an operation, and how its checkpoint gets written. */
export type Strategy<R> =
  | { readonly kind: 'own'; readonly body: () => Promise<R> }
  | { readonly kind: 'joined' | 'elsewhere'; readonly body: (step: ActiveStep) => Promise<R> };

/** Runs an operation in workflow code, or replays it. */
export async function perform<R>(run: Run, operation: Operation<R>, strategy: Strategy<R>): Promise<R> {
  const { name, isEffect, read, stepID = run.nextStepID() } = operation;
  const record = run.replay(stepID, name);
  run.check();
  if (record) return (await replayOutcome(run, record, read)) as R;
  if (isEffect) await run.barrier();
  const step = new ActiveStep(run, stepID, operation);
  if (strategy.kind !== 'own') {
    const value = await strategy.body(step);
    invariant(strategy.kind === 'elsewhere' || step.hasCheckpoint, `operation "${name}" made no checkpoint`);
    return value;
  }
  // In this very function: another async one around each step would show in its cost.
  try {
    const value = await strategy.body();
    run.check();
    return (await step.recordValue(value)) as R;
  } catch (error) {
    return step.fail(error);
  }
}

/** Returns the recorded value or throws the recorded error. */
export async function replayOutcome(
  { engine: { codec } }: Run,
  record: StepRecord,
  read?: (record: StepRecord) => unknown,
): Promise<unknown> {
  if (record.error !== null) throw await codec.decodeError(record.error, record.serialization);
  return read ? read(record) : codec.decodeValue(record.output, record.serialization);
}

/** A checkpoint of its own, for a value or an error alike. Gives the copy that a replay would give. */
export function own<R>(body: () => Promise<R>): Strategy<R> {
  return { kind: 'own', body };
}

/** The body writes the checkpoint together with something else: `commit` or `follow` that write, or `record`. */
export function joined<R>(body: (step: ActiveStep) => Promise<R>): Strategy<R> {
  return { kind: 'joined', body };
}

/** How an operation has ended. */
export type StepOutcome =
  { readonly kind: 'value'; readonly value: unknown } | { readonly kind: 'error'; readonly error: unknown };

/** Where an outcome is kept by the time the data source hands it over. */
export type Durability =
  /** The checkpoint is in the system database: it was committed with the transaction. */
  | 'checkpointed'
  /** A completion record in the data source. Whatever happens to the checkpoint, the outcome is found there. */
  | 'recorded'
  /** Nowhere: the transaction has changed nothing. */
  | 'none'
  /** A plugin with a protocol of its own does not say. */
  | 'unknown';

export interface KeptOutcome {
  readonly outcome: StepOutcome;
  readonly durability: Durability;
}

/** A data source runs the body and says what it has kept of the outcome. */
export function elsewhere(body: (step: ActiveStep) => Promise<KeptOutcome>): Strategy<unknown> {
  return { kind: 'elsewhere', body: (step) => settle(step, body) };
}

async function settle(step: ActiveStep, body: (step: ActiveStep) => Promise<KeptOutcome>): Promise<unknown> {
  let durability: Durability = 'unknown';
  try {
    const kept = await body(step);
    durability = kept.durability;
    if (kept.outcome.kind === 'error') throw kept.outcome.error;
    step.run.check();
    const { value } = kept.outcome;
    if (durability === 'checkpointed') return (await step.encode(value)).value;
    return await step.recordValue(value, { isKeptElsewhere: durability === 'recorded' });
  } catch (error) {
    if (durability !== 'checkpointed') return step.fail(error, { isKeptElsewhere: durability === 'recorded' });
    step.run.check();
    throw error;
  }
}

/** The part of an operation that its checkpoint is made from. */
type Described = Pick<Operation<unknown>, 'name' | 'format' | 'childWorkflowID' | 'completedAt'>;

/** What a checkpoint holds besides its step's number, name and times. */
type Stored = Partial<Pick<StepRecord, 'output' | 'error' | 'serialization' | 'childWorkflowID'>>;

/** Plain JSON. Default: null, for an operation that gives nothing. */
export function portable(json = 'null'): { readonly output: string; readonly serialization: string } {
  return { output: json, serialization: PORTABLE_FORMAT };
}

/** A text that is encoded already. */
export function encodedAs({ text, serialization }: Pick<StoredMessage, 'text' | 'serialization'>): Stored {
  return { output: text, serialization };
}

/** An operation that is being run for the first time, as far as its checkpoint is concerned. */
export class ActiveStep {
  readonly #operation: Described;
  readonly #startedAt: number;
  #encoded: { readonly of: unknown; readonly roundTrip: RoundTrip } | undefined;
  #hasCheckpoint = false;

  constructor(
    readonly run: Run,
    readonly stepID: number,
    operation: Described,
  ) {
    this.#operation = operation;
    this.#startedAt = run.engine.clock.now();
  }

  get name(): string {
    return this.#operation.name;
  }

  /** Whether a checkpoint was made: a joined operation must write one. */
  get hasCheckpoint(): boolean {
    return this.#hasCheckpoint;
  }

  /** The checkpoint, to be written together with what it is about. */
  checkpoint(stored: Stored): Checkpoint {
    return this.run.checkpoint(this.#recordOf(stored));
  }

  /** Follows a write that contains the checkpoint. Call it with the submission: the barrier waits for the last write. */
  follow<V>(written: Promise<V>, verdictOf: VerdictOf<V>): void {
    this.run.follow(written, verdictOf, this.stepID);
  }

  /** Follows the write and awaits it. Throws if it failed, or the workflow is lost. */
  commit<V>(written: Promise<V>, verdictOf: VerdictOf<V>): Promise<V> {
    return this.run.commit(written, verdictOf, this.stepID);
  }

  /** Sends a checkpoint of its own. */
  record(stored: Stored, options?: RecordOptions): void {
    this.run.record(this.#recordOf(stored), options);
  }

  /** Sends the checkpoint of a value, and gives the copy that the workflow goes on with. */
  recordValue(value: unknown, options?: RecordOptions): MaybePromise<unknown> {
    return andThen(this.encode(value), ({ text, serialization, value: copy }) => {
      this.record({ output: text, serialization: this.#operation.format ? serialization : null }, options);
      return copy;
    });
  }

  /** Records the error as the outcome and throws it. The end of the run is not an outcome. */
  async fail(error: unknown, options?: RecordOptions): Promise<never> {
    this.run.check();
    const { text, serialization } = await this.run.engine.codec.encodeError(error);
    const isNamed = this.#operation.format === 'named';
    this.record({ error: text, serialization: isNamed ? serialization : null }, options);
    throw error;
  }

  /** The text of a value and the copy that the workflow goes on with. The same value is encoded once. */
  encode(value: unknown): MaybePromise<RoundTrip> {
    if (this.#encoded && this.#encoded.of === value) return this.#encoded.roundTrip;
    const { format, name } = this.#operation;
    // The path is named in the message about a function that got lost in a value of the user's.
    const options = format === 'portable' ? { format } : { path: format ? [name] : [] };
    return andThen(this.run.engine.codec.roundTripValue(value, options), (roundTrip) => {
      this.#encoded = { of: value, roundTrip };
      return roundTrip;
    });
  }

  /** A run that was stopped records nothing more. */
  #recordOf(stored: Stored) {
    const { run, stepID, name } = this;
    run.check();
    this.#hasCheckpoint = true;
    return {
      stepID,
      name,
      output: null,
      error: null,
      childWorkflowID: this.#operation.childWorkflowID ?? null,
      serialization: null,
      startedAt: this.#startedAt,
      completedAt: this.#operation.completedAt ?? run.engine.clock.now(),
      ...stored,
    };
  }
}
