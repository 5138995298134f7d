// A step that runs in a transaction of the application's database, as a data source sees it: who it is, whether its run
// still owns the workflow, and how its outcome is written down. What a data source does with it is left to the kit.
import type { Clock } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import type { Codec, RoundTrip } from '../../codec/codec.js';
import type { StepRecord } from '../../model/records.js';
import { joinedCheckpoint, type Query, type Rendered } from '../../store/transactions/shared-database.js';
import { loadSteps } from '../../store/runs/steps.js';
import type { Run, RunStep } from '../runs/run.js';
import { replayOutcome } from '../runs/step.js';

/** How a step has ended. */
export type TransactionOutcome =
  { readonly kind: 'value'; readonly value: unknown } | { readonly kind: 'error'; readonly error: unknown };

export class TransactionStep {
  readonly workflowID: string;
  readonly stepID: number;
  readonly name: string;
  readonly #run: Run;
  readonly #startedAt: number;
  #encoded: { readonly of: unknown; readonly roundTrip: RoundTrip } | undefined;
  #isRecorded = false;
  #leavesRecord = true;
  #isKept = false;
  #begunAt = 0;

  constructor(run: Run, { stepID, name }: { readonly stepID: number; readonly name: string }) {
    this.workflowID = run.workflowID;
    this.stepID = stepID;
    this.name = name;
    this.#run = run;
    this.#startedAt = run.engine.clock.now();
  }

  /** Nobody can have run this step before. */
  get isFirstRun(): boolean {
    return this.#run.isFirst;
  }

  get codec(): Codec {
    return this.#run.engine.codec;
  }

  get clock(): Clock {
    return this.#run.engine.clock;
  }

  get logger(): DLogger {
    return this.#run.engine.logger;
  }

  /** Aborts when the run may not go on. */
  get signal(): AbortSignal {
    return this.#run.signal;
  }

  /** The step's checkpoint stands in the system database already. */
  get isRecorded(): boolean {
    return this.#isRecorded;
  }

  /** The data source keeps a record of the step, to be removed when the workflow has ended. */
  get leavesRecord(): boolean {
    return this.#leavesRecord;
  }

  /** The outcome can be had from the data source, whatever becomes of the checkpoint. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** The outcome is durable with the data source. */
  onKept(): void {
    this.#isKept = true;
  }

  /** A transaction of the step has begun. */
  onBegun(): void {
    this.#begunAt = this.clock.now();
  }

  /** How long ago that was. */
  get transactionAgeMs(): number {
    return this.clock.now() - this.#begunAt;
  }

  /** The step is tried again: what it did before may take effect late. */
  onRepeated(): void {
    this.#run.noteRival();
  }

  /** The data source keeps no record of this step. */
  leaveNoRecord(): void {
    this.#leavesRecord = false;
  }

  /** Throws if the run may not go on. */
  check(): void {
    this.#run.check();
  }

  /** Resolves when everything is durable that the step rests on. */
  barrier(): Promise<void> {
    return this.#run.barrier();
  }

  /** The same for a transaction that is about to commit. */
  barrierOfCommit(): Promise<void> {
    return this.#run.barrierOfCommit();
  }

  /** One look whether the workflow is still this run's. If it is not, the run is stopped, and its reason thrown. */
  async assertOwned(): Promise<void> {
    this.check();
    if (await this.#run.engine.transactions.owns(this.#run)) return;
    this.#run.stop(await this.#run.whyLost());
    this.check();
  }

  /** The text of a value and the copy that the workflow goes on with. */
  async encode(value: unknown): Promise<RoundTrip> {
    if (!this.#encoded || this.#encoded.of !== value) {
      this.#encoded = { of: value, roundTrip: await this.codec.roundTripValue(value, { path: [this.name] }) };
    }
    return this.#encoded.roundTrip;
  }

  /** Whether a data source works on the system database itself, and may write to it. */
  isSharedWith(source: object, query: Query): Promise<boolean> {
    return this.#run.engine.transactions.isShared(source, query);
  }

  /**
   * The statement that writes the checkpoint of a value in a transaction of the application's, guarded by ownership. It
   * gives no row if it has not written: the workflow is lost, or the step has a checkpoint.
   */
  async joined(value: unknown): Promise<Rendered> {
    const { text: output, serialization } = await this.encode(value);
    const checkpoint = this.#run.checkpoint(this.record({ output, error: null, serialization }));
    return joinedCheckpoint(this.#run.engine.store.database, checkpoint);
  }

  /** The transaction that the checkpoint has joined is durable. */
  onJoined(): void {
    this.#isRecorded = true;
    this.leaveNoRecord();
  }

  /** The outcome of this step that stands in the system database, waited for while that is away. */
  async findCheckpoint(): Promise<TransactionOutcome | undefined> {
    const { engine } = this.#run;
    const steps = await engine.retrying(() => loadSteps(engine.store.database, [this.workflowID]));
    const found = steps.find(({ stepID }) => stepID === this.stepID);
    if (!found) return undefined;
    this.#isRecorded = true;
    return outcomeOf(this.#run, found);
  }

  /** The checkpoint of the step with this outcome. */
  record(result: Pick<StepRecord, 'output' | 'error' | 'serialization'>): RunStep {
    const { stepID, name } = this;
    const times = { startedAt: this.#startedAt, completedAt: this.clock.now() };
    return { stepID, name, childWorkflowID: null, ...times, ...result };
  }
}

async function outcomeOf(run: Run, record: StepRecord): Promise<TransactionOutcome> {
  try {
    return { kind: 'value', value: await replayOutcome(run, record) };
  } catch (error) {
    return { kind: 'error', error };
  }
}
