// Twenty workflows write checkpoints for ever. A line on standard output says that a checkpoint is durable.
import { newID } from '../../src/base/ids.js';
import { consoleLogger } from '../../src/base/log.js';
import { Store } from '../../src/store/store.js';
import type { NewWorkflow } from '../../src/store/workflows.js';

const store = await Store.open({ url: process.argv[2] ?? '', logger: consoleLogger('warn') });
await Promise.all(Array.from({ length: 20 }, (_, index) => runOrder(index)));

async function runOrder(index: number): Promise<void> {
  const order = newOrder(`order-${index}-${newID()}`);
  await store.writer.start(order);
  for (let stepID = 0; ; stepID += 1) {
    const now = Date.now();
    await store.writer.checkpoint({
      owner: order.creator,
      step: {
        workflowID: order.workflowID,
        stepID,
        name: 'pack',
        output: '{"json":"packed","__dbos_serializer":"superjson"}',
        error: null,
        childWorkflowID: null,
        startedAt: now,
        completedAt: now,
        serialization: 'js_superjson',
        applicationName: 'demo',
      },
    });
    process.stdout.write(`${order.workflowID} ${stepID}\n`);
  }
}

function newOrder(workflowID: string): NewWorkflow {
  const token = newID();
  return {
    workflowID,
    status: 'PENDING',
    name: 'order',
    className: null,
    configName: null,
    inputs: '{"json":[],"__dbos_serializer":"superjson"}',
    serialization: 'js_superjson',
    authenticatedUser: '',
    assumedRole: '',
    authenticatedRoles: '[]',
    executorID: 'local',
    applicationVersion: 'demo',
    applicationID: '',
    applicationName: 'demo',
    timeoutMs: null,
    deadlineAt: null,
    queueName: null,
    queuePartitionKey: null,
    deduplicationID: null,
    priority: 0,
    debounceDeadlineAt: null,
    isDebounced: false,
    recoveryAttempts: 1,
    parentWorkflowID: null,
    scheduleName: null,
    attributes: null,
    owner: token,
    creator: token,
    parentOwner: null,
    delayMs: null,
  };
}
