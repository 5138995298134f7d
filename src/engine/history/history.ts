// The checkpoints of a workflow's earlier runs, as the run replays them. Each is dropped when it is taken: what a recovered
// workflow has replayed need not stay in memory for as long as it runs.
import { deferred } from '../../base/deferred.js';
import type { StepRecord } from '../../model/records.js';

export class History {
  readonly #records: Map<number, StepRecord>;
  readonly #replayed = deferred<void>();

  /** Takes over the records. */
  constructor(records: Map<number, StepRecord>) {
    this.#records = records;
  }

  /** The record under a number, which stays. */
  at(stepID: number): StepRecord | undefined {
    return this.#records.get(stepID);
  }

  /** Drops the record under a number: it was replayed, or there is none and the operation runs. */
  pass(stepID: number): void {
    if (!this.#records.delete(stepID) || this.#records.size === 0) this.#replayed.resolve();
  }

  /** Whether there is a record after a number and before another. */
  hasBetween(after: number, before: number): boolean {
    for (const stepID of this.#records.keys()) if (stepID > after && stepID < before) return true;
    return false;
  }

  /** Resolves when the run has come to the first operation without a record, or has ended. */
  get replayed(): Promise<void> {
    return this.#replayed.promise;
  }

  /** The run has ended. */
  end(): void {
    this.#records.clear();
    this.#replayed.resolve();
  }
}
