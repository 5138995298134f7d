// A small shop with workflows in every state, behind the admin interface. For screenshots, and for working on the pages:
//
//   npx tsx dashboard/scripts/shop.mjs
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import Database from 'better-sqlite3';
import { createAdmin } from '../../src/admin.ts';
import { createDBOS } from '../../src/faces/library/dbos.ts';

const QUIET = { debug() {}, info() {}, warn() {}, error() {} };

function registerWorkflows(DBOS) {
  const step = (name, ms, result) => DBOS.runStep(() => delay(ms, result), { name });
  const ship = DBOS.registerWorkflow(
    async (order) => {
      await step('label', 120, { carrier: 'post' });
      return step('hand over', 200, { order, parcel: `P-${order}` });
    },
    { name: 'ship' },
  );
  const flaky = { failures: 2 };
  DBOS.registerWorkflow(
    async (order, lines) => {
      await step('reserve', 180, { reserved: lines });
      await DBOS.runStep(
        async () => {
          await delay(140);
          if (flaky.failures-- > 0) throw new Error('CardTimeout: the bank did not answer');
          return { charge: `ch_${order}`, cents: 4200 };
        },
        { name: 'charge', retriesAllowed: true, intervalSeconds: 0.4, maxAttempts: 5 },
      );
      await DBOS.setEvent('progress', { charged: true, at: new Date() });
      await DBOS.sleep(900);
      const handle = await DBOS.startWorkflow(ship, { workflowID: `ship-${order}` })(order);
      await handle.getResult();
      for (let part = 1; part <= 3; part++) await DBOS.writeStream('mail', `Part ${part} of the confirmation`);
      const approval = await DBOS.recv('approval', 86_400);
      return step('close', 60, { order, approval });
    },
    { name: 'fulfil' },
  );
  DBOS.registerWorkflow(
    async (order) => {
      await step('look up', 60, { customer: 'c-9' });
      await DBOS.runStep(
        async () => {
          throw new Error('card declined: insufficient funds');
        },
        { name: 'charge' },
      );
      return order;
    },
    { name: 'charge' },
  );
  DBOS.registerWorkflow(async (at) => step('count sales', 90, { at, sales: 128 }), { name: 'report' });
  DBOS.registerWorkflow(async (customer) => step('send', 30, { customer, sent: true }), { name: 'remind' });
}

/** Starts the shop. `close` ends it and removes its database. */
export async function openShop({ port = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-shop-'));
  const DBOS = createDBOS();
  DBOS.setConfig({
    name: 'shop',
    systemDatabaseUrl: `sqlite:///${join(folder, 'shop.sqlite')}`,
    executorID: 'web-2',
    applicationVersion: 'v3f9',
    logger: QUIET,
  });
  registerWorkflows(DBOS);
  await DBOS.launch();
  const admin = createAdmin({ source: DBOS, isOpen: true });
  const server = createServer((request, response) => void admin.handle(request, response));
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  await fill(DBOS, url);
  await settle(DBOS);
  await spread(DBOS, join(folder, 'shop.sqlite'));
  const close = async () => {
    admin.close();
    server.closeAllConnections();
    server.close();
    await DBOS.shutdown();
    rmSync(folder, { recursive: true, force: true });
  };
  return { DBOS, url, close };
}

/** Waits until nothing goes on any more: an order waits for its approval, and a queue is paused. */
async function settle(DBOS) {
  for (;;) {
    const active = await DBOS.listWorkflows({ status: ['PENDING', 'ENQUEUED'] });
    const steps = (await DBOS.listWorkflowSteps('order-17')) ?? [];
    const isQuiet = active.every(({ workflowID, queueName }) => workflowID === 'order-17' || queueName === 'tenants');
    if (isQuiet && steps.filter(({ name }) => name === 'DBOS.writeStream').length === 3) return;
    await delay(50);
  }
}

/** Moves workflows that have ended back in time, so that the charts have something to show. */
async function spread(DBOS, path) {
  const database = new Database(path);
  const columns = ['created_at', 'updated_at', 'started_at_epoch_ms', 'completed_at'];
  const setters = columns.map((column) => `${column} = ${column} - @ms`).join(', ');
  const move = database.prepare(`UPDATE workflow_status SET ${setters} WHERE workflow_uuid = @id`);
  for (let order = 1; order <= 40; order++) move.run({ id: `r-${200 + order}`, ms: Math.round(order ** 1.6 * 9000) });
  for (let order = 4; order <= 8; order++) move.run({ id: `order-0${order}`, ms: (order - 3) * 420_000 });
  database.close();
}

async function fill(DBOS, url) {
  const post = async (path, body, method = 'POST') => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.status === 204 ? undefined : answer.json();
  };
  await DBOS.registerQueue('mail', { workerConcurrency: 5 });
  await DBOS.registerQueue('billing', { globalConcurrency: 20, rateLimit: { limitPerPeriod: 100, periodSec: 60 } });
  await DBOS.registerQueue('tenants', { partitionQueue: true, partitionConcurrency: 1 });
  const enqueue = (queueName, workflowName, workflowID, args, more = {}) =>
    post('/workflows', { queueName, workflowName, workflowID, args, ...more });
  for (let order = 1; order <= 40; order++) await enqueue('mail', 'remind', `r-${200 + order}`, [`c-${order}`]);
  for (let order = 1; order <= 5; order++) await enqueue('billing', 'charge', `order-0${order + 3}`, [order]);
  await enqueue('mail', 'fulfil', 'order-17', [17, [{ sku: 'lamp', pieces: 2 }]], { attributes: { customer: 'c-9' } });
  await enqueue('mail', 'remind', 'r-300', ['c-300'], { delaySeconds: 7200 });
  await enqueue('mail', 'remind', 'r-301', ['c-301'], { delaySeconds: 90_000 });
  await post('/workflows/r-301/cancel', { reason: 'customer unsubscribed', actor: 'support' });
  for (const [scheduleName, schedule] of [
    ['hourly-report', '0 * * * *'],
    ['nightly-report', '0 3 * * *'],
    ['stock-check', '*/20 8-18 * * *'],
  ]) {
    await post('/schedules', { scheduleName, schedule, workflowName: 'report' });
    await post(`/schedules/${scheduleName}/trigger`);
  }
  for (const tenant of ['acme', 'acme', 'acme', 'globex', 'globex', 'initech']) {
    await post('/queues/tenants/pause');
    await enqueue('tenants', 'remind', undefined, [tenant], { queuePartitionKey: tenant });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await openShop({ port: Number(process.env.PORT ?? 4400) });
  console.log(`${url}/ui/`);
}
