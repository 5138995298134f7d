import 'reflect-metadata';
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DBOS } from 'everstep';
import { AppModule } from './app.module.ts';
import { testDatabaseUrl } from './database.ts';

let app: INestApplication;
let url: string;

before(async () => {
  app = await NestFactory.create(AppModule.forRoot(testDatabaseUrl), { logger: ['warn', 'error'] });
  await app.listen(0, '127.0.0.1');
  url = await app.getUrl();
});

after(() => app.close());

test('a posted order runs as a workflow', async () => {
  const id = randomUUID();

  const posted = await fetch(`${url}/orders/${id}`, { method: 'POST' });

  assert.equal(posted.status, 202);
  assert.equal(await DBOS.getResult(`order-${id}`), `shipped the reservation of ${id}`);
  const shown = await fetch(`${url}/orders/${id}`);
  assert.deepEqual(await shown.json(), { status: 'SUCCESS', output: `shipped the reservation of ${id}` });
});
