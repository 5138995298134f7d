// Garbage collection and the global timeout. They work in small commits with a pause after each, so that running workflows
// are not slowed down. No progress is stored: after an interruption, run it again.
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { type Check, func, number, optional, positiveInteger, record } from '../../kernel/check/validation.js';
import { hasEnded, isActive } from '../../kernel/workflow/status.js';
import {
  type AgedWorkflow,
  cancelIfActive,
  deleteOrphans,
  findNthNewest,
  findPayloadTables,
  listByAge,
  listPayloadsByAge,
} from './retention.sql.js';
import { readNow } from '../../database/now.js';
import { announceChanged } from '../../operator/announcements.js';
import type { Operator } from '../../operator/operator.js';
import { walkByAge } from './paced-walk.js';
import { deleteDue } from './retention-policy.js';

/** Pass one of the two limits, or both: then the later cutoff applies. */
export interface GarbageCollectOptions {
  /** Deletes workflows created before this time, unless they are active. */
  readonly cutoffEpochTimestampMs?: number;
  /** Keeps this many of the newest workflows and deletes older ones, unless they are active. */
  readonly rowsThreshold?: number;
  /** Maximum number of workflows examined in one commit. */
  readonly batchSize?: number;
  /** Pause after each commit, in multiples of its duration. 0 is fastest, if nothing else runs. */
  readonly restFactor?: number;
  /** Called after each commit. */
  readonly onProgress?: (progress: GarbageCollected) => void;
}

/** What has been deleted so far. */
export interface GarbageCollected {
  readonly workflows: number;
  /** Workflows already deleted that had left inputs, outputs or checkpoints behind. */
  readonly orphans: number;
}

/** Deletes old workflows that have ended, and leftovers of deleted workflows. */
export async function garbageCollect(operator: Operator, options: GarbageCollectOptions): Promise<GarbageCollected> {
  checkOptions(options);
  const { database } = operator;
  const { onProgress, batchSize, restFactor } = options;
  const before = await cutoffOf(operator, options);
  let collected: GarbageCollected = { workflows: 0, orphans: 0 };
  const report = (workflows: number, orphans: number): void => {
    collected = { workflows: collected.workflows + workflows, orphans: collected.orphans + orphans };
    onProgress?.(collected);
  };
  if (before === undefined) return collected;
  const walkOptions = { before, batchSize, restFactor };
  // Leftovers first: right after a mass delete, an index scan starts slowly.
  for (const name of await operator.retrying(() => findPayloadTables(database))) {
    await walkByAge(operator, walkOptions, async (range) => {
      const oldest = await listPayloadsByAge(database, name, range);
      const orphans = new Set(oldest.filter(({ isOrphan }) => isOrphan).map(({ workflowID }) => workflowID));
      if (orphans.size > 0) {
        await deleteOrphans(database, [...orphans]);
        report(0, orphans.size);
      }
      return oldest;
    });
  }
  const due = { before, isDue: ({ status }: AgedWorkflow) => hasEnded(status) };
  await deleteDue(operator, due, { batchSize, restFactor }, (deleted) => report(deleted, 0));
  return collected;
}

const epochMs = number({ min: Number.MIN_SAFE_INTEGER });
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

/** The time before which workflows are deleted; undefined if there are none. */
async function cutoffOf(operator: Operator, options: GarbageCollectOptions): Promise<number | undefined> {
  const { database, applicationName } = operator;
  const { cutoffEpochTimestampMs, rowsThreshold } = options;
  const byAge =
    cutoffEpochTimestampMs === undefined ? undefined : await notAfterNow(operator, Math.ceil(cutoffEpochTimestampMs));
  if (rowsThreshold === undefined) return byAge;
  const byCount = await operator.retrying(() => findNthNewest(database, rowsThreshold, applicationName));
  return byAge === undefined || byCount === undefined ? (byAge ?? byCount) : Math.max(byAge, byCount);
}

/** Caps the cutoff: a walk to a future time would never catch up with new workflows. */
async function notAfterNow(operator: Operator, before: number): Promise<number> {
  const { now } = await operator.retrying(() => readNow(operator.database));
  return Math.min(before, now + 1);
}

/** Cancels all active workflows created at this time or earlier. Returns their number. */
export async function globalTimeout(operator: Operator, cutoffEpochTimestampMs: number): Promise<number> {
  epochMs.read(cutoffEpochTimestampMs, 'cutoffEpochTimestampMs');
  const { database, applicationName, bus } = operator;
  const before = await notAfterNow(operator, Math.floor(cutoffEpochTimestampMs) + 1);
  let count = 0;
  await walkByAge(operator, { before, restFactor: 0 }, async (range) => {
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
