// Parked workflows as all other statements see them. A parked workflow is stored as DELAYED, with the owner token of the run
// that has left memory. For users and operators it is a workflow that runs and waits: what they read and do is the same as
// while it waits in memory.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { type Sql, sql } from '../../kernel/sql/sql.js';
import { INTERNAL_QUEUE } from '../../run/rows/lifecycle.js';
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

/** The state of a row. */
export const storedState = forAliases(
  (columns) => sql`CASE WHEN ${isDelayedAndOwned(columns)} THEN 'PARKED' ELSE ${columns.status} END`,
);

/** Parked, and of no queue: only a claim needs the internal one. */
export const isParkedWithoutQueue = forAliases((columns) =>
  unindexed(sql`${isDelayedAndOwned(columns)} AND ${columns.queue} = ${INTERNAL_QUEUE}`),
);

/** The row of a parked workflow as it would be if its run were in memory. Others are returned as they are. */
export function asWaiting<T extends WaitingFields>(record: T): T {
  const { status, owner, queueName, recoveryAttempts } = record;
  if (status !== 'DELAYED' || !isEngineToken(owner)) return record;
  return {
    ...record,
    status: 'PENDING',
    delayUntil: null,
    queueName: queueName === INTERNAL_QUEUE ? null : queueName,
    // Parking takes back the attempt that the next claim counts.
    recoveryAttempts: recoveryAttempts + 1,
  };
}

type WaitingFields = Pick<WorkflowRecord, 'status' | 'owner' | 'queueName' | 'delayUntil' | 'recoveryAttempts'>;
