// Debouncing: putting off a delayed workflow that stands for all calls with its key, and giving it the latest input.
import { nowMs, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { unindexed } from '../runs/states.js';

export interface Bounce {
  readonly queueName: string;
  /** The key, as it stands in the row. */
  readonly deduplicationID: string;
  readonly name: string;
  readonly className: string | null;
  /** Whose workflow it must be, if it is somebody's; null for anybody's. */
  readonly applicationName: string | null;
  /** How long to wait from now on; not beyond the workflow's own limit. */
  readonly periodMs: number;
  readonly inputs: string;
  readonly serialization: string;
}

const workflows = table('workflow_status');
const isDelayed = unindexed(sql`status = 'DELAYED'`);

/** Puts off the workflow that holds the key, if it still waits, and gives its ID. */
export async function bounceIfDelayed(database: Database, bounce: Bounce): Promise<string | undefined> {
  const { queueName, deduplicationID, name, className, applicationName, periodMs, inputs, serialization } = bounce;
  // Rides uq_workflow_status_dedup_id.
  const condition = sql`
    queue_name = ${queueName} AND deduplication_id = ${deduplicationID} AND deduplication_id IS NOT NULL
      AND ${isDelayed} AND is_debounced = TRUE
      AND name = ${name} AND COALESCE(class_name, '') = ${className ?? ''}
      AND ${applicationName === null ? sql`TRUE` : sql`(application_name = ${applicationName} OR application_name IS NULL)`}`;
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
    // Where another library has put the input of the same workflow.
    sql`
      UPDATE ${table('workflow_input')}
      SET inputs = ${inputs}
      WHERE workflow_uuid IN (SELECT workflow_uuid FROM ${workflows} WHERE ${condition})`,
  ]);
  return bounced[0]?.['workflow_uuid'] as string | undefined;
}
