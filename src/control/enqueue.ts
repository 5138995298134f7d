// The row of a workflow that waits in a queue.
import { newID } from '../base/ids.js';
import type { NewWorkflow } from '../store/workflows.js';

type Given = 'workflowID' | 'name' | 'inputs' | 'serialization' | 'queueName';

/** What is not given is as it is for a workflow that nobody said more of. */
export function enqueuedWorkflow(fields: Pick<NewWorkflow, Given> & Partial<NewWorkflow>): NewWorkflow {
  return {
    status: 'ENQUEUED',
    className: null,
    configName: null,
    authenticatedUser: '',
    assumedRole: '',
    authenticatedRoles: '[]',
    executorID: '',
    applicationVersion: null,
    applicationID: '',
    applicationName: null,
    timeoutMs: null,
    deadlineAt: null,
    queuePartitionKey: null,
    deduplicationID: null,
    priority: 0,
    debounceMs: null,
    isDebounced: false,
    recoveryAttempts: 0,
    parentWorkflowID: null,
    parentOwner: null,
    scheduleName: null,
    attributes: null,
    owner: null,
    // In the order of the calls: workflows of one millisecond are taken from their queue in it.
    creator: newID(),
    delayMs: null,
    ...fields,
  };
}
