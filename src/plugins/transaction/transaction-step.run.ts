// A step that runs in a transaction of the application's database, as a data source sees it: which step it is, whether
// its run still owns the workflow, and what to wait for.
import { sleep } from '../../kernel/base/clock.js';
import type { RoundTrip } from '../../kernel/codec/codec.js';
import { andThen, type MaybePromise } from '../../kernel/codec/maybe-promise.js';
import { topics } from '../../database/notify/topics.js';
import { handBack } from '../../run/rows/lifecycle.js';
import { findSteps } from '../../run/rows/steps.js';
import { joinedCheckpoint, type Query, type Rendered } from '../../database/transactions/shared-database.js';
import type { Runtime } from '../../run/runtime.js';
import type { Transactions } from './transactions.run.js';
import { type ActiveStep, replayOutcome, type StepOutcome } from '../../run/perform.js';
import { findLossReason } from '../../run/loss.js';

export class TransactionStep {
  readonly workflowID: string;
  readonly stepID: number;
  readonly name: string;
  /** The system database. */
  readonly systemID: string;
  /** Tells the workflow from others that had its ID before. */
  readonly creator: string;
  /** True if no earlier run can have recorded this step. */
  readonly isFirstRun: boolean;
  readonly runtime: Pick<Runtime, 'clock' | 'codec' | 'logger'>;
  /** For a data source on the system database itself. */
  readonly joined: JoinedCheckpoint;
  readonly #step: ActiveStep;

  constructor(step: ActiveStep, transactions: Transactions) {
    const { run, stepID, name } = step;
    this.workflowID = run.workflowID;
    this.stepID = stepID;
    this.name = name;
    this.systemID = transactions.systemID;
    this.creator = run.creator;
    this.isFirstRun = run.isFirst;
    this.runtime = run.runtime;
    this.joined = new JoinedCheckpoint(step, transactions);
    this.#step = step;
  }

  /** Resolves when everything that the step depends on is durable. Throws if the run was stopped. */
  async barrier(): Promise<void> {
    await this.#step.run.barrier();
    this.joined.noteBarrier();
  }

  /** The same, without a promise if there is nothing to wait for. */
  passBarrier(): MaybePromise<void> {
    return andThen(this.#step.run.passBarrier(), () => this.joined.noteBarrier());
  }

  /** Throws if the run was halted: its transactions roll back. */
  refuseHalted(): void {
    const { run } = this.#step;
    if (run.isHalted) run.check();
  }

  /** If the run no longer owns the workflow, stops it and throws the reason. */
  async assertOwned(): Promise<void> {
    const { run } = this.#step;
    run.check();
    if (await run.runtime.owners.owns(run)) return;
    run.stop(await findLossReason(run));
    run.check();
  }

  /**
   * Resolves when an open transaction may commit: what it depends on is durable, and its run has owned the workflow at a time
   * after `since`, on the monotonic clock. Throws if it must not. Default: the run owns the workflow now.
   */
  async assertCommitAllowed(since = Infinity): Promise<void> {
    const { run } = this.#step;
    await run.commitBarrier();
    // The insert of the row made the run its owner.
    if ((run.insertSubmittedAt ?? -Infinity) > since) return;
    await this.assertOwned();
  }

  /** The text of a value, and the copy that the workflow continues with. */
  encode(value: unknown): MaybePromise<RoundTrip> {
    return this.#step.encode(value);
  }

  /** Waits before the next attempt. The failed one may still commit late. */
  async waitToRetry(delayMs: number): Promise<void> {
    const { run } = this.#step;
    run.suspectConcurrentOwner();
    await sleep(run.runtime.clock, delayMs, run.signal);
  }
}

/** The checkpoint of a step whose data source is on the system database: it joins the step's transaction. */
export class JoinedCheckpoint {
  readonly #step: ActiveStep;
  readonly #transactions: Transactions;
  /** The last checkpoint that the database has confirmed. A server that was promoted since may lack it. */
  #restsOn: number | undefined;
  /** That of the server that has confirmed it. */
  #reign: AbortSignal | undefined;

  constructor(step: ActiveStep, transactions: Transactions) {
    this.#step = step;
    this.#transactions = transactions;
  }

  /**
   * Whether an open transaction may wait for the barrier. Not if both may take their connections from one pool of the
   * application, and not on SQLite, where the transaction may hold the lock that the barrier waits for.
   */
  get mayWaitInside(): boolean {
    const { config, database } = this.#step.run.runtime;
    return database.dialect.name === 'postgres' && typeof config.store.pool !== 'object';
  }

  /** The barrier was passed. Later checkpoints of the run need not be visible in the transaction. */
  noteBarrier(): void {
    const { run } = this.#step;
    this.#restsOn = run.lastRecordedStepID;
    this.#reign = run.runtime.database.reign;
  }

  /** Whether another server took the place of the one that was there at the barrier: it may lack what was committed since. */
  get isDoubtful(): boolean {
    return this.#reign?.aborted ?? false;
  }

  /** Whether the data source is on the system database and may write to its tables. */
  isPossible(source: object, query: Query): MaybePromise<boolean> {
    return this.#transactions.isShared(source, query);
  }

  /**
   * The statement that writes the checkpoint of a value, guarded by the owner token. If the workflow or the checkpoint
   * before it is lost, or the step has a checkpoint, it returns no row on SQLite and fails on Postgres.
   */
  statement(value: unknown): MaybePromise<Rendered> {
    return andThen(this.#step.encode(value), ({ text: output, serialization }) => {
      const { run } = this.#step;
      const checkpoint = this.#step.checkpoint({ output, serialization });
      run.journal.takeBack(checkpoint);
      return joinedCheckpoint(run.runtime.database, checkpoint, this.#restsOn);
    });
  }

  /**
   * The recorded outcome. Retries while the system database is down. If the checkpoint before it is lost, hands the workflow
   * back: no transaction of this run can commit.
   */
  async find(): Promise<StepOutcome | undefined> {
    const { run, stepID } = this.#step;
    const { runtime, workflowID } = run;
    const restsOn = this.#restsOn;
    const stepIDs = restsOn === undefined ? [stepID] : [stepID, restsOn];
    const keys = stepIDs.map((one) => ({ workflowID, stepID: one }));
    const steps = await runtime.retrying(() => findSteps(runtime.database, keys));
    if (restsOn !== undefined && !steps.some((one) => one.stepID === restsOn)) await this.#handBack();
    const found = steps.find((one) => one.stepID === stepID);
    if (!found) return undefined;
    try {
      return { kind: 'value', value: await replayOutcome(run, found) };
    } catch (error) {
      return { kind: 'error', error };
    }
  }

  async #handBack(): Promise<void> {
    const { run } = this.#step;
    const { bus, database, logger } = run.runtime;
    const handedBack = await run.runtime.retrying(() => handBack(database, [run]));
    bus.publishAll(topics.work, handedBack);
    logger.warn(`Workflow "${run.workflowID}" goes back to its last checkpoint: the database has lost a later one.`);
    run.stop(await findLossReason(run));
    run.check();
  }
}
