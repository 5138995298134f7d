// Rows for tests, with only what matters written out.
import { newID } from '../../src/kernel/base/ids.js';
import type { StepRecord } from '../../src/kernel/workflow/records.js';
import type { NewMessage } from '../../src/features/message/messages.sql.js';
import type { NewWorkflow } from '../../src/run/rows/workflows.js';

export function newWorkflow(fields: Partial<NewWorkflow> = {}): NewWorkflow {
  const token = newID();
  return {
    workflowID: newID(),
    status: 'PENDING',
    name: 'workflow',
    className: null,
    configName: null,
    inputs: '{"json":[],"__dbos_serializer":"superjson"}',
    serialization: 'js_superjson',
    authenticatedUser: '',
    assumedRole: '',
    authenticatedRoles: '[]',
    executorID: 'local',
    applicationVersion: 'v1',
    applicationID: '',
    applicationName: 'test',
    timeoutMs: null,
    deadlineAt: null,
    queueName: null,
    queuePartitionKey: null,
    deduplicationID: null,
    priority: 0,
    debounceMs: null,
    isDebounced: false,
    recoveryAttempts: 1,
    parentWorkflowID: null,
    scheduleName: null,
    attributes: null,
    owner: token,
    creator: token,
    parentOwner: null,
    delayMs: null,
    ...fields,
  };
}

export function step(workflowID: string, stepID: number, fields: Partial<StepRecord> = {}): StepRecord {
  return {
    workflowID,
    stepID,
    name: `step ${stepID}`,
    output: '{"json":1,"__dbos_serializer":"superjson"}',
    error: null,
    childWorkflowID: null,
    startedAt: 1_700_000_000_000,
    completedAt: 1_700_000_000_001,
    serialization: 'js_superjson',
    applicationName: 'test',
    argumentsHash: null,
    ...fields,
  };
}

export function newMessage(fields: Partial<NewMessage> = {}): NewMessage {
  return { messageID: newID(), destinationID: 'w', topic: 't', text: '1', serialization: 'portable_json', ...fields };
}
