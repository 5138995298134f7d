// One execution of a workflow in this process. A run numbers its operations, looks them up in its history, sends
// checkpoints, and delays every effect until what it depends on is durable. perform.ts is the protocol on top.
//
//   running ──outcome recorded──► halted, as below, as far as its code has not ended
//   running ──cancelled, or a write failed──► stopped: every further operation throws the reason
//   running ──has lost its workflow, diverged from its history, or the engine stops──► halted: the promises that its code
//             awaits never settle
import { andThen, type MaybePromise } from '../kernel/codec/maybe-promise.js';
import type { StepRecord } from '../kernel/workflow/records.js';
import { continuationsOf } from '../kernel/workflow/creator.js';
import { DBOSStepNondeterminismError, DBOSUnexpectedStepError, MessageLostError } from '../kernel/errors/errors.js';
import type { PastAttempts } from './rows/step-attempts.js';
import type { Checkpoint } from './rows/steps.js';
import type { CheckpointVerdict } from './writer/writer-verdicts.js';
import type { Runtime } from './runtime.js';
import type { Standing } from '../features/liveness/lease.run.js';
import { RunStanding } from '../features/liveness/run-standing.run.js';
import { Crossings } from './history/crossings.js';
import type { History } from './history/history.js';
import { findLossReason, isEndOfWorkflow } from './loss.js';
import { Inbox } from '../features/message/inbox.run.js';
import type { WorkflowRegistration } from './registration/registry.js';
import { branchNumbers, Numbers } from './numbers.js';
import { RunWaits } from '../features/parking/run-waits.run.js';
import { addStopReason } from './unhandled-rejections.js';
import { RunJournal } from '../features/history/run-journal.run.js';
import { UnawaitedOperations } from './unawaited-operations.js';
import { RunStreams } from '../features/message/run-streams.run.js';
import type { RunSpans } from './tracing.js';
import type { DataSourceTransactionHandler } from '../plugins/transaction/data-source-handler.run.js';

/** A checkpoint as operations write it. The run adds its own IDs. */
export type RunStep = Omit<StepRecord, 'workflowID' | 'applicationName'>;

export interface RecordOptions {
  /** A data source holds the outcome too, so transactions need not wait for the checkpoint. */
  readonly isKeptElsewhere?: boolean;
  /** The commit need not wait for the disk: nothing depends on it. A server crash may lose it. */
  readonly relaxed?: boolean;
  /** If the workflow is cancelled meanwhile, a resume must not repeat the operation. */
  readonly isEffect?: boolean;
  /** The arguments of a registered step, for its history. */
  readonly args?: readonly unknown[] | undefined;
}

/** What happened to the checkpoint in a write; undefined if the write turned out not to contain one. */
export type VerdictOf<V> = (verdict: V) => CheckpointVerdict | undefined;

/** No code hears of it. */
const ENDED = new Error('The workflow has ended.');

/** For writes that belong to no operation, such as a message sent by a step. */
const NO_STEP = -1;

export interface RunOptions {
  readonly runtime: Runtime;
  readonly registration: WorkflowRegistration;
  readonly workflowID: string;
  /** The owner token of this run. */
  readonly owner: string;
  /** Tells the workflow from others that had its ID before. */
  readonly creator: string;
  /** The checkpoints of earlier runs; undefined for a workflow that was just created here. */
  readonly history?: History;
  readonly deadlineAt: number | null;
  readonly isPortable: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
  /** Before the workflow was created or claimed. */
  readonly standing: Standing;
}

export class Run {
  readonly runtime: Runtime;
  readonly registration: WorkflowRegistration;
  readonly workflowID: string;
  readonly owner: string;
  readonly creator: string;
  readonly isPortable: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
  /** On the monotonic clock. */
  readonly begunAt: number;
  /** By the database's clock. Set late for a run that begins before its row is durable. */
  deadlineAt: number | null;
  /** The failed attempts of steps that earlier runs have left, read once. */
  pastAttempts: Promise<ReadonlyMap<number, PastAttempts>> | undefined;
  /** It has left the process although its code went on. It does not leave again. */
  hasReturned = false;
  /** What the run waits for outside of it. */
  readonly waits: RunWaits;
  readonly journal: RunJournal;
  /** Operations in progress, and those that fail without being awaited. */
  readonly unawaited = new UnawaitedOperations(this);
  /** If spans are made. */
  spans: RunSpans | undefined;
  /** Called when the run is halted: its code may never return. */
  onHalted: (() => void) | undefined;
  /** Whether operations have run side by side. From then on, numbers may depend on timing. */
  #hasBranched = false;
  #crossings: Crossings | undefined;
  #inbox: Inbox | undefined;
  #streams: RunStreams | undefined;
  #dataSources: Set<DataSourceTransactionHandler> | undefined;
  readonly history: History | undefined;
  #stopReason: Error | undefined;
  #isHalted = false;
  /** Created on first use: most runs need no signal. */
  #controller: AbortController | undefined;
  readonly #numbers = new Numbers();
  readonly #standing: RunStanding;
  #isStored = true;
  #insertSubmittedAt: number | undefined;
  #lastRecordedStepID: number | undefined;
  #lastWrite: Promise<void> | undefined;
  /** The last write whose outcome no data source holds. */
  #lastOwnWrite: Promise<void> | undefined;
  #mayHaveConcurrentOwner: boolean;

  constructor(options: RunOptions) {
    this.runtime = options.runtime;
    this.registration = options.registration;
    this.workflowID = options.workflowID;
    this.owner = options.owner;
    this.creator = options.creator;
    this.deadlineAt = options.deadlineAt;
    this.begunAt = options.runtime.clock.monotonic();
    this.isPortable = options.isPortable;
    this.queueName = options.queueName;
    this.partitionKey = options.partitionKey;
    this.history = options.history;
    this.#mayHaveConcurrentOwner = options.history !== undefined;
    this.#standing = new RunStanding(this, options.standing);
    const { history: level, executorID } = options.runtime.config;
    this.journal = new RunJournal({
      level: options.registration.config.history ?? level,
      workflowID: options.workflowID,
      owner: options.owner,
      executorID,
    });
    this.waits = new RunWaits(options.runtime.clock);
  }

  /** What the IDs of its children begin with. A workflow that continues as new counts from 0 again, so it has another one. */
  get childPrefix(): string {
    const continuations = continuationsOf(this.creator);
    return continuations === 0 ? this.workflowID : `${this.workflowID}-again${continuations}`;
  }

  /** How long a wait has to be for the run to leave the process; Infinity: it never does. */
  get parkAfterMs(): number {
    return (this.registration.config.parkAfterMs ?? this.runtime.config.parkAfterMs) || Infinity;
  }

  /** Aborts when the run is stopped or halted. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#stopReason) this.#controller.abort(this.#stopReason);
    }
    return this.#controller.signal;
  }

  get stopReason(): Error | undefined {
    return this.#stopReason;
  }

  get hasEnded(): boolean {
    return this.#stopReason === ENDED;
  }

  /**
   * Whether the run was stopped for a reason that its code must not hear of. The workflow continues in another run, waits
   * for an operator, or is gone: code that caught the reason would undo what is not to be undone.
   */
  get isHalted(): boolean {
    return this.#isHalted;
  }

  /** Whether an operation that is called now may get a number that depends on timing. */
  mayCross(stepID: number): boolean {
    this.#hasBranched ||=
      this.waits.operations > 0 || this.unawaited.isBeside(stepID) || (this.history?.replaying ?? 0) > 0;
    return this.#hasBranched;
  }

  get crossings(): Crossings {
    this.#crossings ??= new Crossings(this);
    return this.#crossings;
  }

  get inbox(): Inbox {
    this.#inbox ??= new Inbox();
    return this.#inbox;
  }

  get streams(): RunStreams {
    this.#streams ??= new RunStreams(this);
    return this.#streams;
  }

  /** The data sources that may hold completion records of this workflow. */
  get dataSources(): ReadonlySet<DataSourceTransactionHandler> | undefined {
    return this.#dataSources;
  }

  trackDataSource(handler: DataSourceTransactionHandler): void {
    this.#dataSources ??= new Set();
    this.#dataSources.add(handler);
  }

  /** True for the run of a workflow that was just created here: no checkpoint or completion record can exist. */
  get isFirst(): boolean {
    return this.history === undefined;
  }

  /** Whether a former owner, or a transaction on a lost connection, may still commit a step of this workflow. */
  get mayHaveConcurrentOwner(): boolean {
    return this.#mayHaveConcurrentOwner;
  }

  suspectConcurrentOwner(): void {
    this.#mayHaveConcurrentOwner = true;
  }

  /** Reserves the number of an operation. Call it before any await, so that numbers follow program order. */
  nextStepID(): number {
    return this.#currentNumbers.take();
  }

  /** Reserves several numbers and returns the first of them. */
  reserveStepIDs(count: number): number {
    return this.#currentNumbers.take(count);
  }

  /** The number that the next operation will get. */
  get upcomingStepID(): number {
    return this.#currentNumbers.upcoming;
  }

  /** Those of the branch that the code is in, or of the workflow function itself. */
  get #currentNumbers(): Numbers {
    return branchNumbers(this) ?? this.#numbers;
  }

  /** The checkpoint under a number, whatever its name. */
  recordAt(stepID: number): StepRecord | undefined {
    return this.history?.at(stepID);
  }

  /**
   * Whether earlier code has passed the upcoming number: a later one of the same branch is recorded. The operation under
   * it may have been in flight beside that one, or may record nothing.
   */
  get hasPassedUpcoming(): boolean {
    const { upcoming, end } = this.#currentNumbers;
    return this.history?.hasBetween(upcoming, end) ?? false;
  }

  /** The checkpoint of an operation. One with another name means that the run has diverged, and ends it. */
  replay(stepID: number, name: string): StepRecord | undefined {
    const record = this.history?.at(stepID);
    if (record && record.name !== name) this.diverge(stepID, name, record.name);
    this.history?.pass(stepID);
    return record;
  }

  /** Ends the run, whose code calls something else than what is recorded under the number. */
  diverge(
    stepID: number,
    expectedName: string,
    recorded: ConstructorParameters<typeof DBOSUnexpectedStepError>[3],
  ): never {
    const reason = new DBOSUnexpectedStepError(this.workflowID, stepID, expectedName, recorded);
    this.stop(reason);
    throw this.#stopReason ?? reason;
  }

  /** The code has ended, with the error if it has failed. If it has not used all records, the run has diverged. */
  async endReplay(error?: unknown): Promise<void> {
    const unused = await this.history?.findUnused();
    if (!unused || this.#stopReason) return;
    const { stepID, name } = unused;
    this.stop(new DBOSUnexpectedStepError(this.workflowID, stepID, 'the end of the workflow', { name, cause: error }));
  }

  /** A record that `replay` returned, with its texts. Throws if it was deleted: then the run has lost its workflow. */
  completed(record: StepRecord): MaybePromise<StepRecord> {
    return andThen(this.history?.complete(record), (whole) => whole ?? this.#failDeleted());
  }

  async #failDeleted(): Promise<never> {
    const reason = await findLossReason(this);
    this.stop(reason);
    throw reason;
  }

  /** Throws if the run was stopped. */
  check(): void {
    if (this.#stopReason) throw this.#stopReason;
  }

  stop(reason: Error): void {
    if (isEndOfWorkflow(reason)) this.#stop(reason);
    else this.#halt(reason);
  }

  #stop(reason: Error): void {
    if (this.#stopReason) return;
    addStopReason(reason);
    this.#stopReason = reason;
    this.#controller?.abort(reason);
  }

  #halt(reason: Error): void {
    if (this.#stopReason) return;
    this.#isHalted = true;
    this.#stop(reason);
    this.onHalted?.();
  }

  /** The outcome is recorded, or will not be. What the code has begun and does not await goes no further. */
  end(): void {
    if (this.#stopReason) return;
    this.#isHalted = true;
    this.#stopReason = ENDED;
    this.#controller?.abort(ENDED);
  }

  /** The workflow may be lost without notice: the next effect asks the database first. */
  doubtOwnership(): void {
    this.#standing.doubt();
  }

  /**
   * The durability barrier: resolves when everything written so far is durable and the run may own its workflow. Effects
   * must wait for it.
   */
  async barrier(): Promise<void> {
    if (this.#lastWrite) await this.#lastWrite;
    if (!this.#stopReason && !this.isCertain) await this.#standing.confirm();
    this.check();
  }

  /** The barrier, without a promise if there is nothing to wait for. */
  passBarrier(): MaybePromise<void> {
    return this.#lastWrite || !this.isCertain ? this.barrier() : this.check();
  }

  /** Whether no peer can have recovered the workflow, and no other program has had time to take it. */
  get isCertain(): boolean {
    return this.#standing.isCertain;
  }

  /**
   * The barrier of a transaction that is about to commit. It need not wait for checkpoints that also have a completion
   * record: their outcomes are durable already.
   */
  async commitBarrier(): Promise<void> {
    if (this.#lastOwnWrite) await this.#lastOwnWrite;
    this.check();
  }

  /** Resolves when the last write has settled. Items are written in order: when it is durable, all are. */
  get lastWrite(): Promise<void> | undefined {
    return this.#lastWrite;
  }

  /** False while the insert of the workflow's row is in flight: a missing row does not mean yet that it is lost. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** When the insert of the workflow's row was submitted, on the monotonic clock. Undefined if it was there before the run. */
  get insertSubmittedAt(): number | undefined {
    return this.#insertSubmittedAt;
  }

  /** The last checkpoint that the database has confirmed. If it has that one, it has all before it. */
  get lastRecordedStepID(): number | undefined {
    return this.#lastRecordedStepID;
  }

  /** The database has confirmed the checkpoint. */
  noteRecorded(stepID: number): void {
    this.#lastRecordedStepID = stepID;
  }

  /** Makes the barrier wait for the insert of the workflow's row. */
  followInsert(write: Promise<void>): void {
    this.#isStored = false;
    this.#insertSubmittedAt = performance.now();
    const settled: Promise<void> = write.then(
      () => {
        this.#isStored = true;
        this.#standing.renew();
        this.#untrack(settled);
      },
      // There is no workflow. Whoever started it gets the error.
      (error: unknown) => this.#halt(error as Error),
    );
    this.#track(settled);
  }

  /** Sends a checkpoint. It is durable once the next barrier resolves. */
  record(step: RunStep, { isKeptElsewhere = false, relaxed, isEffect, args }: RecordOptions = {}): void {
    const written = this.runtime.store.writer.checkpoint(this.checkpoint(step, args), { relaxed, isEffect });
    const ownBefore = this.#lastOwnWrite;
    this.follow(written, itself, step.stepID);
    if (isKeptElsewhere) this.#lastOwnWrite = ownBefore;
  }

  /** Records a failed attempt of a step, which is durable once the next barrier resolves. */
  recordRetry(
    step: { readonly stepID: number; readonly name: string },
    failure: { readonly attempt: number; readonly error: unknown; readonly delayMs: number },
  ): void {
    const entry = this.journal.retryScheduled(step, failure);
    if (entry) this.follow(this.runtime.store.writer.journal(entry), itself);
  }

  /** Writes the checkpoint of a step that completed after the run was stopped. Only a resume in this process waits for it. */
  async keep(step: RunStep): Promise<void> {
    const written = this.runtime.store.writer.checkpoint(this.checkpoint(step), { isEffect: true });
    const settled = written.then(
      () => {},
      () => {
        // The step, which awaits it below, gets the error.
      },
    );
    this.#track(settled);
    await written;
  }

  /** A checkpoint of this run, to be part of another write. */
  checkpoint(step: RunStep, args?: readonly unknown[]): Checkpoint {
    // Listed, not spread: this is on the hot path.
    const record: StepRecord = {
      workflowID: this.workflowID,
      stepID: step.stepID,
      name: step.name,
      output: step.output,
      error: step.error,
      childWorkflowID: step.childWorkflowID,
      startedAt: step.startedAt,
      completedAt: step.completedAt,
      serialization: step.serialization,
      applicationName: this.runtime.applicationName,
      argumentsHash: step.argumentsHash ?? null,
    };
    if (!this.journal.isFull) return { owner: this.owner, step: record };
    return { owner: this.owner, step: record, ...this.journal.recorded(step, args) };
  }

  /**
   * Makes the barrier wait for a write that was just submitted, and stops the run if it is refused. Call it without an
   * await after the submission: the barrier only waits for the last write followed, which must be the writer's last.
   */
  follow<V>(written: Promise<V>, verdictOf: VerdictOf<V>, stepID = NO_STEP): void {
    const settled: Promise<void> = written.then(
      (verdict) => this.#applyVerdict(verdictOf(verdict), stepID) ?? this.#untrack(settled),
      (error: unknown) => this.stop(error as Error),
    );
    this.#track(settled);
  }

  /** Follows the write and awaits it. Throws if it failed or the workflow is lost. */
  async commit<V>(written: Promise<V>, verdictOf: VerdictOf<V>, stepID = NO_STEP): Promise<V> {
    this.follow(written, verdictOf, stepID);
    const verdict = await written;
    if (verdictOf(verdict) === 'lost') await this.barrier();
    return verdict;
  }

  /** `settled` resolves when the outcome of a write has been applied. It never rejects. */
  #track(settled: Promise<void>): void {
    this.#lastWrite = settled;
    this.#lastOwnWrite = settled;
  }

  /** Nothing needs to wait for a write that has settled. */
  #untrack(settled: Promise<void>): void {
    if (this.#lastWrite === settled) this.#lastWrite = undefined;
    if (this.#lastOwnWrite === settled) this.#lastOwnWrite = undefined;
  }

  #applyVerdict(verdict: CheckpointVerdict | undefined, stepID: number): Promise<void> | undefined {
    if (verdict === 'recorded') {
      // If the answer took long, the writer has it doubted.
      this.#standing.renew();
      if (stepID !== NO_STEP) this.noteRecorded(stepID);
    }
    if (verdict === 'lost') return this.#stopLost();
    if (verdict === 'conflict') this.stop(new DBOSStepNondeterminismError(this.workflowID, stepID));
    else if (verdict === 'refused') this.stop(new MessageLostError(this.workflowID, stepID));
    return undefined;
  }

  async #stopLost(): Promise<void> {
    try {
      this.stop(await findLossReason(this));
    } catch (error) {
      this.stop(error as Error);
    }
  }
}

function itself(verdict: CheckpointVerdict): CheckpointVerdict {
  return verdict;
}
