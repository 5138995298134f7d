// SQL conditions on a workflow's status, made from the groups in `model/status`. Their text is exactly that of the partial
// indexes: SQLite uses such an index only if the statement repeats its condition.
import {
  ACTIVE_STATUSES,
  FAILED_STATUSES,
  IN_FLIGHT_STATUSES,
  OUTCOME_STATUSES,
  WAITING_STATUSES,
} from '../../kernel/workflow/status.js';
import { type Sql, sql, textConstants } from '../../kernel/sql/sql.js';

const STATUS_COLUMNS = {
  /** An UPDATE or DELETE whose table has no alias. */
  '': sql`status`,
  w: sql`w.status`,
  p: sql`p.status`,
  o: sql`o.status`,
} as const;

type Alias = keyof typeof STATUS_COLUMNS;

/** A condition for each alias, built once because claims and checkpoints are hot. */
function condition(of: (status: Sql) => Sql): (alias?: Alias) => Sql {
  const made = Object.fromEntries(Object.entries(STATUS_COLUMNS).map(([alias, column]) => [alias, of(column)]));
  return (alias = '') => (made as Record<Alias, Sql>)[alias];
}

/** Running, enqueued or delayed. */
export const isActive = condition((status) => sql`${status} IN (${textConstants(ACTIVE_STATUSES)})`);

export const hasEnded = condition((status) => sql`${status} NOT IN (${textConstants(ACTIVE_STATUSES)})`);

/** Enqueued or running: the rows of idx_workflow_status_in_flight_v2 and …_partition_dequeue_v3. */
export const isInFlight = condition(inFlight);

function inFlight(status: Sql): Sql {
  return sql`${status} IN (${textConstants(IN_FLIGHT_STATUSES)})`;
}

/** Enqueued. Can use the same indexes. */
export const isEnqueued = condition((status) => sql`${status} = 'ENQUEUED' AND ${inFlight(status)}`);

/** Ended without a result: the rows of idx_workflow_status_failed. */
export const hasFailed = condition((status) => sql`${status} IN (${textConstants(FAILED_STATUSES)})`);

/** Not ended with an outcome, so it can be resumed. */
export const isUnfinished = condition((status) => sql`${status} NOT IN (${textConstants(OUTCOME_STATUSES)})`);

export const isCancellable = condition(
  (status) => sql`${status} NOT IN (${textConstants([...OUTCOME_STATUSES, 'CANCELLED'])})`,
);

/** Enqueued or delayed: the rows of idx_workflow_status_listing_state. For lists only. */
export const isListedAsWaiting = condition((status) =>
  unindexed(sql`${status} IN (${textConstants(WAITING_STATUSES)})`),
);

/** Enqueued or delayed, for a row found by its key. Reversed, so that it does not match the index for lists. */
export const isWaiting = condition((status) =>
  unindexed(sql`${status} IN (${textConstants(WAITING_STATUSES.toReversed())})`),
);

/** Running, for a row found by its key. */
export const isPending = condition((status) => unindexed(sql`${status} = 'PENDING'`));

/** Cancelled, for a row found by its key. */
export const isCancelled = condition((status) => unindexed(sql`${status} = 'CANCELLED'`));

/**
 * The condition in a form that matches no partial index, and whose selectivity the planner cannot estimate. For rows found
 * by their key: given the plain condition, the planner may walk a partial index instead
 * (docs/decisions/0003-planner-settings.md).
 */
export function unindexed(plain: Sql): Sql {
  return sql`CASE WHEN ${plain} THEN TRUE ELSE FALSE END`;
}
