// Columns, defaults and refusals that programs and tools look at.
import { ConfiguredInstance, DBOS } from '@dbos-inc/dbos-sdk';
import { enqueueWorkflows, prepareEnqueuedWorkflow } from '@dbos-inc/dbos-sdk/eventreceiver';
import { configure, failureOf, print, settings, sql, until, within } from '../program.js';

const quick = DBOS.registerWorkflow(async () => 'done', { name: 'quick' });
const streaming = DBOS.registerWorkflow(
  async () => {
    await DBOS.writeStream('open', 1);
    await DBOS.writeStream('closed', 2);
    await DBOS.closeStream('closed');
  },
  { name: 'streaming' },
);

const accepting = DBOS.registerWorkflow(async (...given: string[]) => given.length, { name: 'accepting' });

async function rowOf(workflowID: string): Promise<Record<string, unknown>> {
  const [row] = await sql(
    `SELECT started_at_epoch_ms, executor_id, status FROM workflow_status WHERE workflow_uuid = '${workflowID}'`,
  );
  return row ?? {};
}

function named(): unknown {
  class Twin extends ConfiguredInstance {
    async work(): Promise<void> {}
  }
  Twin.prototype.work = DBOS.registerWorkflow(Twin.prototype.work, { ctorOrProto: Twin.prototype, name: 'work' });
  return new Twin('one');
}

async function main(): Promise<void> {
  configure({ executorID: 'this' });
  await DBOS.launch();
  const found = await within({
    'a direct run': async () => {
      await (await DBOS.startWorkflow(quick, { workflowID: 'direct' })()).getResult();
      const { started_at_epoch_ms, ...row } = await rowOf('direct');
      return { ...row, started: started_at_epoch_ms === null ? null : 'set' };
    },
    'an enqueued row': async () => {
      await DBOS.registerQueue('slow', { concurrency: 1 });
      await DBOS.startWorkflow(quick, {
        workflowID: 'delayed',
        queueName: 'slow',
        enqueueOptions: { delaySeconds: 600 },
      })();
      return rowOf('delayed');
    },
    'defaults of a queue': async () => {
      const queue = await DBOS.registerQueue('plain', {});
      return [queue.priorityEnabled, queue.partitionQueue, queue.workerConcurrency ?? null, queue.concurrency ?? null];
    },
    'no worker': () =>
      failureOf(async () => (await DBOS.registerQueue('none', { workerConcurrency: 0 })).workerConcurrency),
    'no concurrency': () => failureOf(async () => (await DBOS.registerQueue('never', { concurrency: 0 })).concurrency),
    'a rate of zero': () =>
      failureOf(
        async () => (await DBOS.registerQueue('rate', { rateLimit: { limitPerPeriod: 0, periodSec: 1 } })).rateLimit,
      ),
    'a period of zero': () =>
      failureOf(
        async () => (await DBOS.registerQueue('period', { rateLimit: { limitPerPeriod: 1, periodSec: 0 } })).rateLimit,
      ),
    'settings of partitions': async () => {
      const queue = await DBOS.registerQueue('parts', { partitionQueue: true, concurrency: 3, workerConcurrency: 2 });
      return [
        queue.partitionQueue,
        queue.concurrency,
        queue.workerConcurrency,
        (queue as { partitionConcurrency?: number }).partitionConcurrency ?? null,
        (queue as { partitionWorkerConcurrency?: number }).partitionWorkerConcurrency ?? null,
        await queue.getConcurrency(),
      ];
    },
    'a batch in a partition': async () => {
      const isPeer5 = settings.target === 'dbos-5';
      await DBOS.registerQueue('ordered', isPeer5 ? { partitionConcurrency: 1 } : { partitionQueue: true });
      const workflowIDs = ['b2', 'b1', 'b3', 'b0'];
      const prepare = (workflowID: string) =>
        prepareEnqueuedWorkflow(quick, [], { queueName: 'ordered', workflowID, queuePartitionKey: 'key' });
      await enqueueWorkflows(await Promise.all(workflowIDs.map(prepare)));
      const rows = await sql(`SELECT workflow_uuid FROM workflow_status WHERE queue_name = 'ordered'
        ORDER BY created_at, workflow_uuid`);
      return rows.map(({ workflow_uuid }) => workflow_uuid);
    },
    'all entries of streams': async () => {
      await (await DBOS.startWorkflow(streaming, { workflowID: 'streams' })()).getResult();
      return DBOS.getAllStreamEntries?.('streams') ?? 'missing';
    },
  });
  // Releases up to 3 sent messages in workflows of this name.
  await (await DBOS.startWorkflow(accepting, { workflowID: 'left' })('direct', 'hello', 'greetings')).getResult();
  await DBOS.shutdown();
  await sql(`UPDATE workflow_status SET name = 'temp_workflow-send-undefined', status = 'PENDING', executor_id = 'this',
    owner_xid = NULL, output = NULL, completed_at = NULL WHERE workflow_uuid = 'left'`);
  await DBOS.launch();
  await until(async () => (await rowOf('left'))['status'] === 'SUCCESS');
  found['a temporary send that was left'] = [
    (await rowOf('left'))['status'],
    (await sql(`SELECT topic FROM notifications WHERE destination_uuid = 'direct'`)).map(({ topic }) => topic),
  ];
  await DBOS.shutdown();
  found['two classes of one name'] = await failureOf(async () => {
    named();
    named();
    configure();
    await DBOS.launch();
  });
  await DBOS.shutdown({ deregister: true });
  const missing = settings.url.startsWith('sqlite') ? `${settings.url}.absent` : `${settings.url}_absent`;
  configure({ systemDatabaseUrl: missing, runMigrations: false });
  found['a missing database'] = await failureOf(() => DBOS.launch());
  print(found);
}

void main();
