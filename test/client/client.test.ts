import Database from 'better-sqlite3';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/base/log.js';
import { DBOSClient, type DBOSClientConfig } from '../../src/client/client.js';
import { DebouncerClient } from '../../src/client/debouncer-client.js';
import { forEachDialect, onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

/** An engine with a few workflows, launched, and a client of its database. */
async function setup(dialect: TestDialect, config: Partial<DBOSClientConfig> = {}) {
  const { DBOS, url } = await createEngine(dialect);
  DBOS.registerWorkflow(async (a: number, b: number) => a + b, { name: 'add' });
  DBOS.registerWorkflow(async () => DBOS.recv<string>('topic', 60), { name: 'receive' });
  DBOS.registerWorkflow(
    async (value: string) => {
      await DBOS.setEvent('event', value);
      await DBOS.writeStream('stream', value);
      await DBOS.closeStream('stream');
    },
    { name: 'tell' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const client = await connect(url, config);
  return { DBOS, url, client };
}

async function connect(url: string, config: Partial<DBOSClientConfig> = {}): Promise<DBOSClient> {
  const client = await DBOSClient.create({
    systemDatabaseUrl: url,
    logger: silentLogger,
    applicationName: 'test',
    ...config,
  });
  onTestFinished(() => client.destroy());
  return client;
}

describe('a client', () => {
  forEachDialect((dialect) => {
    test('enqueues a workflow and gets its result', async () => {
      const { client } = await setup(dialect);

      const handle = await client.enqueue({ queueName: 'q', workflowName: 'add' }, 1, 2);

      expect(await handle.getResult()).toBe(3);
      expect(await handle.getStatus()).toMatchObject({ status: 'SUCCESS', output: 3, applicationName: 'test' });
      expect(await handle.getWorkflowInputs()).toEqual([1, 2]);
    });

    test('sends messages, and reads events and streams', async () => {
      const { client } = await setup(dialect);
      const receiving = await client.enqueue({ queueName: 'q', workflowName: 'receive' });
      const telling = await client.enqueue({ queueName: 'q', workflowName: 'tell' }, 'hello');

      await client.send(receiving.workflowID, 'hi', 'topic', 'key');
      await client.send(receiving.workflowID, 'hi', 'topic', 'key');

      expect(await receiving.getResult()).toBe('hi');
      expect(await client.getAllNotifications(receiving.workflowID)).toHaveLength(1);
      expect(await client.getEvent(telling.workflowID, 'event')).toBe('hello');
      const values: unknown[] = [];
      for await (const value of client.readStream(telling.workflowID, 'stream')) values.push(value);
      expect(values).toEqual(['hello']);
    });

    test('debounces', async () => {
      const { client } = await setup(dialect);
      const debouncer = new DebouncerClient(client, { workflowName: 'add' });

      const first = await debouncer.debounce('key', 60_000, 1, 1);
      const second = await debouncer.debounce('key', 50, 2, 2);

      expect(second.workflowID).toBe(first.workflowID);
      expect(await second.getResult()).toBe(4);
    });

    test('cancels and resumes', async () => {
      const { client } = await setup(dialect);
      const handle = await client.enqueue({ queueName: 'q', workflowName: 'receive' });

      await client.cancelWorkflow(handle.workflowID);
      expect((await handle.getStatus())?.status).toBe('CANCELLED');
      await client.resumeWorkflow(handle.workflowID, { queueName: 'q' });
      await client.send(handle.workflowID, 'now', 'topic');

      expect(await handle.getResult()).toBe('now');
    });
  });
});

describe('a transaction of the caller', () => {
  onlyOn('postgres', (dialect) => {
    test('enqueues and sends when it commits, and not when it is rolled back', async () => {
      const { client, url } = await setup(dialect);
      const own = new pg.Client(url);
      await own.connect();
      onTestFinished(() => own.end());
      const receiving = await client.enqueue({ queueName: 'q', workflowName: 'receive' });

      await own.query('BEGIN');
      const lost = await client.enqueueInTransaction(own, { queueName: 'q', workflowName: 'add' }, 1, 2);
      await own.query('ROLLBACK');
      await own.query('BEGIN');
      const kept = await client.enqueueInTransaction(own, { queueName: 'q', workflowName: 'add' }, 3, 4);
      await client.sendInTransaction(own, receiving.workflowID, 'sent', 'topic');
      expect(await client.getWorkflow(kept.workflowID)).toBeUndefined();
      await own.query('COMMIT');

      expect(await kept.getResult()).toBe(7);
      expect(await receiving.getResult()).toBe('sent');
      expect(await client.getWorkflow(lost.workflowID)).toBeUndefined();
    });
  });

  onlyOn('sqlite', (dialect) => {
    test('enqueues and sends when it commits, and not when it is rolled back', async () => {
      const { client, url } = await setup(dialect);
      const own = new Database(new URL(url).pathname.replace(/^\/(?=\/)/, ''));
      onTestFinished(() => void own.close());
      const receiving = await client.enqueue({ queueName: 'q', workflowName: 'receive' });

      own.exec('BEGIN IMMEDIATE');
      const lost = await client.enqueueInTransaction(own, { queueName: 'q', workflowName: 'add' }, 1, 2);
      own.exec('ROLLBACK');
      own.exec('BEGIN IMMEDIATE');
      const kept = await client.enqueueInTransaction(own, { queueName: 'q', workflowName: 'add' }, 3, 4);
      await client.sendInTransaction(own, receiving.workflowID, 'sent', 'topic');
      own.exec('COMMIT');

      expect(await kept.getResult()).toBe(7);
      expect(await receiving.getResult()).toBe('sent');
      expect(await client.getWorkflow(lost.workflowID)).toBeUndefined();
    });
  });
});
