// Parked workflows: their runs have left memory until a time or an event. A parked workflow is DELAYED and keeps the owner
// token of the run that parked it, so that this run, and no other, may take it back before it is claimed again.
import { nowMs, rows, type Sql, sql, table } from '../../sql/sql.js';
import { TableColumns } from '../columns.js';
import type { Database, Row } from '../database.js';
import { INTERNAL_QUEUE, type Owned } from '../runs/lifecycle.js';
import { findOwners, type OwnerRow } from '../runs/owners.js';
import { isPending, isWaiting } from '../runs/states.js';

/** A workflow to park. */
export interface Park extends Owned {
  /** When it continues at the latest. */
  readonly dueAt: number;
}

export type ParkVerdict =
  | 'parked'
  /** The run still owns it. */
  | 'refused'
  /** The run no longer owns it. */
  | 'lost';

const workflows = table('workflow_status');

const parkColumns = new TableColumns<Park>([
  ['workflowID', 'target_id', 'text'],
  ['owner', 'owner', 'text'],
  ['dueAt', 'due_at', 'bigint'],
]);

/** Parks the workflows that are still owned. The next claim is no recovery, so the attempt does not count. */
function parkIfOwned(parks: readonly Park[]): Sql {
  return sql`
    UPDATE ${workflows} AS w
    SET status = 'DELAYED', delay_until_epoch_ms = r.due_at, updated_at = ${nowMs},
      started_at_epoch_ms = CASE WHEN w.rate_limited = TRUE THEN w.started_at_epoch_ms END,
      queue_name = COALESCE(w.queue_name, ${INTERNAL_QUEUE}),
      recovery_attempts = CASE WHEN w.recovery_attempts > 0 THEN w.recovery_attempts - 1 ELSE 0 END
    FROM ${rows(
      'r',
      parkColumns.columns,
      parks.map((park) => parkColumns.toValues(park)),
    )}
    WHERE w.workflow_uuid = r.target_id AND w.owner_xid = r.owner AND ${isPending('w')}
    RETURNING workflow_uuid`;
}

/** Parks the workflows in one commit, and says what happened to each. May be repeated. */
export async function parkWorkflows(database: Database, parks: readonly Park[]): Promise<ParkVerdict[]> {
  const [parked = []] = await database.commit([parkIfOwned(parks)]);
  return judgeParks(database, parks, parked);
}

async function judgeParks(database: Database, parks: readonly Park[], written: readonly Row[]): Promise<ParkVerdict[]> {
  if (written.length === parks.length) return parks.map(() => 'parked');
  const parked = new Set(written.map((row) => row['workflow_uuid'] as string));
  const missing = parks.filter(({ workflowID }) => !parked.has(workflowID));
  const owners = await findOwners(
    database,
    missing.map(({ workflowID }) => workflowID),
  );
  return parks.map(({ workflowID, owner }) =>
    parked.has(workflowID) ? 'parked' : explainPark(owners.get(workflowID), owner),
  );
}

function explainPark(row: OwnerRow | undefined, owner: string): ParkVerdict {
  if (row?.owner !== owner) return 'lost';
  if (row.status === 'PENDING') return 'refused';
  // An earlier attempt has parked it, and it may have come due since.
  return row.status === 'DELAYED' || row.status === 'ENQUEUED' ? 'parked' : 'lost';
}

/** Takes a parked workflow back for the run that parked it. False if it was claimed or changed meanwhile. May be repeated. */
export async function takeBack(database: Database, { workflowID, owner }: Owned): Promise<boolean> {
  const taken = await database.run(sql`
    UPDATE ${workflows}
    SET status = 'PENDING', delay_until_epoch_ms = NULL, started_at_epoch_ms = ${nowMs}, updated_at = ${nowMs},
      recovery_attempts = recovery_attempts + 1
    WHERE workflow_uuid = ${workflowID} AND owner_xid = ${owner} AND ${isWaiting()}
    RETURNING workflow_uuid`);
  if (taken.length > 0) return true;
  const row = (await findOwners(database, [workflowID])).get(workflowID);
  return row?.owner === owner && row.status === 'PENDING';
}
