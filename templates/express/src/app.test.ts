import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { DBOS } from 'everstep';
import { app } from './app.ts';
import { testDatabaseUrl } from './database.ts';

let server: Server;
let url: string;

before(async () => {
  DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl: testDatabaseUrl, logLevel: 'warn' });
  await DBOS.launch();
  await new Promise<void>((resolve) => (server = app.listen(0, '127.0.0.1', () => resolve())));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(async () => {
  server.close();
  await DBOS.shutdown();
});

test('a posted order runs as a workflow', async () => {
  const id = randomUUID();

  const posted = await fetch(`${url}/orders/${id}`, { method: 'POST' });

  assert.equal(posted.status, 202);
  assert.equal(await DBOS.getResult(`order-${id}`), `shipped the reservation of ${id}`);
  const shown = await fetch(`${url}/orders/${id}`);
  assert.deepEqual(await shown.json(), { status: 'SUCCESS', output: `shipped the reservation of ${id}` });
});
