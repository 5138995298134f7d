// What the verbs publish after a change.
import type { NewWorkflow } from '../run/rows/workflows.js';
import type { Bus } from '../database/notify/bus.js';
import { topics } from '../database/notify/topics.js';

type Queued = Pick<NewWorkflow, 'status' | 'queueName' | 'queuePartitionKey'>;

/** Workflows were enqueued, to run now or later. */
export function announceQueued(bus: Bus, workflows: readonly Queued[]): void {
  if (workflows.some(({ status }) => status === 'DELAYED')) bus.publish(topics.delays, '');
  const ready = workflows.filter(({ status }) => status === 'ENQUEUED');
  bus.publishAll(
    topics.work,
    ready.map(({ queueName, queuePartitionKey }) => ({ queueName, partitionKey: queuePartitionKey })),
  );
}

/** Workflows were changed from outside their runs. Resolves when the runs of this process have been stopped. */
export async function announceChanged(bus: Bus, workflowIDs: readonly string[]): Promise<void> {
  await bus.publishAndWait(topics.changes, workflowIDs);
  bus.publishAll(topics.outcomes, workflowIDs);
}
