// One execution of a workflow in this process. A run numbers its steps, replays what history holds, sends checkpoints,
// and holds every effect back until all that it rests on is durable.
//
//   running ──outcome recorded──► done
//   running ──token gone, cancelled, or not storable──► stopped: every further operation throws the reason
import type { StepRecord, WorkflowRecord } from '../../model/records.js';
import {
  DBOSNonExistentWorkflowError,
  DBOSStepNondeterminismError,
  DBOSUnexpectedStepError,
  DBOSWorkflowCancelledError,
  DBOSWorkflowConflictError,
  MessageLostError,
} from '../../model/errors/errors.js';
import type { Checkpoint } from '../../store/runs/steps.js';
import { findWorkflows } from '../../store/runs/workflows.js';
import type { ChildStart, ChildVerdict } from '../../store/writer/write-group.js';
import type { CheckpointVerdict } from '../../store/writer/writer-verdicts.js';
import type { Engine } from '../engine.js';
import { Inbox } from '../messaging/inbox.js';
import type { WorkflowRegistration } from '../registration/registry.js';
import { RunStreams } from '../messaging/run-streams.js';
import type { DataSourceTransactionHandler } from '../transactions/transactions.js';

/** A checkpoint as the run's operations write it. */
export type RunStep = Omit<StepRecord, 'workflowID' | 'applicationName'>;

export interface RecordOptions {
  /** A data source keeps the outcome as well. */
  readonly isKeptElsewhere?: boolean;
  /** Nothing rests on it: a crash of the server may take it away. */
  readonly mayBeLost?: boolean;
}

export interface RunOptions {
  readonly engine: Engine;
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
  readonly engine: Engine;
  readonly registration: WorkflowRegistration;
  readonly workflowID: string;
  readonly owner: string;
  readonly isPortable: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
  /** By the database's clock; set late for a run that begins before its row is durable. */
  deadlineAt: number | null;
  readonly streams = new RunStreams(this);
  #inbox: Inbox | undefined;
  #dataSources: Set<DataSourceTransactionHandler> | undefined;
  readonly #history: ReadonlyMap<number, StepRecord> | undefined;
  #stopReason: Error | undefined;
  /** Made when somebody asks for the signal; most runs are never asked. */
  #controller: AbortController | undefined;
  #nextStepID = 0;
  /** How many waits for others are under way. */
  #waits = 0;
  #isStored = true;
  #lastWrite: Promise<void> | undefined;
  /** The last one of those that nobody else keeps. */
  #lastOwnWrite: Promise<void> | undefined;
  #hasRivals: boolean;

  constructor(options: RunOptions) {
    this.engine = options.engine;
    this.registration = options.registration;
    this.workflowID = options.workflowID;
    this.owner = options.owner;
    this.deadlineAt = options.deadlineAt;
    this.isPortable = options.isPortable;
    this.queueName = options.queueName;
    this.partitionKey = options.partitionKey;
    this.#history = options.history;
    this.#hasRivals = options.history !== undefined;
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

  /** A former owner, or a lost connection, may still do what a transaction of this workflow does. */
  get hasRivals(): boolean {
    return this.#hasRivals;
  }

  noteRival(): void {
    this.#hasRivals = true;
  }

  /** Reserves the number of an operation. To be called before any await, so that numbers follow the program's order. */
  nextStepID(): number {
    const stepID = this.#nextStepID;
    this.#nextStepID += 1;
    return stepID;
  }

  /** The number that the next operation will get. */
  get upcomingStepID(): number {
    return this.#nextStepID;
  }

  /** What history holds for a number, whatever its name. */
  recordAt(stepID: number): StepRecord | undefined {
    return this.#history?.get(stepID);
  }

  /** What history holds for an operation. Another name there means that the workflow is not deterministic. */
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

  /** Waits for something that others do. */
  async waitFor<T>(promise: Promise<T>): Promise<T> {
    this.#waits += 1;
    if (this.#waits === 1) this.engine.onWaiting(this, true);
    try {
      return await promise;
    } finally {
      this.#waits -= 1;
      if (this.#waits === 0) this.engine.onWaiting(this, false);
    }
  }

  /** Resolves when everything recorded so far is durable. Nothing may leave the run before. */
  async barrier(): Promise<void> {
    if (this.#lastWrite) await this.#lastWrite;
    this.check();
  }

  /**
   * Resolves when everything is durable that no data source keeps. A transaction may commit then: whatever else it rests
   * on was committed with a record of its own.
   */
  async barrierOfCommit(): Promise<void> {
    if (this.#lastOwnWrite) await this.#lastOwnWrite;
    this.check();
  }

  /** Settles with the last write, whether it succeeds or not. Items are written in order: when it is durable, all are. */
  get lastWrite(): Promise<void> | undefined {
    return this.#lastWrite;
  }

  /** False while the workflow's own row is on its way: until then, not to be found does not mean to be lost. */
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

  /** Sends a checkpoint on its way. It is durable at the latest when the next barrier is passed. */
  record(step: RunStep, { isKeptElsewhere = false, mayBeLost = false }: RecordOptions = {}): void {
    const written = this.engine.store.writer.checkpoint(this.checkpoint(step), { mayBeLost });
    const ownBefore = this.#lastOwnWrite;
    this.#track(written.then((verdict) => this.#heed(verdict, step.stepID)));
    if (isKeptElsewhere) this.#lastOwnWrite = ownBefore;
  }

  /** A checkpoint of this run, to be written together with what it speaks of. */
  checkpoint(step: RunStep): Checkpoint {
    const record = { ...step, workflowID: this.workflowID, applicationName: this.engine.config.name };
    return { owner: this.owner, step: record };
  }

  /** Follows an effect that is on its way through the writer. The barrier waits for it. */
  follow<V>(written: Promise<V>, stepID: number, verdictOf: (verdict: V) => CheckpointVerdict | undefined): void {
    this.#track(written.then((verdict) => this.#heed(verdictOf(verdict), stepID)));
  }

  /** The same, and waits for it. Throws if it could not be written, or the workflow is lost. */
  async commit<V>(
    written: Promise<V>,
    stepID: number,
    verdictOf: (verdict: V) => CheckpointVerdict | undefined,
  ): Promise<V> {
    this.follow(written, stepID, verdictOf);
    const verdict = await written;
    if (verdictOf(verdict) === 'lost') await this.barrier();
    return verdict;
  }

  /** Creates a child workflow together with this run's record of it. */
  async recordChild(child: ChildStart): Promise<ChildVerdict['start']> {
    const written = this.engine.store.writer.startChild(child);
    this.#track(
      written.then(({ start, checkpoint }) =>
        start.kind === 'exists' || start.kind === 'duplicated'
          ? undefined
          : this.#heed(checkpoint, child.checkpoint.step.stepID),
      ),
    );
    const { start } = await written;
    if (start.kind === 'orphaned') await this.barrier();
    return start;
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

  /** Whether the workflow is still this run's, although it was stopped. */
  async tryToOwn(): Promise<'owned' | 'lost'> {
    return this.#isOwnerOf(await this.#look()) ? 'owned' : 'lost';
  }

  /** Why the workflow is not this run's any more. */
  async whyLost(): Promise<Error> {
    const workflow = await this.#look();
    return this.lossIn(workflow) ?? new DBOSWorkflowConflictError(this.workflowID);
  }

  /** Why the workflow, as it is now, is not this run's; undefined if it is. */
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
    const { engine, workflowID } = this;
    return (await engine.retrying(() => findWorkflows(engine.store.database, [workflowID])))[0];
  }
}

function goneError(workflowID: string, stepID: number): Error {
  return new MessageLostError(workflowID, stepID);
}
