// Messages into workflows: how many a second, and whether one is lost or doubled when everything is restarted.
import pg from 'pg';
import { silentLogger } from '../../src/kernel/base/log.js';
import { createDBOS, type DBOSInstance } from '../../src/faces/library/dbos.js';
import { type BrokerServer, hasPrograms } from '../../test/plugins/receiver/servers.js';
import { Tally } from '../../test/plugins/receiver/spy.js';
import { openDatabases, type Databases } from '../engine/databases.js';
import { type Measurement, perSecond, printTable, timed } from '../report.js';
import { BROKERS, type MeasuredBroker } from './brokers.js';

const COUNT = 20_000;
const TOPIC = 'bench';

export async function benchReceivers(): Promise<void> {
  const databases = await openDatabases();
  try {
    for (const broker of BROKERS) if (hasPrograms(...broker.programs)) await benchBroker(databases, broker);
  } finally {
    await databases.close();
  }
}

async function benchBroker(databases: Databases, broker: MeasuredBroker): Promise<void> {
  const server = await broker.start();
  try {
    const lines = [await measureEnqueueing(databases, broker, server), await measureRunning(databases, broker, server)];
    lines.push(await measureRestarts(databases, broker, server));
    printTable(
      `${broker.name} into workflows on postgres: ${COUNT.toLocaleString('en')} messages, batches of 250`,
      lines,
    );
  } finally {
    await server.remove();
  }
}

/** Until all workflows are enqueued; nobody runs them. */
async function measureEnqueueing(
  databases: Databases,
  broker: MeasuredBroker,
  { port }: BrokerServer,
): Promise<Measurement> {
  const url = await databases.postgres();
  const topic = `${TOPIC}-enqueue`;
  await broker.fill(port, topic, COUNT);
  const { DBOS, work } = await newInstance(url);
  // Nobody takes workflows from a queue that is not registered.
  broker.receive(DBOS, work, { port, topic, options: { queueName: 'nobody', maxQueueDepth: 2 * COUNT } });
  const cpu = process.cpuUsage();
  const elapsedMs = await timed(async () => {
    await DBOS.launch();
    await untilCounted(url, COUNT);
  });
  const line = { label: 'until enqueued', value: perSecond(COUNT, elapsedMs), ratio: cpuSince(cpu) };
  await DBOS.shutdown();
  return line;
}

/** Until all workflows have run, in the same process. */
async function measureRunning(
  databases: Databases,
  broker: MeasuredBroker,
  { port }: BrokerServer,
): Promise<Measurement> {
  const url = await databases.postgres();
  const topic = `${TOPIC}-run`;
  await broker.fill(port, topic, COUNT);
  const { DBOS, ran, work } = await newInstance(url);
  broker.receive(DBOS, work, { port, topic });
  const cpu = process.cpuUsage();
  const elapsedMs = await timed(async () => {
    await DBOS.launch();
    await ran.reach(COUNT);
  });
  const line = { label: 'until run, in the same process', value: perSecond(COUNT, elapsedMs), ratio: cpuSince(cpu) };
  await DBOS.shutdown({ workflowCompletionTimeoutMS: 60_000 });
  return line;
}

async function measureRestarts(
  databases: Databases,
  broker: MeasuredBroker,
  server: BrokerServer,
): Promise<Measurement> {
  const url = await databases.postgres();
  const topic = `${TOPIC}-restart`;
  await broker.fill(server.port, topic, COUNT);
  const ran = new Tally();
  const launch = async (): Promise<DBOSInstance> => {
    const { DBOS, work } = await newInstance(url, ran);
    broker.receive(DBOS, work, { port: server.port, topic });
    await DBOS.launch();
    return DBOS;
  };
  const first = await launch();
  await ran.reach(COUNT / 10);
  await server.stop();
  await server.start();
  await ran.reach(COUNT / 5);
  await first.shutdown();
  const second = await launch();
  await ran.reach((2 * COUNT) / 5);
  await cutConnections(url);
  await untilCounted(url, COUNT, "status = 'SUCCESS'");
  await second.shutdown();
  const total = await count(url);
  return {
    label: 'restart of broker, receiver and connections',
    value: `${COUNT - Math.min(COUNT, total)} lost`,
    ratio: `${Math.max(0, total - COUNT)} doubled`,
  };
}

/** On a database that is migrated already: that is not measured. */
async function newInstance(url: string, ran = new Tally()) {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
  await DBOS.migrate(url);
  const work = DBOS.registerWorkflow(async () => ran.add(), { name: 'work' });
  return { DBOS, ran, work };
}

/** What it would take on a machine that has nothing else to do. */
function cpuSince(before: NodeJS.CpuUsage): string {
  const { user, system } = process.cpuUsage(before);
  return `${Math.round((user + system) / COUNT)} µs of CPU a message`;
}

async function untilCounted(url: string, wanted: number, condition?: string): Promise<void> {
  while ((await count(url, condition)) < wanted) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function count(url: string, condition = 'true'): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ n: string }>(
      `SELECT COUNT(*) AS n FROM dbos.workflow_status WHERE ${condition}`,
    );
    return Number(rows[0]?.n);
  });
}

function cutConnections(url: string): Promise<unknown> {
  return withClient(url, (client) =>
    client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    ),
  );
}

async function withClient<T>(url: string, body: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await body(client);
  } finally {
    await client.end();
  }
}
