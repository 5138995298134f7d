// Clearing away what is old. The work is done in small commits with a rest after each, so that whoever runs workflows
// meanwhile hardly notices. Nothing is kept in between: a run that was interrupted is simply repeated.
import { sleep } from '../../base/clock.js';
import { DBOSInvalidArgumentError } from '../../model/errors/errors.js';
import {
  type Check,
  checkThat,
  func,
  number,
  optional,
  positiveInteger,
  record,
} from '../../model/validation/validation.js';
import { hasEnded, isActive } from '../../model/status.js';
import {
  type AgeCursor,
  type AgeRange,
  cancelIfActive,
  deleteIfEnded,
  deleteOrphans,
  findNthNewest,
  findPayloadTables,
  listByAge,
  listPayloadsByAge,
  OLDEST,
} from '../../store/management/retention.js';
import { readNow } from '../../store/schedules/schedules.js';
import { announceChanged } from '../notify/announcements.js';
import type { Operator } from '../operator.js';

/** One of both limits, or both: then the later time counts. */
export interface GarbageCollectOptions {
  /** Workflows that were created before this time are deleted, unless they are active. */
  readonly cutoffEpochTimestampMs?: number;
  /** So many of the newest workflows are kept; older ones are deleted, unless they are active. */
  readonly rowsThreshold?: number;
  /** How many workflows are looked at in one commit, at most. */
  readonly batchSize?: number;
  /** How long to rest after each commit, in multiples of the time that it took. 0 is fastest, where nothing else runs. */
  readonly restFactor?: number;
  /** Called after each commit. */
  readonly onProgress?: (progress: GarbageCollected) => void;
}

/** What was deleted so far. */
export interface GarbageCollected {
  readonly workflows: number;
  /** Workflows that were gone already, and of which inputs, outputs or checkpoints were left. */
  readonly orphans: number;
}

const BATCH_SIZE = 500;
const BATCH_MIN = 20;
/** How long one part may take before the next one is made smaller. */
const PART_MAX_MS = 80;
/** A tenth of the time is its own. On SQLite its commits also cost others something, who move its pages into the file. */
const REST_FACTOR = 9;
const REST_MIN_MS = 1;

/** Deletes old workflows that have ended, and whatever is left of workflows that are gone. */
export async function garbageCollect(operator: Operator, options: GarbageCollectOptions): Promise<GarbageCollected> {
  checkOptions(options);
  const { database, applicationName } = operator;
  const { onProgress, batchSize = BATCH_SIZE, restFactor = REST_FACTOR } = options;
  const before = await cutoffOf(operator, options);
  let collected: GarbageCollected = { workflows: 0, orphans: 0 };
  const tell = (workflows: number, orphans: number): void => {
    collected = { workflows: collected.workflows + workflows, orphans: collected.orphans + orphans };
    onProgress?.(collected);
  };
  if (before === undefined) return collected;
  const way = { before, batchSize, restFactor };
  // First: an index from which much was just deleted is slow to begin with.
  for (const name of await operator.retrying(() => findPayloadTables(database))) {
    await walk(operator, way, async (range) => {
      const oldest = await listPayloadsByAge(database, name, range);
      const orphans = new Set(oldest.filter(({ isOrphan }) => isOrphan).map(({ workflowID }) => workflowID));
      if (orphans.size > 0) {
        await deleteOrphans(database, [...orphans]);
        tell(0, orphans.size);
      }
      return oldest;
    });
  }
  await walk(operator, way, async (range) => {
    const oldest = await listByAge(database, range, applicationName);
    const ended = oldest.filter(({ isOwn, status }) => isOwn && hasEnded(status)).map(({ workflowID }) => workflowID);
    if (ended.length > 0) tell(await deleteIfEnded(database, ended, before), 0);
    return oldest;
  });
  return collected;
}

const epochMs = checkThat<number>('a time in epoch milliseconds', Number.isFinite);
const optionsCheck = record(
  {
    cutoffEpochTimestampMs: optional(epochMs),
    rowsThreshold: optional(positiveInteger),
    batchSize: optional(positiveInteger),
    restFactor: optional(number()),
    onProgress: optional(func),
  } satisfies Record<keyof GarbageCollectOptions, Check<unknown>>,
  { unknown: 'ignore' },
);

function checkOptions(options: GarbageCollectOptions): void {
  const { cutoffEpochTimestampMs, rowsThreshold } = optionsCheck.read(options, 'options');
  if (cutoffEpochTimestampMs === undefined && rowsThreshold === undefined) {
    throw new DBOSInvalidArgumentError(
      'garbageCollect needs cutoffEpochTimestampMs, rowsThreshold, or both.',
      'options',
    );
  }
}

/** Before which time workflows are deleted; undefined when there are none. */
async function cutoffOf(operator: Operator, options: GarbageCollectOptions): Promise<number | undefined> {
  const { database, applicationName } = operator;
  const { cutoffEpochTimestampMs, rowsThreshold } = options;
  const byAge =
    cutoffEpochTimestampMs === undefined ? undefined : await notAfterNow(operator, Math.ceil(cutoffEpochTimestampMs));
  if (rowsThreshold === undefined) return byAge;
  const byCount = await operator.retrying(() => findNthNewest(database, rowsThreshold, applicationName));
  return byAge === undefined || byCount === undefined ? (byAge ?? byCount) : Math.max(byAge, byCount);
}

/** A walk to a time that is still to come would never catch up with those who create workflows meanwhile. */
async function notAfterNow(operator: Operator, before: number): Promise<number> {
  const { now } = await operator.retrying(() => readNow(operator.database));
  return Math.min(before, now + 1);
}

/** How to come from the oldest row to the last one before a time. */
interface Way {
  readonly before: number;
  readonly batchSize: number;
  readonly restFactor: number;
}

/**
 * Takes one part after the other, with a rest after each. `part` gives the rows that it found in the range. Where a part
 * takes long, because the database is slow or busy, the next one is smaller.
 */
async function walk(
  operator: Operator,
  { before, batchSize, restFactor }: Way,
  part: (range: AgeRange) => Promise<readonly AgeCursor[]>,
): Promise<void> {
  let limit = batchSize;
  for (let after: AgeCursor | undefined = OLDEST; after;) {
    const range: AgeRange = { after, before, limit };
    const startedAt = performance.now();
    const found = await operator.retrying(() => part(range));
    const elapsedMs = performance.now() - startedAt;
    after = found.length < limit ? undefined : found.at(-1);
    if (elapsedMs > PART_MAX_MS) limit = Math.max(Math.min(batchSize, BATCH_MIN), Math.floor(limit / 2));
    else if (elapsedMs < PART_MAX_MS / 4) limit = Math.min(batchSize, limit * 2);
    if (after) await sleep(operator.clock, Math.max(REST_MIN_MS, elapsedMs * restFactor));
  }
}

/** Cancels all active workflows that were created at this time or before. Returns how many. */
export async function globalTimeout(operator: Operator, cutoffEpochTimestampMs: number): Promise<number> {
  epochMs.read(cutoffEpochTimestampMs, 'cutoffEpochTimestampMs');
  const { database, applicationName, bus } = operator;
  const before = await notAfterNow(operator, Math.floor(cutoffEpochTimestampMs) + 1);
  let count = 0;
  await walk(operator, { before, batchSize: BATCH_SIZE, restFactor: 0 }, async (range) => {
    const oldest = await listByAge(database, range, applicationName);
    const active = oldest.filter(({ isOwn, status }) => isOwn && isActive(status)).map(({ workflowID }) => workflowID);
    if (active.length > 0) {
      const cancelled = await cancelIfActive(database, active);
      count += cancelled.length;
      await announceChanged(bus, cancelled);
    }
    return oldest;
  });
  return count;
}
