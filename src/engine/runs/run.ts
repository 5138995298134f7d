// One execution of a workflow in this process. A run numbers its operations, looks them up in its history, sends
// checkpoints, and holds back every effect until all that it depends on is durable. perform.ts is the protocol on top.
//
//   running ──outcome recorded──► done
//   running ──token gone, cancelled, or not storable──► stopped: every further operation throws the reason
import type { StepRecord, WorkflowRecord } from '../../model/records.js';
import {
  DBOSError,
  DBOSNonExistentWorkflowError,
  DBOSStepNondeterminismError,
  DBOSUnexpectedStepError,
  DBOSWorkflowCancelledError,
  DBOSWorkflowConflictError,
} from '../../model/errors/errors.js';
import type { Checkpoint } from '../../store/runs/steps.js';
import { findWorkflows } from '../../store/runs/workflows.js';
import type { CheckpointVerdict } from '../../store/writer/writer-verdicts.js';
import type { Runtime } from '../runtime.js';
import { Inbox } from '../messaging/inbox.js';
import type { WorkflowRegistration } from '../registration/registry.js';
import { RunStreams } from '../messaging/run-streams.js';
import type { DataSourceTransactionHandler } from '../transactions/data-source-handler.js';

/** A checkpoint as the run's operations write it. */
export type RunStep = Omit<StepRecord, 'workflowID' | 'applicationName'>;

export interface RecordOptions {
  /** A data source keeps the outcome as well, so that transactions need not wait for the checkpoint. */
  readonly isKeptElsewhere?: boolean;
  /** Nothing depends on it, so its commit need not wait for the disk. A crash of the server may undo it. */
  readonly relaxed?: boolean;
}

/** What happened to the checkpoint in a write; undefined if it was not part of it after all. */
export type VerdictOf<V> = (verdict: V) => CheckpointVerdict | undefined;

/** For writes that belong to no operation, such as a message sent by a step. */
const NO_STEP = -1;

export interface RunOptions {
  readonly runtime: Runtime;
  readonly registration: WorkflowRegistration;
  readonly workflowID: string;
  /** The fencing token under which this run owns the workflow. */
  readonly owner: string;
  /** What an earlier run has recorded; undefined for a fresh workflow. */
  readonly history?: ReadonlyMap<number, StepRecord>;
  readonly deadlineAt: number | null;
  readonly isPortable: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
}

export class Run {
  readonly runtime: Runtime;
  readonly registration: WorkflowRegistration;
  readonly workflowID: string;
  readonly owner: string;
  readonly isPortable: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
  /** By the database's clock; set late for a run that begins before its row is durable. */
  deadlineAt: number | null;
  /** Called when the run begins to wait for others, and when it goes on. */
  onWaiting: ((isWaiting: boolean) => void) | undefined;
  readonly streams = new RunStreams(this);
  #inbox: Inbox | undefined;
  #dataSources: Set<DataSourceTransactionHandler> | undefined;
  readonly #history: ReadonlyMap<number, StepRecord> | undefined;
  #stopReason: Error | undefined;
  /** Created on first use: most runs never need a signal. */
  #controller: AbortController | undefined;
  #nextStepID = 0;
  /** How many waits for others are in progress. */
  #waits = 0;
  #isStored = true;
  #lastWrite: Promise<void> | undefined;
  /** The last write whose outcome no data source keeps. */
  #lastOwnWrite: Promise<void> | undefined;
  #mayHaveConcurrentOwner: boolean;

  constructor(options: RunOptions) {
    this.runtime = options.runtime;
    this.registration = options.registration;
    this.workflowID = options.workflowID;
    this.owner = options.owner;
    this.deadlineAt = options.deadlineAt;
    this.isPortable = options.isPortable;
    this.queueName = options.queueName;
    this.partitionKey = options.partitionKey;
    this.#history = options.history;
    this.#mayHaveConcurrentOwner = options.history !== undefined;
  }

  /** Aborts when the run is stopped: cancelled, taken over, or not storable. */
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

  get inbox(): Inbox {
    this.#inbox ??= new Inbox();
    return this.#inbox;
  }

  /** The data sources that may hold records of this workflow's steps. */
  get dataSources(): ReadonlySet<DataSourceTransactionHandler> | undefined {
    return this.#dataSources;
  }

  noteDataSource(handler: DataSourceTransactionHandler): void {
    this.#dataSources ??= new Set();
    this.#dataSources.add(handler);
  }

  /** True for the first run of a workflow that was just created: nothing of it can have been recorded before. */
  get isFirst(): boolean {
    return this.#history === undefined;
  }

  /** A former owner, or a transaction on a lost connection, may still commit a transaction of this workflow. */
  get mayHaveConcurrentOwner(): boolean {
    return this.#mayHaveConcurrentOwner;
  }

  suspectConcurrentOwner(): void {
    this.#mayHaveConcurrentOwner = true;
  }

  /** Reserves the number of an operation. Call it before any await, so that numbers follow the program's order. */
  nextStepID(): number {
    const stepID = this.#nextStepID;
    this.#nextStepID += 1;
    return stepID;
  }

  /** The number that the next operation will get. */
  get upcomingStepID(): number {
    return this.#nextStepID;
  }

  /** The record under a number, whatever its name. */
  recordAt(stepID: number): StepRecord | undefined {
    return this.#history?.get(stepID);
  }

  /** The record of an operation. A record of another name means that the workflow is not deterministic. */
  replay(stepID: number, name: string): StepRecord | undefined {
    const record = this.#history?.get(stepID);
    if (record && record.name !== name) {
      throw new DBOSUnexpectedStepError(this.workflowID, stepID, name, record.name);
    }
    return record;
  }

  /** Throws if the run may not go on. */
  check(): void {
    if (this.#stopReason) throw this.#stopReason;
  }

  stop(reason: Error): void {
    if (this.#stopReason) return;
    this.#stopReason = reason;
    this.#controller?.abort(reason);
  }

  /** Waits for something that does not run in this run. Meanwhile it takes no slot in this process. */
  async waitFor<T>(promise: Promise<T>): Promise<T> {
    this.#waits += 1;
    if (this.#waits === 1) this.onWaiting?.(true);
    try {
      return await promise;
    } finally {
      this.#waits -= 1;
      if (this.#waits === 0) this.onWaiting?.(false);
    }
  }

  /** Resolves when everything recorded so far is durable. No effect may leave the run before. */
  async barrier(): Promise<void> {
    if (this.#lastWrite) await this.#lastWrite;
    this.check();
  }

  /**
   * The barrier of a transaction that is about to commit: resolves when everything is durable that no data source keeps.
   * What else the transaction depends on was committed with a completion record.
   */
  async commitBarrier(): Promise<void> {
    if (this.#lastOwnWrite) await this.#lastOwnWrite;
    this.check();
  }

  /** Settles with the last write, whether it succeeds or not. Items are written in order: when it is durable, all are. */
  get lastWrite(): Promise<void> | undefined {
    return this.#lastWrite;
  }

  /** False while the workflow's own row is in flight: until then, a missing row does not mean that it is lost. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** Makes the barrier wait for a write that is not a checkpoint: the workflow's own row. */
  holdBack(write: Promise<void>): void {
    this.#isStored = false;
    this.#track(
      write.then(() => {
        this.#isStored = true;
      }),
    );
  }

  /** Sends a checkpoint. It is durable when the next barrier has been passed. */
  record(step: RunStep, { isKeptElsewhere = false, relaxed = false }: RecordOptions = {}): void {
    const written = this.runtime.store.writer.checkpoint(this.checkpoint(step), { relaxed });
    const ownBefore = this.#lastOwnWrite;
    this.#track(written.then((verdict) => this.#heed(verdict, step.stepID)));
    if (isKeptElsewhere) this.#lastOwnWrite = ownBefore;
  }

  /** A checkpoint of this run, to be written together with what it is about. */
  checkpoint(step: RunStep): Checkpoint {
    const record = { ...step, workflowID: this.workflowID, applicationName: this.runtime.applicationName };
    return { owner: this.owner, step: record };
  }

  /**
   * Makes the barrier wait for a write that was just submitted, and stops the run if it is refused. Must be called in the
   * same turn as the submission, so that the last write that is followed is the last one in the writer.
   */
  follow<V>(written: Promise<V>, verdictOf: VerdictOf<V>, stepID = NO_STEP): void {
    this.#track(written.then((verdict) => this.#heed(verdictOf(verdict), stepID)));
  }

  /** Follows the write and awaits it. Throws if it failed, or the workflow is lost. */
  async commit<V>(written: Promise<V>, verdictOf: VerdictOf<V>, stepID = NO_STEP): Promise<V> {
    this.follow(written, verdictOf, stepID);
    const verdict = await written;
    if (verdictOf(verdict) === 'lost') await this.barrier();
    return verdict;
  }

  #track(write: Promise<void>): void {
    const settled = write.catch((error: unknown) => this.stop(error as Error));
    this.#lastWrite = settled;
    this.#lastOwnWrite = settled;
  }

  async #heed(verdict: CheckpointVerdict | undefined, stepID: number): Promise<void> {
    if (verdict === 'conflict') this.stop(new DBOSStepNondeterminismError(this.workflowID, stepID));
    else if (verdict === 'lost') this.stop(await this.whyLost());
    else if (verdict === 'refused') this.stop(goneError(this.workflowID, stepID));
  }

  /** Whether this run still owns the workflow, although it was stopped. */
  async tryToOwn(): Promise<'owned' | 'lost'> {
    return this.#isOwnerOf(await this.#look()) ? 'owned' : 'lost';
  }

  /** Why this run no longer owns the workflow. */
  async whyLost(): Promise<Error> {
    const workflow = await this.#look();
    return this.lossIn(workflow) ?? new DBOSWorkflowConflictError(this.workflowID);
  }

  /** Why this run does not own the workflow in its current state; undefined if it does. */
  lossIn(workflow: WorkflowRecord | undefined): Error | undefined {
    if (!workflow) return new DBOSNonExistentWorkflowError(`Workflow ${this.workflowID} does not exist`);
    if (this.#isOwnerOf(workflow)) return undefined;
    if (workflow.status === 'CANCELLED') return new DBOSWorkflowCancelledError(this.workflowID);
    return new DBOSWorkflowConflictError(this.workflowID);
  }

  #isOwnerOf(workflow: WorkflowRecord | undefined): boolean {
    return workflow?.status === 'PENDING' && workflow.owner === this.owner;
  }

  async #look(): Promise<WorkflowRecord | undefined> {
    const { runtime, workflowID } = this;
    return (await runtime.retrying(() => findWorkflows(runtime.store.database, [workflowID])))[0];
  }
}

function goneError(workflowID: string, stepID: number): Error {
  return new DBOSError(
    `The message that step ${stepID} of workflow "${workflowID}" has received is not in the database any more. ` +
      'Somebody has removed it by hand, or the database was set back. Resume the workflow or fork it from this step.',
  );
}
