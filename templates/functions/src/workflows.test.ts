import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { DBOS } from 'everstep';
import { testDatabaseUrl } from './database.ts';
import { order } from './workflows.ts';

before(async () => {
  DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl: testDatabaseUrl, logLevel: 'warn' });
  await DBOS.launch();
});

after(() => DBOS.shutdown());

test('an order is reserved and shipped', async () => {
  assert.equal(await order('a lamp'), 'shipped the reservation of a lamp');
});

test('an order that is placed twice is shipped once', async () => {
  const workflowID = `order-${randomUUID()}`;
  const first = await DBOS.startWorkflow(order, { workflowID })('a lamp');
  const second = await DBOS.startWorkflow(order, { workflowID })('a lamp');

  assert.equal(await second.getResult(), await first.getResult());
  const steps = await DBOS.listWorkflowSteps(workflowID);
  assert.deepEqual(
    steps?.map((step) => step.name),
    ['reserve', 'ship'],
  );
});
