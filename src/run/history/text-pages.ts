// The texts of a history that is too large to be read whole. Its records are in memory without them; each page of texts is
// read when the replay comes to it, and dropped as it is replayed.
import { Mutex } from '../../kernel/base/mutex.js';
import type { StepRecord } from '../../kernel/workflow/records.js';
import type { StepOutline } from '../rows/steps.js';

/** Bytes of texts that are read together. A larger text is read alone. */
export const PAGE_BYTES = 4_000_000;
/** Records in one page: each takes its time in the event loop. */
const PAGE_RECORDS = 1000;
/** Branches that replay side by side need a page each. With more of them, pages are read again. */
const PAGES_MAX = 4;

export class TextPages {
  /** The size of each record that was not taken, by number. */
  readonly #sizes = new Map<number, number>();
  readonly #load: (stepIDs: readonly number[]) => Promise<readonly StepRecord[]>;
  readonly #mutex = new Mutex();
  #pages: Map<number, StepRecord>[] = [];

  constructor(load: (stepIDs: readonly number[]) => Promise<readonly StepRecord[]>) {
    this.#load = load;
  }

  /** Adds records, in the order of their numbers. */
  add(outlines: readonly StepOutline[]): void {
    for (const { step, bytes } of outlines) this.#sizes.set(step.stepID, bytes);
  }

  /** The whole record. Undefined if it no longer exists. */
  take(stepID: number): Promise<StepRecord | undefined> {
    return this.#mutex.run(async () => {
      const page = this.#pages.find((one) => one.has(stepID)) ?? (await this.#read(stepID));
      const record = page.get(stepID);
      page.delete(stepID);
      this.#sizes.delete(stepID);
      this.#pages = this.#pages.filter((one) => one.size > 0);
      return record;
    });
  }

  /** Reads the record and those after it that fit into a page. */
  async #read(first: number): Promise<Map<number, StepRecord>> {
    const stepIDs: number[] = [];
    let bytes = 0;
    for (const [stepID, size] of this.#sizes) {
      if (stepID < first) continue;
      bytes += size;
      if (stepIDs.length >= PAGE_RECORDS || (stepIDs.length > 0 && bytes > PAGE_BYTES)) break;
      stepIDs.push(stepID);
    }
    const page = new Map((await this.#load(stepIDs)).map((record) => [record.stepID, record]));
    this.#pages = [...this.#pages.slice(1 - PAGES_MAX), page];
    return page;
  }

  clear(): void {
    this.#sizes.clear();
    this.#pages = [];
  }
}
