// A workflow with a history: five steps, an event set three times, a stream that steps wrote side by side and that was
// closed, and messages, one of them not received.
import type { Database } from '../../../src/database/database.js';
import { upsertEventHistory, upsertEvents } from '../../../src/features/message/events.sql.js';
import { insertMessages } from '../../../src/features/message/messages.sql.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { insertStreamValues, STREAM_CLOSED } from '../../../src/features/message/streams.sql.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { newMessage, newWorkflow, step } from '../../rig/records.js';

export const STEPS = 5;
export const CHILD = 'child';

/** Adds the workflow, with all that belongs to it, in the state given. */
export async function addWithHistory(database: Database, fields: Partial<NewWorkflow> = {}): Promise<string> {
  const { status = 'ERROR', ...rest } = fields;
  const workflow = newWorkflow(rest);
  const { workflowID } = workflow;
  const owner = workflow.owner ?? '';
  const text = (value: unknown) => ({ text: JSON.stringify(value), serialization: 'portable_json' });
  const events = [0, 1, 3].map((stepID) => ({ workflowID, owner, stepID, key: 'state', ...text(`after ${stepID}`) }));
  const late = { workflowID, owner, stepID: 4, key: 'late', ...text('yes') };
  // Step 3 was faster than step 1.
  const values = [0, 3, 1, 4].map((stepID, offset) => ({
    workflowID,
    owner,
    key: 'log',
    offset,
    stepID,
    ...text(stepID === 4 ? STREAM_CLOSED : `of ${stepID}`),
  }));
  const messages = ['received early', 'received late', 'waiting'].map((topic) =>
    newMessage({ messageID: `${workflowID}-${topic}`, destinationID: workflowID, topic }),
  );
  const consume = (topic: string, stepID: number) => sql`
    UPDATE ${table('notifications')} SET consumed = TRUE, consumed_by_function_id = ${stepID}
    WHERE message_uuid = ${`${workflowID}-${topic}`}`;
  await database.commit([
    insertWorkflows([workflow]),
    insertCheckpoints(
      Array.from({ length: STEPS }, (_, stepID) => ({
        owner,
        step: step(workflowID, stepID, {
          ...(stepID === 2 && { childWorkflowID: CHILD }),
          ...(stepID === 3 && { error: '{"message":"no"}', output: null }),
        }),
      })),
    ),
    upsertEvents([...events, late]),
    upsertEventHistory([...events, late]),
    insertStreamValues(values),
    insertMessages(messages.map((message) => ({ message }))),
    consume('received early', 1),
    consume('received late', 3),
    sql`INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs) VALUES (${workflowID}, '[1]')`,
    sql`INSERT INTO ${table('workflow_output')} (workflow_uuid, output) VALUES (${workflowID}, '2')`,
    sql`
      UPDATE ${table('workflow_status')} SET status = ${status}, error = '{}', completed_at = 5
      WHERE workflow_uuid = ${workflowID}`,
  ]);
  if (status !== 'PENDING') {
    await database.run(
      sql`UPDATE ${table('workflow_status')} SET owner_xid = NULL WHERE workflow_uuid = ${workflowID}`,
    );
  }
  return workflowID;
}

const TABLES = {
  workflow_status: 'workflow_uuid',
  workflow_input: 'workflow_uuid',
  workflow_output: 'workflow_uuid',
  operation_outputs: 'workflow_uuid',
  workflow_events: 'workflow_uuid',
  workflow_events_history: 'workflow_uuid',
  streams: 'workflow_uuid',
  notifications: 'destination_uuid',
} as const;

/** How many rows the workflow has in each table, without tables that have none. */
export async function countRows(database: Database, workflowID: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [name, column] of Object.entries(TABLES)) {
    const key = column === 'workflow_uuid' ? sql`t.workflow_uuid` : sql`t.destination_uuid`;
    const [row] = await database.read(sql`SELECT COUNT(*) AS n FROM ${table(name)} AS t WHERE ${key} = ${workflowID}`);
    if (row?.['n'] !== 0) counts[name] = row?.['n'] as number;
  }
  return counts;
}
