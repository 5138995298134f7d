// Workflows of any content for the tests of listing, put into the table in one statement.
import type { WorkflowRecord } from '../../../src/kernel/workflow/records.js';
import { rows, sql, table } from '../../../src/kernel/sql/sql.js';
import { workflowColumns } from '../../../src/database/columns.js';
import type { Database } from '../../../src/database/database.js';

const BASE: WorkflowRecord = {
  workflowID: '',
  status: 'SUCCESS',
  name: 'workflow',
  className: null,
  configName: null,
  inputs: '{"json":[1],"__dbos_serializer":"superjson"}',
  output: '{"json":2,"__dbos_serializer":"superjson"}',
  error: null,
  serialization: 'js_superjson',
  authenticatedUser: '',
  assumedRole: '',
  authenticatedRoles: '[]',
  request: null,
  executorID: 'local',
  applicationVersion: 'v1',
  applicationID: '',
  applicationName: 'test',
  createdAt: 1000,
  updatedAt: 1000,
  startedAt: null,
  completedAt: null,
  timeoutMs: null,
  deadlineAt: null,
  queueName: null,
  queuePartitionKey: null,
  deduplicationID: null,
  priority: 0,
  delayUntil: null,
  isRateLimited: false,
  debounceDeadlineAt: null,
  isDebounced: false,
  recoveryAttempts: 1,
  parentWorkflowID: null,
  forkedFrom: null,
  wasForkedFrom: false,
  scheduleName: null,
  attributes: null,
  owner: null,
  creator: null,
};

export function workflow(workflowID: string, fields: Partial<WorkflowRecord> = {}): WorkflowRecord {
  return { ...BASE, workflowID, ...fields };
}

export async function insert(database: Database, records: readonly WorkflowRecord[]): Promise<void> {
  const data = records.map((record) => workflowColumns.toValues(record));
  await database.run(sql`
    INSERT INTO ${table('workflow_status')} (${workflowColumns.names})
    SELECT ${workflowColumns.pass('r')}
    FROM ${rows('r', workflowColumns.columns, data)}`);
}

/** A row for each letter of the IDs, a millisecond apart. */
export function inOrder(...records: WorkflowRecord[]): WorkflowRecord[] {
  return records.map((record, index) => ({ ...record, createdAt: 1000 + index }));
}
