import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { DBOS } from 'everstep';
import { app } from './app.ts';
import { testDatabaseUrl } from './database.ts';

before(async () => {
  DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl: testDatabaseUrl, logLevel: 'warn' });
  await DBOS.launch();
});

after(() => DBOS.shutdown());

test('a posted order runs as a workflow', async () => {
  const id = randomUUID();

  const posted = await app.request(`/orders/${id}`, { method: 'POST' });

  assert.equal(posted.status, 202);
  assert.equal(await DBOS.getResult(`order-${id}`), `shipped the reservation of ${id}`);
  const shown = await app.request(`/orders/${id}`);
  assert.deepEqual(await shown.json(), { status: 'SUCCESS', output: `shipped the reservation of ${id}` });
});
