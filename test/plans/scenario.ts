// One of everything that users can ask of the system database, so that each statement of ours is planned at least once.
import { sql, table } from '../../src/kernel/sql/sql.js';
import { internals } from '../../src/kernel/base/internals.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { createDBOS, type DBOSInstance } from '../../src/faces/library/dbos.js';
import { Debouncer } from '../../src/faces/library/debouncer.js';
import { WorkflowQueue } from '../../src/faces/library/workflow-queue.js';
import { findFirstWaiting, findQueuesInUse } from '../../src/features/queue/waiting-work.sql.js';
import { loadStepPage, outlineStepPage } from '../../src/run/rows/steps.js';

const VERSION = 'v1';

function workflowsOf(DBOS: DBOSInstance) {
  const step = DBOS.registerStep(async (value: unknown) => value, { name: 'step' });
  const plain = DBOS.registerWorkflow(async (value: unknown = 1) => step(value), { name: 'plain' });
  const failing = DBOS.registerWorkflow(
    async () => {
      await step(1);
      throw new Error('on purpose');
    },
    { name: 'failing' },
  );
  const waiting = DBOS.registerWorkflow(async () => DBOS.recv<string>('go', 30), { name: 'waiting' });
  const scheduled = DBOS.registerWorkflow(async (_at: Date, _context: unknown) => void (await step(1)), {
    name: 'scheduled',
  });
  const everything = DBOS.registerWorkflow(
    async (round: string) => {
      await step('a');
      await DBOS.sleep(1);
      await DBOS.setEvent('key', 1);
      await DBOS.setEvent('key', 2);
      await DBOS.writeStream('stream', 'x');
      await DBOS.closeStream('stream');
      await DBOS.send(DBOS.workflowID ?? '', 'hello', 'self');
      await DBOS.recv('self', 1);
      await DBOS.recv('nothing', 0.01);
      const child = await DBOS.startWorkflow(plain)('child');
      await child.getResult();
      await DBOS.getEvent(DBOS.workflowID ?? '', 'key', 1);
      await DBOS.getEvent(DBOS.workflowID ?? '', 'missing', 0.01);
      await DBOS.startWorkflow(plain, { queueName: `free-${round}` })('queued child');
      await DBOS.readStream(DBOS.workflowID ?? '', 'stream').next();
      return DBOS.listWorkflows({ limit: 1 });
    },
    { name: 'everything' },
  );
  const recorded = DBOS.registerWorkflow(
    async () => {
      await step(1);
      await DBOS.sleep(1);
      return step(2);
    },
    { name: 'recorded', history: 'full' },
  );
  return { plain, failing, waiting, scheduled, everything, recorded };
}

/** Goes through the public API once. `round` keeps the names of several rounds apart. */
export async function playScenario(url: string, round: string): Promise<void> {
  const DBOS = createDBOS();
  const workflows = workflowsOf(DBOS);
  const inMemory = new WorkflowQueue(`memory-${round}`, { workerConcurrency: 2 }, DBOS);
  DBOS.setConfig({
    name: 'plans',
    applicationVersion: VERSION,
    executorID: 'plans',
    systemDatabaseUrl: url,
    logger: silentLogger,
    runAdminServer: true,
    adminPort: 0,
    adminOpen: true,
  });
  await DBOS.launch();
  const client = await DBOSClient.create({ systemDatabaseUrl: url, applicationName: 'plans' });
  try {
    await leaveDeadPeers(DBOS, round);
    await runQueues(DBOS, workflows, { round, queueName: inMemory.name });
    await runWorkflows(DBOS, workflows, round);
    await keepHistories(DBOS, workflows, round);
    await runSchedules(DBOS, workflows, round);
    await manage(DBOS, workflows, round);
    await lookAround(DBOS);
    await useClient(client, round);
    await serveAdmin(DBOS);
  } finally {
    await client.destroy();
    await DBOS.shutdown();
  }
  // Another engine finds what a dead one has left.
  const heir = createDBOS();
  workflowsOf(heir);
  heir.setConfig({
    name: 'plans',
    applicationVersion: VERSION,
    executorID: 'plans',
    systemDatabaseUrl: url,
    logger: silentLogger,
    leaseSeconds: 1,
  });
  await heir.launch();
  await heir.retrieveWorkflow(`orphan-${round}`).getResult();
  await heir.shutdown();
}

type Workflows = ReturnType<typeof workflowsOf>;

/** An engine whose lease is over, and workflows of engines that are dead. This one renews its own lease in time, then late. */
async function leaveDeadPeers(DBOS: DBOSInstance, round: string): Promise<void> {
  const { database, lease } = DBOS[internals].engineFor('the scenario').runtime;
  await lease.renew();
  await database.run(sql`UPDATE ${table('executors')} SET lease_until_epoch_ms = 1 WHERE incarnation_id > ''`);
  await lease.renew();
  await database.run(sql`
    INSERT INTO ${table('executors')}
      (incarnation_id, executor_id, application_name, application_version, host, pid, started_at, heartbeat_at,
       lease_until_epoch_ms, metadata)
    VALUES (${`dead-${round}`}, 'dead', 'plans', ${VERSION}, 'elsewhere', 1, 1, 1, 1, NULL)`);
  for (const [workflowID, owner] of [
    [`orphan-${round}`, `dead-${round}.1`],
    [`unlisted-${round}`, `unlisted-${round}.1`],
  ]) {
    await database.run(sql`
      INSERT INTO ${table('workflow_status')}
        (workflow_uuid, status, name, inputs, owner_xid, executor_id, application_name, application_version, created_at,
         updated_at, recovery_attempts)
      VALUES (${workflowID}, 'PENDING', 'plain', NULL, ${owner}, 'dead', 'plans', ${VERSION}, 1000, 1000, 0)`);
  }
}

/** Histories with every event stored: alone, many in a commit, and read in all ways. */
async function keepHistories(DBOS: DBOSInstance, { recorded }: Workflows, round: string): Promise<void> {
  const workflowID = `recorded-${round}`;
  await (await DBOS.startWorkflow(recorded, { workflowID })()).getResult();
  await Promise.all(Array.from({ length: 20 }, () => recorded()));
  await (await DBOS.rewindWorkflow(workflowID, { startStep: 0 })).getResult();
  let cursor = '';
  for await (const event of DBOS.tailHistory({ since: 0, follow: false })) ({ cursor } = event);
  for await (const event of DBOS.tailHistory({ since: cursor, follow: false })) void event;
  for await (const event of DBOS.getHistory(workflowID, { payloads: true })) void event;
}

async function runQueues(
  DBOS: DBOSInstance,
  { plain }: Workflows,
  { round, queueName }: { readonly round: string; readonly queueName: string },
): Promise<void> {
  const rateLimit = { limitPerPeriod: 50, periodSec: 60 };
  await DBOS.registerQueue(`free-${round}`);
  await DBOS.registerQueue(`limited-${round}`, {
    concurrency: 3,
    workerConcurrency: 2,
    rateLimit,
    priorityEnabled: true,
  });
  await DBOS.registerQueue(`parts-${round}`, {
    partitionQueue: true,
    concurrency: 4,
    partitionConcurrency: 1,
    partitionRateLimit: rateLimit,
  });
  const queued = await Promise.all([
    ...[queueName, `free-${round}`].flatMap((name) =>
      [1, 2, 3].map((value) => DBOS.startWorkflow(plain, { queueName: name })(value)),
    ),
    ...[1, 2, 3, 4, 5].map((priority) =>
      DBOS.startWorkflow(plain, { queueName: `limited-${round}`, enqueueOptions: { priority } })(priority),
    ),
    ...['a', 'b', 'c', 'a'].map((queuePartitionKey) =>
      DBOS.startWorkflow(plain, { queueName: `parts-${round}`, enqueueOptions: { queuePartitionKey } })(1),
    ),
    DBOS.startWorkflow(plain, { queueName: `free-${round}`, enqueueOptions: { delaySeconds: 0.05 } })('late'),
    DBOS.startWorkflow(plain, { queueName: `free-${round}`, timeoutMS: 60_000 })('in time'),
  ]);
  for (const handle of queued) await handle.getResult();
  await DBOS.pauseQueue(`free-${round}`);
  const held = await DBOS.startWorkflow(plain, {
    queueName: `free-${round}`,
    enqueueOptions: { deduplicationID: 'one' },
  })('held');
  await DBOS.startWorkflow(plain, { queueName: `free-${round}`, enqueueOptions: { deduplicationID: 'one' } })(
    'held',
  ).catch(() => {
    // Taken, as it should be.
  });
  await DBOS.explainWorkflow(held.workflowID);
  await DBOS.setWorkflowPriority(held.workflowID, 3);
  await DBOS.getQueueStats();
  await DBOS.resumeQueue(`free-${round}`);
  await held.getResult();
  await (await DBOS.retrieveQueue(`limited-${round}`))?.setGlobalConcurrency(5);
  await DBOS.registerQueue(`short-${round}`);
  await DBOS.deleteQueue(`short-${round}`);
  const debouncer = new Debouncer({ workflow: plain }, DBOS);
  await debouncer.debounce(`key-${round}`, 30, 1);
  await (await debouncer.debounce(`key-${round}`, 30, 2)).getResult();
}

async function runWorkflows(DBOS: DBOSInstance, workflows: Workflows, round: string): Promise<void> {
  const { plain, failing, waiting, everything } = workflows;
  await DBOS.withNextWorkflowID(`everything-${round}`, () => everything(round));
  await failing().catch(() => {
    // On purpose.
  });
  const receiver = await DBOS.startWorkflow(waiting, { workflowID: `waiting-${round}` })();
  await DBOS.sendBulk([{ destinationID: receiver.workflowID, message: 'now', topic: 'go' }]);
  await receiver.getResult();
  const starts = [1, 2, 3].map((value) => ({ args: [value] as [number] }));
  const handles = await DBOS.startWorkflows(plain, starts, { queueName: `free-${round}` });
  await DBOS.waitFirst(handles);
  await DBOS.waitAll(handles);
  await DBOS.getResult(handles[0]?.workflowID ?? '');
  const overdue = await DBOS.startWorkflow(waiting, { timeoutMS: 20 })();
  await overdue.getResult().catch(() => {
    // Cancelled at its deadline.
  });
  await Promise.all(['a', 'b'].map((key) => DBOS.getEvent(`everything-${round}`, key, 0.01)));
  await Promise.all(['a', 'b', 'c'].map((key) => DBOS.startWorkflow(plain)(key)));
  const state = { service: 'plans', workflowFnName: 'plain', key: round, value: '1', updateTime: 1 };
  await DBOS.upsertEventDispatchState(state);
  await DBOS.getEventDispatchState('plans', 'plain', round);
}

async function runSchedules(DBOS: DBOSInstance, { scheduled }: Workflows, round: string): Promise<void> {
  const name = `schedule-${round}`;
  await DBOS.createSchedule({ scheduleName: name, workflowFn: scheduled, schedule: '* * * * * *' });
  await (await DBOS.triggerSchedule(name)).getResult();
  await DBOS.backfillSchedule(name, new Date(0), new Date(2000));
  await DBOS.pauseSchedule(name);
  await DBOS.listSchedules();
  await DBOS.updateSchedule(name, { schedule: '0 0 1 1 *' });
  await DBOS.getSchedule(name);
  await DBOS.resumeSchedule(name);
  await DBOS.deleteSchedule(name);
}

async function manage(DBOS: DBOSInstance, { plain, failing, waiting }: Workflows, round: string): Promise<void> {
  const done = await DBOS.startWorkflow(plain)('to manage');
  await done.getResult();
  await (await DBOS.forkWorkflow(done.workflowID, 0)).getResult();
  await (await DBOS.forkWorkflow(`everything-${round}`, 8)).getResult();
  const failed = await DBOS.startWorkflow(failing)();
  await failed.getResult().catch(() => {
    // On purpose.
  });
  await DBOS.forkFromFailure([failed.workflowID], { fromLastFailure: true });
  const stuck = await DBOS.startWorkflow(waiting)();
  await DBOS.cancelWorkflow(stuck.workflowID, { cancelChildren: true });
  await DBOS.resumeWorkflow(stuck.workflowID);
  await DBOS.send(stuck.workflowID, 'now', 'go');
  await DBOS.retrieveWorkflow(stuck.workflowID).getResult();
  await (await DBOS.rewindWorkflow(done.workflowID)).getResult();
  await DBOS.updateWorkflowAttributes(done.workflowID, { a: 1 });
  await DBOS.setWorkflowAttributes(done.workflowID, { b: 2 });
  const delayed = await DBOS.startWorkflow(plain, {
    queueName: `free-${round}`,
    enqueueOptions: { delaySeconds: 3600 },
  })('later');
  await DBOS.setWorkflowDelay(delayed.workflowID, 0.01);
  await delayed.getResult();
  const exported = [];
  for await (const workflow of DBOS.exportWorkflows({ workflowIDs: [done.workflowID] })) exported.push(workflow);
  await DBOS.deleteWorkflow(done.workflowID, true);
  await DBOS.importWorkflows(exported);
  await DBOS.garbageCollect({ rowsThreshold: 1_000_000 });
  await DBOS.garbageCollect({ cutoffEpochTimestampMs: 5 });
  await DBOS.globalTimeout(5);
  await DBOS.setLatestApplicationVersion(VERSION);
  await DBOS.renameApplication(`nobody-${round}`, `other-${round}`);
}

async function lookAround(DBOS: DBOSInstance): Promise<void> {
  await DBOS.listApplicationVersions();
  await DBOS.getLatestApplicationVersion();
  await DBOS.listQueues();
  await DBOS.listWorkflows({ status: 'SUCCESS', workflowName: 'plain', limit: 5 });
  await DBOS.listQueuedWorkflows();
  await DBOS.listWorkflowPage({ limit: 2 });
  await DBOS.countWorkflows();
  await DBOS.getWorkflowAggregates({ groupByStatus: true, selectCount: true });
  await DBOS.getStepAggregates({ groupByFunctionName: true, selectCount: true });
  await DBOS.getMetrics(new Date(0).toISOString(), new Date().toISOString());
  const [some] = await DBOS.listWorkflows({ workflowName: 'everything', limit: 1 });
  const workflowID = some?.workflowID ?? '';
  await DBOS.listWorkflowSteps(workflowID);
  await DBOS.getAllEvents(workflowID);
  await DBOS.getAllStreamEntries(workflowID);
  await DBOS.getAllNotifications(workflowID);
  await DBOS.getWorkflowStatus(workflowID);
  await DBOS.explainWorkflow(workflowID);
  await DBOS.listOptionalIndexes();
  // What an engine runs only after some time, or for a huge history.
  const { database } = DBOS[internals].engineFor('the scenario').runtime;
  await findQueuesInUse(database, 50);
  await findFirstWaiting(database, 'free', 20);
  await outlineStepPage(database, workflowID, { after: 0, limit: 1000 });
  await loadStepPage(database, workflowID, { after: 0, limit: 1000 });
}

async function useClient(client: DBOSClient, round: string): Promise<void> {
  const handle = await client.enqueue<Workflows['plain']>(
    { queueName: `free-${round}`, workflowName: 'plain', appVersion: VERSION },
    'from outside',
  );
  await handle.getResult();
  await client.getEvent(`everything-${round}`, 'key', 1);
  await client.readStream(`everything-${round}`, 'stream').next();
  await client.send(`waiting-${round}`, 'too late', 'go');
}

async function serveAdmin(DBOS: DBOSInstance): Promise<void> {
  const address = DBOS.adminServer?.address();
  if (address === null || address === undefined || typeof address === 'string') return;
  const ofDashboard = [
    '/overview',
    '/overview?window=24h',
    '/attention',
    '/health',
    '/version-work',
    '/queues/free-fresh/details',
    '/workflow-count?exactMax=1',
    ...['timeline', 'tree', 'explanation'].map((part) => `/workflows/everything-fresh/${part}`),
  ];
  for (const path of ['/info', '/executors', '/versions', '/queues', ...ofDashboard].map((one) => `/api/v1${one}`)) {
    const response = await fetch(`http://127.0.0.1:${address.port}${path}`);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${text}`);
  }
  await fetch(`http://127.0.0.1:${address.port}/metrics`).then((response) => response.text());
}
