// Debouncing: postpones the delayed workflow that represents all calls with its key, and gives it the latest input.
import { nowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { lacks } from '../../database/lacking.js';
import { isParked } from '../parking/parked.sql.js';
import { unindexed } from '../../run/rows/states.js';

export interface Bounce {
  readonly queueName: string;
  /** The key as stored. */
  readonly deduplicationID: string;
  readonly name: string;
  readonly className: string | null;
  /** The application that the workflow must belong to, if it belongs to one; null for any. */
  readonly applicationName: string | null;
  /** The delay from now, capped by the workflow's own deadline for debouncing. */
  readonly periodMs: number;
  readonly inputs: string;
  readonly serialization: string;
}

const workflows = table('workflow_status');
/** And not parked: such a workflow has begun with its input. */
const isDelayed = sql`(${unindexed(sql`status = 'DELAYED'`)} AND NOT ${isParked()})`;

/** Postpones the workflow that holds the key, if it is still delayed, and returns its ID. */
export async function bounceIfDelayed(database: Database, bounce: Bounce): Promise<string | undefined> {
  const { applicationName, periodMs, inputs, serialization } = bounce;
  const condition = sql`${holdsKey(bounce)} AND ${isDelayed}`;
  const [bounced = []] = await database.commit([
    sql`
      UPDATE ${workflows}
      SET inputs = ${inputs}, serialization = ${serialization}, updated_at = ${nowMs},
        application_name = COALESCE(application_name, ${applicationName}),
        delay_until_epoch_ms = CASE
          WHEN debounce_deadline_epoch_ms < ${nowMs} + CAST(${periodMs} AS BIGINT) THEN debounce_deadline_epoch_ms
          ELSE ${nowMs} + CAST(${periodMs} AS BIGINT) END
      WHERE ${condition}
      RETURNING workflow_uuid`,
    // Other libraries store the input here.
    ...(lacks(database, 'workflow_input')
      ? []
      : [
          sql`
            UPDATE ${table('workflow_input')}
            SET inputs = ${inputs}
            WHERE workflow_uuid IN (SELECT workflow_uuid FROM ${workflows} WHERE ${condition})`,
        ]),
  ]);
  return bounced[0]?.['workflow_uuid'] as string | undefined;
}

/**
 * Takes the key from a workflow that is no longer delayed. Only a delayed one has it, but another program may have changed
 * the status alone. Harmless if it arrives late.
 */
export async function releaseUnlessDelayed(database: Database, bounce: Bounce): Promise<void> {
  await database.run(sql`
    UPDATE ${workflows}
    SET deduplication_id = NULL
    WHERE ${holdsKey(bounce)} AND NOT ${isDelayed}`);
}

/** Uses uq_workflow_status_dedup_id. */
function holdsKey({ queueName, deduplicationID, name, className, applicationName }: Bounce): Sql {
  return sql`
    queue_name = ${queueName} AND deduplication_id = ${deduplicationID} AND deduplication_id IS NOT NULL
      AND is_debounced = TRUE AND name = ${name} AND COALESCE(class_name, '') = ${className ?? ''}
      AND ${applicationName === null ? sql`TRUE` : sql`(application_name = ${applicationName} OR application_name IS NULL)`}`;
}
