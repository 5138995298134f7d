// The runs of this process: who runs which workflow here, how each will end, and how many take up room in a queue.
import { type Deferred, deferred } from '../../base/deferred.js';
import { DBOSWorkflowCancelledError } from '../../model/errors/errors.js';
import { endWithout, execute, type Invocation, type RunOutcome } from './execute.js';
import type { Run } from './run.js';

export class Runs {
  /** The runs here, each with its end as its handles learn of it. */
  readonly #ends = new Map<Run, Deferred<RunOutcome>>();
  /** The latest run of each workflow here; an earlier one may still be ending. */
  readonly #latest = new Map<string, Run>();
  readonly #onEnd: (run: Run) => void;
  #queued = 0;
  /** Those of them that wait for others. */
  readonly #waiting = new Set<Run>();
  /** How many runs came from each queue, and from each of its partitions. */
  readonly #counts = new Map<string, number>();

  /** `onEnd` is called when a run has ended, before its handles learn of it. */
  constructor(onEnd: (run: Run) => void) {
    this.#onEnd = onEnd;
  }

  /** Begins to execute a run. Resolves to its end. */
  launch(invocation: Invocation): Promise<RunOutcome> {
    const { run } = invocation;
    const ended = deferred<RunOutcome>();
    this.#ends.set(run, ended);
    this.#latest.set(run.workflowID, run);
    this.#count(run, 1);
    void execute(invocation).then((outcome) => {
      this.#ends.delete(run);
      if (this.#latest.get(run.workflowID) === run) this.#latest.delete(run.workflowID);
      this.#count(run, -1);
      this.#waiting.delete(run);
      this.#onEnd(run);
      ended.resolve(outcome);
    });
    return ended.promise;
  }

  #count({ queueName, partitionKey }: Run, change: 1 | -1): void {
    if (queueName === null) return;
    this.#queued += change;
    const places = [placeOf(queueName), ...(partitionKey === null ? [] : [placeOf(queueName, partitionKey)])];
    for (const place of places) {
      const count = (this.#counts.get(place) ?? 0) + change;
      if (count === 0) this.#counts.delete(place);
      else this.#counts.set(place, count);
    }
  }

  /** Stops a run at its next operation. */
  stop(run: Run, reason: Error): void {
    run.stop(reason);
    // Its code may run for ever. Whoever waits for it here waits for the one who has the workflow now instead, and for
    // nobody if it was deleted.
    if (!(reason instanceof DBOSWorkflowCancelledError)) this.#ends.get(run)?.resolve(endWithout(reason));
  }

  get all(): Run[] {
    return [...this.#ends.keys()];
  }

  /** How many runs came from a queue, without those that wait for something. */
  get queuedCount(): number {
    return this.#queued - this.#waiting.size;
  }

  setWaiting(run: Run, isWaiting: boolean): void {
    if (isWaiting && run.queueName !== null && this.#ends.has(run)) this.#waiting.add(run);
    else this.#waiting.delete(run);
  }

  /** How many runs came from a queue, or from one of its partitions. */
  countIn(queueName: string, partitionKey?: string): number {
    return this.#counts.get(placeOf(queueName, partitionKey)) ?? 0;
  }

  /** The runs of those of the workflows that run here. */
  of(workflowIDs: readonly string[]): Run[] {
    return workflowIDs.flatMap((workflowID) => this.#latest.get(workflowID) ?? []);
  }

  /** The end of the workflow's run here. None for a run that was stopped: its outcome comes from elsewhere. */
  endOf(workflowID: string): Promise<RunOutcome> | undefined {
    const run = this.#latest.get(workflowID);
    return run && !run.stopReason ? this.#ends.get(run)?.promise : undefined;
  }

  /** Resolves when all runs of this moment have ended. */
  async idle(): Promise<void> {
    await Promise.all([...this.#ends.values()].map((ended) => ended.promise));
  }
}

function placeOf(queueName: string, partitionKey?: string): string {
  return JSON.stringify(partitionKey === undefined ? [queueName] : [queueName, partitionKey]);
}
