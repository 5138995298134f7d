// The streams of a run: the next offset of each, and the reader that is waiting.
import { Mutex } from '../../kernel/base/mutex.js';
import { DBOSStreamNondeterminismError } from '../../kernel/errors/errors.js';
import { findStreamEnds } from './streams.sql.js';
import type { Run } from '../../run/run.js';

export class RunStreams {
  readonly #run: Run;
  #ends: Map<string, number> | undefined;
  readonly #appends = new Mutex();
  #reader: object | undefined;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Runs the calls one at a time, in the order in which they came. */
  serialized<T>(body: () => Promise<T>): Promise<T> {
    return this.#appends.run(body);
  }

  /** Takes the next offset of a stream. Only the owner of the workflow appends, so it can count in memory. */
  async takeOffset(key: string): Promise<number> {
    const { runtime, workflowID, isFirst } = this.#run;
    this.#ends ??= isFirst
      ? new Map<string, number>()
      : await runtime.retrying(() => findStreamEnds(runtime.store.database, workflowID));
    const offset = this.#ends.get(key) ?? 0;
    this.#ends.set(key, offset + 1);
    return offset;
  }

  /**
   * Waits for a value on behalf of a reader. Only one reader may wait at a time: which of two takes the next number
   * would depend on timing, and could differ on replay.
   */
  async asOnlyReader<T>(reader: object, key: string, wait: () => Promise<T>): Promise<T> {
    if (this.#reader !== undefined && this.#reader !== reader) {
      throw new DBOSStreamNondeterminismError(this.#run.workflowID, key);
    }
    this.#reader = reader;
    try {
      return await wait();
    } finally {
      this.#reader = undefined;
    }
  }
}
