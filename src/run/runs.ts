// The runs of this process: which workflows run here, and how each run ends.
import type { Deadline } from '../kernel/base/time-limit.js';
import { type Deferred, deferred } from '../kernel/base/deferred.js';
import { DBOSWorkflowCancelledError, DBOSWorkflowConflictError } from '../kernel/errors/errors.js';
import type { Owned } from './rows/lifecycle.js';
import { RunSpans } from './tracing.js';
import { outcomeOfStopped, execute, type Invocation, type OfferRefill, type RunOutcome } from './execute.js';
import { isDivergence } from './loss.js';
import type { Run } from './run.js';
import type { Slots } from './slots.js';

export interface RunObserver {
  /** A run has ended; its handles resolve afterwards. `isRecorded`: it has recorded the outcome durably. */
  onEnded?(run: Run, isRecorded: boolean): void;
  /** The run's slot is free: it has ended, or has lost its workflow. `isRecorded` as above. */
  onFreed?(run: Run, isRecorded: boolean): void;
  /** The run waits for something outside of it, and does not count against this process's capacity meanwhile. */
  onWaiting?(run: Run): void;
}

/** How a run ends, and whether code in this process waits for it. */
export class RunEnding {
  #outcome: RunOutcome | undefined;
  /** Made when something waits: nothing does for most runs from queues. */
  #deferred: Deferred<RunOutcome> | undefined;
  #isAwaited = false;

  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** For a caller that gets the result or the error. */
  wait(): Promise<RunOutcome> {
    this.#isAwaited = true;
    return this.#end;
  }

  /** Resolves when the run has ended. */
  async settled(): Promise<void> {
    await this.#end;
  }

  /** Only the first outcome counts. */
  resolve(outcome: RunOutcome): void {
    this.#outcome ??= outcome;
    this.#deferred?.resolve(outcome);
  }

  get #end(): Promise<RunOutcome> {
    if (this.#outcome) return Promise.resolve(this.#outcome);
    this.#deferred ??= deferred<RunOutcome>();
    return this.#deferred.promise;
  }
}

export class Runs {
  /** The runs here, each with the ending that its handles await. */
  readonly #ends = new Map<Run, RunEnding>();
  /** The latest run of each workflow here. An earlier one may still be ending. */
  readonly #latest = new Map<string, Run>();
  readonly #observers: RunObserver[] = [];
  #isStopping = false;
  /** Set by the queues. */
  offerRefill: OfferRefill | undefined;
  /** Set by the queues. Whether a workflow was claimed here and is about to run. */
  isBeginning: (owned: Owned) => boolean = () => false;

  constructor(readonly slots: Slots) {}

  observe(observer: RunObserver): void {
    this.#observers.push(observer);
  }

  /** Starts a run. */
  launch(invocation: Invocation): RunEnding {
    const { run } = invocation;
    // This run has taken the workflow from it: a resumed workflow may come back to its own process.
    const older = this.#latest.get(run.workflowID);
    if (older) this.stopLost(older, new DBOSWorkflowConflictError(run.workflowID));
    const ending = new RunEnding();
    this.#ends.set(run, ending);
    this.#latest.set(run.workflowID, run);
    this.slots.fill(run);
    run.waits.onWaiting = (isWaiting) => this.#setWaiting(run, isWaiting);
    run.onHalted = () => this.#leaveHalted(run);
    const { tracer } = run.runtime;
    if (tracer) run.spans = new RunSpans(tracer, invocation);
    void execute(invocation, this.offerRefill).then(({ outcome, isRecorded }) => {
      // A halted run has left.
      if (run.isHalted) return;
      run.spans?.conclude(outcome);
      const last = this.#remove(run, isRecorded);
      run.end();
      last?.resolve(outcome);
      if (last && outcome.kind === 'error') reportUnlessAwaited(run, last, outcome.error);
    });
    // A child whose row was being inserted when its parent was stopped.
    if (this.#isStopping) this.#stop(run, new DBOSWorkflowConflictError(run.workflowID));
    return ending;
  }

  /** Undefined for a run that has left. */
  #remove(run: Run, isRecorded: boolean): RunEnding | undefined {
    const ending = this.#ends.get(run);
    if (!ending) return undefined;
    this.#ends.delete(run);
    run.history?.end();
    run.spans?.endAll();
    if (this.#latest.get(run.workflowID) === run) this.#latest.delete(run.workflowID);
    this.slots.release(run);
    for (const observer of this.#observers) observer.onEnded?.(run, isRecorded);
    this.#free(run, isRecorded);
    return ending;
  }

  #leaveHalted(run: Run): void {
    const { stopReason, runtime } = run;
    const leave = (): void => this.#remove(run, false)?.resolve(outcomeOfStopped(stopReason));
    // Its slot is not free before that, nor is the workflow an orphan.
    if (isDivergence(stopReason)) void runtime.divergences.note(run, stopReason).then(leave);
    else leave();
  }

  /** The run's workflow is parked. Its handles wait for the outcome in the database. */
  leave(run: Run): void {
    this.#remove(run, false)?.resolve({ kind: 'elsewhere' });
  }

  /** A run that had left has taken its workflow back. */
  comeBack(run: Run): void {
    this.#ends.set(run, new RunEnding());
    this.#latest.set(run.workflowID, run);
    this.slots.fill(run);
    if (run.waits.isWaiting) this.#setWaiting(run, true);
  }

  #free(run: Run, isRecorded: boolean): void {
    for (const observer of this.#observers) observer.onFreed?.(run, isRecorded);
  }

  #setWaiting(run: Run, isWaiting: boolean): void {
    this.slots.setWaiting(run, isWaiting);
    if (isWaiting) for (const observer of this.#observers) observer.onWaiting?.(run);
  }

  #stop(run: Run, reason: Error): void {
    run.stop(reason);
    // One that was stopped before is not halted now. Its code may never return, so resolve its handles: they wait for the new
    // owner's outcome, or fail if the workflow was deleted.
    if (!(reason instanceof DBOSWorkflowCancelledError)) this.#ends.get(run)?.resolve(outcomeOfStopped(reason));
  }

  /** Stops a run that no longer owns its workflow: its slot is free. */
  stopLost(run: Run, reason: Error): void {
    this.#stop(run, reason);
    if (this.#ends.has(run)) this.#free(run, false);
  }

  /** Stops all runs, and any that start later. */
  stopAll(): void {
    this.#isStopping = true;
    for (const run of this.all) this.#stop(run, new DBOSWorkflowConflictError(run.workflowID));
  }

  /** Waits for all runs to end, those that they start meanwhile included. */
  async drain(deadline: Deadline): Promise<void> {
    if (deadline.leftMs > 0) await deadline.settles(this.#idle());
  }

  async #idle(): Promise<void> {
    // A stopped run has its outcome before it is gone, so each is awaited once.
    const awaited = new Set<Run>();
    for (;;) {
      const others = [...this.#ends].filter(([run]) => !awaited.has(run));
      if (others.length === 0) return;
      for (const [run] of others) awaited.add(run);
      await Promise.all(others.map(([, ending]) => ending.settled()));
    }
  }

  get all(): Run[] {
    return [...this.#ends.keys()];
  }

  has(workflowID: string): boolean {
    return this.#latest.has(workflowID);
  }

  /** The runs of the workflows, as far as they run here. */
  of(workflowIDs: readonly string[]): Run[] {
    return workflowIDs.flatMap((workflowID) => this.#latest.get(workflowID) ?? []);
  }

  /** Resolves when the checkpoints of steps that have completed here so far are written, or refused. */
  async written(workflowIDs: readonly string[]): Promise<void> {
    if (this.of(workflowIDs).length === 0) return;
    // A step that has just completed sends its checkpoint in this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(this.of(workflowIDs).flatMap(({ lastWrite }) => lastWrite ?? []));
  }

  /** How the workflow's run here ends. Undefined for a stopped run, whose outcome another owner records. */
  endOf(workflowID: string): RunEnding | undefined {
    const run = this.#latest.get(workflowID);
    return run && !run.stopReason ? this.#ends.get(run) : undefined;
  }
}

/** Otherwise a failure that no caller sees would show in the database only. */
function reportUnlessAwaited({ runtime, workflowID, registration }: Run, ending: RunEnding, error: unknown): void {
  // A caller may be about to await it: the start and the failure can be durable in the same commit.
  setImmediate(() => {
    if (ending.isAwaited || runtime.watchers.outcomes.isAwaited(workflowID)) return;
    const description = error instanceof Error ? (error.stack ?? error.message) : String(error);
    runtime.logger.error(`Workflow "${workflowID}" (${registration.name}) failed: ${description}`);
  });
}
