// Walks old workflows in small commits with a pause after each, so that running workflows are not slowed down.
import { sleep } from '../../base/clock.js';
import { type AgeCursor, type AgeRange, OLDEST } from '../../store/management/retention.js';
import type { Operator } from '../operator.js';

/** A walk from the oldest row to the last one before a time. */
export interface Walk {
  readonly before: number;
  readonly batchSize?: number | undefined;
  /** Pause after each commit, in multiples of its duration. 0 is fastest, if nothing else runs. */
  readonly restFactor?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const BATCH_SIZE = 500;
const BATCH_MIN = 20;
/** A batch that takes longer makes the next one smaller. */
const BATCH_MAX_MS = 80;
/** It works a tenth of the time. On SQLite others also pay for its commits, when they checkpoint the WAL. */
const REST_FACTOR = 9;
const REST_MIN_MS = 1;

/**
 * Processes one batch after the other, with a pause after each. `batch` returns the rows it found in the range. If a batch
 * takes long, because the database is slow or busy, the next one is smaller.
 */
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
  {
    first,
    batchSize = BATCH_SIZE,
    restFactor = REST_FACTOR,
    signal,
  }: Omit<Walk, 'before'> & { readonly first: Cursor },
  batch: (after: Cursor, limit: number) => Promise<Cursor | undefined>,
): Promise<void> {
  let limit = batchSize;
  for (let after: Cursor | undefined = first; after !== undefined;) {
    signal?.throwIfAborted();
    const from: Cursor = after;
    const startedAt = performance.now();
    after = await operator.retrying(() => batch(from, limit));
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs > BATCH_MAX_MS) limit = Math.max(Math.min(batchSize, BATCH_MIN), Math.floor(limit / 2));
    else if (elapsedMs < BATCH_MAX_MS / 4) limit = Math.min(batchSize, limit * 2);
    if (after !== undefined) await sleep(operator.clock, Math.max(REST_MIN_MS, elapsedMs * restFactor), signal);
  }
}
