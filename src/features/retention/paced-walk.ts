// Walks old workflows in small commits with a pause after each, so that running workflows are not slowed down.
import { sleep } from '../../kernel/base/clock.js';
import { type AgeCursor, type AgeRange, OLDEST } from './retention.sql.js';
import type { Operator } from '../../operator/operator.js';

export interface PaceOptions {
  /** Maximum number of rows in one piece of work. */
  readonly batchSize?: number | undefined;
  /** Pause after each piece, in multiples of its duration. 0 is fastest, if nothing else runs. */
  readonly restFactor?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A walk from the oldest row to the last one before a time. */
export interface Walk extends PaceOptions {
  readonly before: number;
}

export const BATCH_SIZE = 500;
const BATCH_MIN = 20;
/** A piece that takes longer makes the next one smaller. */
const BATCH_MAX_MS = 80;
/** It works a tenth of the time. On SQLite others also pay for its commits, when they checkpoint the WAL. */
const REST_FACTOR = 9;
const REST_MIN_MS = 1;

/** How many rows the next piece of one kind may have. Fewer if the last one took long: the database is slow or busy. */
export class PieceSize {
  readonly #max: number;
  #limit: number;

  constructor(max: number) {
    this.#max = max;
    this.#limit = max;
  }

  get limit(): number {
    return this.#limit;
  }

  adapt(elapsedMs: number): void {
    if (elapsedMs > BATCH_MAX_MS) this.#limit = Math.max(Math.min(this.#max, BATCH_MIN), Math.floor(this.#limit / 2));
    else if (elapsedMs < BATCH_MAX_MS / 4) this.#limit = Math.min(this.#max, this.#limit * 2);
  }
}

/** Does pieces of work in the database one by one, and rests between them. */
export class Pace {
  readonly #operator: Operator;
  readonly #restFactor: number;
  readonly #signal: AbortSignal | undefined;
  #restMs = 0;

  constructor(operator: Operator, { restFactor = REST_FACTOR, signal }: PaceOptions) {
    this.#operator = operator;
    this.#restFactor = restFactor;
    this.#signal = signal;
  }

  /** Rests from the last piece, and does the next one. */
  async work<T>(size: PieceSize, piece: (limit: number) => Promise<T>): Promise<T> {
    return this.#spend(
      () => this.#operator.retrying(() => piece(size.limit)),
      (elapsedMs) => size.adapt(elapsedMs),
    );
  }

  /** The same for work of this process. */
  load<T>(body: () => Promise<T>): Promise<T> {
    return this.#spend(body);
  }

  async #spend<T>(body: () => Promise<T>, onSpent?: (elapsedMs: number) => void): Promise<T> {
    this.#signal?.throwIfAborted();
    if (this.#restMs > 0) await sleep(this.#operator.clock, this.#restMs, this.#signal);
    const startedAt = performance.now();
    const result = await body();
    const elapsedMs = performance.now() - startedAt;
    onSpent?.(elapsedMs);
    this.#restMs = Math.max(REST_MIN_MS, elapsedMs * this.#restFactor);
    return result;
  }
}

/** Processes one batch after the other, with a pause after each. `batch` returns the rows it found in the range. */
export async function walkByAge(
  operator: Operator,
  { before, ...walk }: Walk,
  batch: (range: AgeRange) => Promise<readonly AgeCursor[]>,
): Promise<void> {
  await walkFrom<AgeCursor>(operator, { ...walk, first: OLDEST }, async (after, limit) => {
    const found = await batch({ after, before, limit });
    return found.length < limit ? undefined : found.at(-1);
  });
}

/** The same in any order. `batch` returns where the next one begins, or undefined at the end. */
export async function walkFrom<Cursor>(
  operator: Operator,
  { first, batchSize = BATCH_SIZE, ...rest }: PaceOptions & { readonly first: Cursor },
  batch: (after: Cursor, limit: number) => Promise<Cursor | undefined>,
): Promise<void> {
  const pace = new Pace(operator, rest);
  const size = new PieceSize(batchSize);
  for (let after: Cursor | undefined = first; after !== undefined;) {
    const from: Cursor = after;
    after = await pace.work(size, (limit) => batch(from, limit));
  }
}
