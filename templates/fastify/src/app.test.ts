import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { DBOS } from 'everstep';
import { createApp } from './app.ts';
import { testDatabaseUrl } from './database.ts';

const app = createApp(testDatabaseUrl);

before(() => app.ready());

after(() => app.close());

test('a posted order runs as a workflow', async () => {
  const id = randomUUID();

  const posted = await app.inject({ method: 'POST', url: `/orders/${id}` });

  assert.equal(posted.statusCode, 202);
  assert.equal(await DBOS.getResult(`order-${id}`), `shipped the reservation of ${id}`);
  const shown = await app.inject({ url: `/orders/${id}` });
  assert.deepEqual(shown.json(), { status: 'SUCCESS', output: `shipped the reservation of ${id}` });
});
