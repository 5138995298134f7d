// Rewinds a workflow that has ended to one of its steps, under the same ID.
import { afterRewind } from '../../kernel/workflow/creator.js';
import { lock, nowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { lacks } from '../../database/lacking.js';
import { keepHistory } from '../history/journal.sql.js';
import { type ChangeNote, noted } from '../history/notes.sql.js';
import { insertLatestEvents } from './forks.sql.js';
import { STREAM_CLOSED } from '../message/streams.sql.js';
import { hasEnded } from '../../run/rows/states.js';

export interface Rewind {
  readonly workflowID: string;
  /** The first step to execute again. */
  readonly startStep: number;
  /** A token of the call, to recognise its own rewind. */
  readonly creator: string;
  readonly queueName: string;
  /** Null keeps the key. */
  readonly partitionKey: string | null;
  /** Null keeps the version. */
  readonly applicationVersion: string | null;
  readonly note?: ChangeNote;
}

/** The queue and partition of a rewound workflow. */
export interface Rewound {
  readonly queueName: string;
  readonly partitionKey: string | null;
}

const workflows = table('workflow_status');
const streams = table('streams');
const events = table('workflow_events');
const CLOSED_TEXT = JSON.stringify(STREAM_CLOSED);

/** Rewinds the workflow in one commit; undefined if it has not ended. */
export async function rewindIfEnded(database: Database, rewind: Rewind): Promise<Rewound | undefined> {
  const { workflowID, startStep } = rewind;
  return database.transaction(async (tx) => {
    const [ended] = await tx.run(lockIfEnded(workflowID));
    if (!ended) return undefined;
    const creator = afterRewind(rewind.creator, ended['creator_xid'] as string | null);
    // Before the change, which overwrites the outcome.
    if (!lacks(tx, 'journal')) for (const copy of keepHistory(tx, workflowID, startStep)) await tx.run(copy);
    const note = { ...rewind.note, source: 'rewind', startStep } as const;
    const [rewound] = await noted(tx, note, () => tx.run(requeueIfEnded({ ...rewind, creator })));
    if (!rewound) return undefined;
    const statements = [
      reopenStreams(workflowID, startStep),
      deleteFrom('operation_outputs', workflowID, startStep),
      deleteFrom('workflow_events_history', workflowID, startStep),
      sql`DELETE FROM ${events} WHERE workflow_uuid = ${workflowID}`,
      insertLatestEvents([workflowID]),
      sql`
        DELETE FROM ${table('notifications')}
        WHERE destination_uuid = ${workflowID} AND (consumed = FALSE OR consumed_by_function_id >= ${startStep})`,
      sql`DELETE FROM ${table('workflow_output')} WHERE workflow_uuid = ${workflowID}`,
    ];
    if (!lacks(tx, 'step_attempts')) statements.push(deleteFrom('step_attempts', workflowID, startStep));
    for (const statement of statements) await tx.run(statement);
    return { queueName: rewind.queueName, partitionKey: rewound['queue_partition_key'] as string | null };
  });
}

function requeueIfEnded({ workflowID, creator, queueName, partitionKey, applicationVersion }: Rewind): Sql {
  return sql`
    UPDATE ${workflows}
    SET status = 'ENQUEUED', queue_name = ${queueName}, queue_partition_key = COALESCE(${partitionKey}, queue_partition_key),
      application_version = COALESCE(${applicationVersion}, application_version), recovery_attempts = 0, output = NULL,
      error = NULL, workflow_deadline_epoch_ms = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL,
      completed_at = NULL, delay_until_epoch_ms = NULL, owner_xid = NULL, creator_xid = ${creator}, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID} AND ${hasEnded()}
    RETURNING queue_partition_key`;
}

/** No other can change its state until the commit. */
function lockIfEnded(workflowID: string): Sql {
  return sql`
    SELECT w.creator_xid
    FROM ${workflows} AS w
    WHERE w.workflow_uuid = ${workflowID} AND ${hasEnded('w')}
    ${lock('update', 'w')}`;
}

function deleteFrom(
  name: 'operation_outputs' | 'workflow_events_history' | 'step_attempts',
  workflowID: string,
  startStep: number,
): Sql {
  return sql`DELETE FROM ${table(name)} WHERE workflow_uuid = ${workflowID} AND function_id >= ${startStep}`;
}

/**
 * Deletes end marks written from the step on, and values after them, which no reader sees. All other values stay: they may
 * have been read.
 */
function reopenStreams(workflowID: string, startStep: number): Sql {
  return sql`
    DELETE FROM ${streams} AS s
    WHERE s.workflow_uuid = ${workflowID} AND s.function_id >= ${startStep} AND EXISTS (
      SELECT 1
      FROM ${streams} AS e
      WHERE e.workflow_uuid = s.workflow_uuid AND e.key = s.key AND e."offset" <= s."offset"
        AND e.function_id >= ${startStep} AND e.value IN (${STREAM_CLOSED}, ${CLOSED_TEXT}))`;
}
