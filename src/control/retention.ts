// Clearing away what is old. The work is done in small commits with a rest after each, so that whoever runs workflows
// meanwhile hardly notices. Nothing is kept in between: a run that was interrupted is simply repeated.
import { sleep } from '../base/clock.js';
import { DBOSError } from '../model/errors.js';
import { isActive } from '../model/status.js';
import {
  type AgePlace,
  cancelIfActive,
  deleteIfEnded,
  deleteOrphans,
  findNthNewest,
  findPayloadTables,
  listByAge,
  listPayloadsByAge,
  OLDEST,
  type PayloadTable,
} from '../store/retention.js';
import { readNow } from '../store/schedules.js';
import type { Operator } from './operator.js';

/** One of both limits, or both: then the later time counts. */
export interface GarbageCollectOptions {
  /** Workflows that were created before this time are deleted, unless they are active. */
  readonly cutoffEpochTimestampMs?: number;
  /** So many of the newest workflows are kept; older ones are deleted, unless they are active. */
  readonly rowsThreshold?: number;
  /** How many workflows are looked at in one commit. */
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
/** Leaves a fifth of the time, on a database with one writer. */
const REST_FACTOR = 4;
const REST_MIN_MS = 1;

/** Deletes old workflows that have ended, and whatever is left of workflows that are gone. */
export async function garbageCollect(operator: Operator, options: GarbageCollectOptions): Promise<GarbageCollected> {
  checkOptions(options);
  const { database, applicationName } = operator;
  const { onProgress, batchSize: limit = BATCH_SIZE, restFactor = REST_FACTOR } = options;
  const before = await cutoffOf(operator, options);
  let collected: GarbageCollected = { workflows: 0, orphans: 0 };
  const tell = (workflows: number, orphans: number): void => {
    collected = { workflows: collected.workflows + workflows, orphans: collected.orphans + orphans };
    onProgress?.(collected);
  };
  if (before === undefined) return collected;
  // First: an index from which much was just deleted is slow to begin with.
  for (const name of await operator.retrying(() => findPayloadTables(database))) {
    await sweepOrphans(operator, { name, before, limit, restFactor, tell: (orphans) => tell(0, orphans) });
  }
  await walk(
    operator,
    async (after) => {
      const oldest = await listByAge(database, { after, before, limit }, applicationName);
      const ended = oldest
        .filter(({ isOwn, status }) => isOwn && !isActive(status))
        .map(({ workflowID }) => workflowID);
      if (ended.length > 0) tell(await deleteIfEnded(database, ended, before), 0);
      return oldest.length < limit ? undefined : oldest.at(-1);
    },
    restFactor,
  );
  return collected;
}

function checkOptions(options: GarbageCollectOptions): void {
  const { cutoffEpochTimestampMs, rowsThreshold, batchSize, restFactor } = options;
  if (cutoffEpochTimestampMs === undefined && rowsThreshold === undefined) {
    throw new DBOSError('garbageCollect needs cutoffEpochTimestampMs, rowsThreshold, or both.');
  }
  if (cutoffEpochTimestampMs !== undefined) checkTime('cutoffEpochTimestampMs', cutoffEpochTimestampMs);
  for (const [name, value] of Object.entries({ rowsThreshold, batchSize })) {
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) continue;
    throw new DBOSError(`${name} must be a positive whole number, but is ${value}.`);
  }
  if (restFactor === undefined || (Number.isFinite(restFactor) && restFactor >= 0)) return;
  throw new DBOSError(`restFactor must be a number from 0 on, but is ${restFactor}.`);
}

function checkTime(name: string, value: number): void {
  if (Number.isFinite(value)) return;
  throw new DBOSError(`${name} must be a time in epoch milliseconds, but is ${value}.`);
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

interface Sweep {
  readonly name: PayloadTable;
  readonly before: number;
  readonly limit: number;
  readonly restFactor: number;
  readonly tell: (orphans: number) => void;
}

async function sweepOrphans(operator: Operator, sweep: Sweep): Promise<void> {
  const { database } = operator;
  const { name, before, limit, restFactor, tell } = sweep;
  await walk(
    operator,
    async (after) => {
      const oldest = await listPayloadsByAge(database, name, { after, before, limit });
      const orphans = [...new Set(oldest.filter(({ isOrphan }) => isOrphan).map(({ workflowID }) => workflowID))];
      if (orphans.length > 0) {
        await deleteOrphans(database, orphans);
        tell(orphans.length);
      }
      return oldest.length < limit ? undefined : oldest.at(-1);
    },
    restFactor,
  );
}

/** Takes one part after the other, from place to place, with a rest after each. */
async function walk(
  operator: Operator,
  part: (after: AgePlace) => Promise<AgePlace | undefined>,
  restFactor = REST_FACTOR,
): Promise<void> {
  const { clock } = operator;
  for (let place: AgePlace | undefined = OLDEST; place;) {
    const after: AgePlace = place;
    const startedAt = performance.now();
    place = await operator.retrying(() => part(after));
    const elapsedMs = performance.now() - startedAt;
    if (place) await sleep(clock, Math.max(REST_MIN_MS, elapsedMs * restFactor));
  }
}

/** Cancels all active workflows that were created at this time or before. Returns how many. */
export async function globalTimeout(operator: Operator, cutoffEpochTimestampMs: number): Promise<number> {
  checkTime('cutoffEpochTimestampMs', cutoffEpochTimestampMs);
  const { database, applicationName, news } = operator;
  const before = await notAfterNow(operator, Math.floor(cutoffEpochTimestampMs) + 1);
  let count = 0;
  await walk(operator, async (after) => {
    const oldest = await listByAge(database, { after, before, limit: BATCH_SIZE }, applicationName);
    const active = oldest.filter(({ isOwn, status }) => isOwn && isActive(status)).map(({ workflowID }) => workflowID);
    if (active.length > 0) {
      const cancelled = await cancelIfActive(database, active);
      count += cancelled.length;
      await news.changed(cancelled);
    }
    return oldest.length < BATCH_SIZE ? undefined : oldest.at(-1);
  });
  return count;
}
