// How many histories a process reads at once. A run drops each record when it has replayed it, so what is in memory are
// the histories of the runs that have not replayed theirs yet.

/** Bytes of histories that are read together. A larger history is read alone. */
export const HISTORY_BATCH_BYTES = 16_000_000;

/** The items in order, in batches whose sizes add up to `max` at most. An item that is larger is a batch of its own. */
export function batchesBySize<T>(items: readonly T[], sizeOf: (item: T) => number, max: number): T[][] {
  const batches: T[][] = [];
  let left = 0;
  for (const item of items) {
    const size = sizeOf(item);
    const batch = batches.at(-1);
    if (batch && size <= left) {
      batch.push(item);
      left -= size;
    } else {
      batches.push([item]);
      left = max - size;
    }
  }
  return batches;
}
