// The checkpoints of a workflow's earlier runs, as the run replays them. Each is dropped when it is taken: what a recovered
// workflow has replayed need not stay in memory for as long as it runs.
import { type Deferred, deferred } from '../../kernel/base/deferred.js';
import type { MaybePromise } from '../../kernel/codec/maybe-promise.js';
import type { StepRecord } from '../../kernel/workflow/records.js';
import type { TextPages } from './text-pages.js';

/** Operations replayed in one turn of the event loop. */
const TURN_MAX = 500;
/** After so many turns in which nothing was replayed, nothing will be. */
const IDLE_TURNS = 20;
/** Markers of patches, which are skipped if their line was removed. */
const PATCH_PREFIX = 'DBOS.patch-';

export class History {
  /** Undefined if there are none: most claimed workflows have not run before. */
  readonly #records: Map<number, StepRecord> | undefined;
  #isReplayed = false;
  /** Made when something waits for it. */
  #replayed: Deferred<void> | undefined;

  /** If the history is too large for memory. */
  readonly #texts: TextPages | undefined;

  /** Replays that have begun and not ended. */
  #replaying = 0;
  /** Made when something waits for the operations that are being replayed. */
  #settled: Deferred<void> | undefined;

  #replayedInTurn = 0;
  #pause: Promise<void> | undefined;

  /** Takes over the records. With `texts`, they lack outputs and errors. */
  constructor(records?: Map<number, StepRecord>, texts?: TextPages) {
    this.#records = records;
    this.#texts = texts;
  }

  /** Whether all were replayed, or there are none. */
  get isEmpty(): boolean {
    return !this.#records || this.#records.size === 0;
  }

  /** How many are being replayed. */
  get replaying(): number {
    return this.#replaying;
  }

  /** Those that were not replayed yet, by number. */
  get records(): Iterable<StepRecord> {
    return this.#records?.values() ?? [];
  }

  /** A record of this history with its texts. Undefined if the database no longer has it. */
  complete(record: StepRecord): MaybePromise<StepRecord | undefined> {
    return this.#texts ? this.#texts.take(record.stepID) : record;
  }

  /** The record under a number, which stays. */
  at(stepID: number): StepRecord | undefined {
    return this.#records?.get(stepID);
  }

  /** Drops the record under a number: it was replayed, or there is none and the operation runs. */
  pass(stepID: number): void {
    if (!this.#records?.delete(stepID) || this.#records.size === 0) this.#endReplay();
  }

  /**
   * What the replay of an operation waits for, so that a long replay does not keep the process from other work. While one
   * waits, all later ones do, so that they end in the same order.
   */
  pause(): Promise<void> | undefined {
    this.#replayedInTurn += 1;
    if (this.#replayedInTurn < TURN_MAX) return this.#pause;
    this.#replayedInTurn = 0;
    this.#pause ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#pause = undefined;
    });
    return this.#pause;
  }

  /** Counts a replay as in progress. */
  async during<T>(replay: () => Promise<T>): Promise<T> {
    this.#replaying += 1;
    try {
      return await replay();
    } finally {
      this.#replaying -= 1;
      if (this.#replaying === 0) {
        this.#settled?.resolve();
        this.#settled = undefined;
      }
    }
  }

  /** Resolves when code that continues with replayed results has come to operations that are not recorded. */
  async settled(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#replaying === 0) return;
      this.#settled ??= deferred<void>();
      await this.#settled.promise;
    }
  }

  /**
   * The first record that the code has not used although it has ended. Operations that it has begun and does not await, such
   * as the losers of a race, may be replayed a little later.
   */
  async findUnused(): Promise<StepRecord | undefined> {
    for (let turns = 0, left = Infinity; turns < IDLE_TURNS; turns += 1) {
      if (this.isEmpty) return undefined;
      const size = this.#records?.size ?? 0;
      if (size < left || this.#replaying > 0) turns = 0;
      left = size;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const unused = [...this.records].filter(({ name }) => !name.startsWith(PATCH_PREFIX));
    return unused.sort((a, b) => a.stepID - b.stepID)[0];
  }

  /** Whether there is a record after a number and before another. */
  hasBetween(after: number, before: number): boolean {
    for (const stepID of this.#records?.keys() ?? []) if (stepID > after && stepID < before) return true;
    return false;
  }

  /** Resolves when the run has come to the first operation without a record, or has ended. */
  get replayed(): Promise<void> {
    if (this.#isReplayed) return Promise.resolve();
    this.#replayed ??= deferred<void>();
    return this.#replayed.promise;
  }

  #endReplay(): void {
    this.#isReplayed = true;
    this.#replayed?.resolve();
  }

  /** The run has ended. */
  end(): void {
    this.#records?.clear();
    this.#texts?.clear();
    this.#endReplay();
  }
}
