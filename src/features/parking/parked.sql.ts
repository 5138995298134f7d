// Parked workflows as all other statements see them. A parked workflow is stored as DELAYED, with the owner token of the run
// that has left memory. For users and operators it is a workflow that runs and waits: what they read and do is the same as
// while it waits in memory.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { type Sql, sql } from '../../kernel/sql/sql.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { holdsEngineToken, isEngineToken } from '../../run/rows/owner-tokens.js';
import { unindexed } from '../../run/rows/states.js';

const COLUMNS = {
  /** An UPDATE or DELETE whose table has no alias. */
  '': { status: sql`status`, owner: sql`owner_xid`, queue: sql`queue_name` },
  w: { status: sql`w.status`, owner: sql`w.owner_xid`, queue: sql`w.queue_name` },
} as const;

type Alias = keyof typeof COLUMNS;
type Columns = (typeof COLUMNS)[Alias];

/** A condition or expression for each alias, built once. */
function forAliases(of: (columns: Columns) => Sql): (alias?: Alias) => Sql {
  const made = { '': of(COLUMNS['']), w: of(COLUMNS.w) };
  return (alias = '') => made[alias];
}

const isDelayedAndOwned = ({ status, owner }: Columns): Sql =>
  sql`${status} = 'DELAYED' AND ${holdsEngineToken(owner)}`;

/** Parked, for a row found by its key. */
export const isParked = forAliases((columns) => unindexed(isDelayedAndOwned(columns)));

/** The state of a row. In lists of those that wait, the key of their index. */
export const storedState = forAliases(
  (columns) => sql`CASE WHEN ${isDelayedAndOwned(columns)} THEN 'PARKED' ELSE ${columns.status} END`,
);

/** The status that users see. */
export const seenStatus = forAliases(
  (columns) => sql`CASE WHEN ${isDelayedAndOwned(columns)} THEN 'PENDING' ELSE ${columns.status} END`,
);

/** Parked, and of no queue: only a claim needs the internal one. */
export const isParkedWithoutQueue = forAliases((columns) =>
  unindexed(sql`${isDelayedAndOwned(columns)} AND ${columns.queue} = ${INTERNAL_QUEUE}`),
);

/** The queue that users see. */
export const seenQueue = forAliases(
  (columns) => sql`CASE WHEN ${isDelayedAndOwned(columns)} AND ${columns.queue} = ${INTERNAL_QUEUE}
    THEN NULL ELSE ${columns.queue} END`,
);

type SeenFields = Pick<WorkflowRecord, 'status' | 'owner' | 'queueName'> &
  Partial<Pick<WorkflowRecord, 'delayUntil' | 'recoveryAttempts'>>;

export function isParkedRow({ status, owner }: Pick<WorkflowRecord, 'status' | 'owner'>): boolean {
  return status === 'DELAYED' && isEngineToken(owner);
}

/** The row as users see it: that of a parked workflow as it would be if its run were in memory. */
export function asSeen<T extends SeenFields>(record: T): T {
  const { status, owner, queueName, recoveryAttempts } = record;
  // One that was parked and was woken has no delay any more.
  if (status === 'ENQUEUED' && isEngineToken(owner)) return { ...record, delayUntil: null };
  if (!isParkedRow(record)) return record;
  return {
    ...record,
    status: 'PENDING',
    queueName: queueName === INTERNAL_QUEUE ? null : queueName,
    delayUntil: null,
    // Parking takes back the attempt that the next claim counts.
    ...(recoveryAttempts !== undefined && { recoveryAttempts: recoveryAttempts + 1 }),
  };
}
