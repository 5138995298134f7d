// Enqueueing and sending in a transaction of the caller's own: of `pg`, and of whichever SQLite library there is.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { connect, failureOf, ownConnection, setup } from './scene.js';

const ADD = { queueName: 'q', workflowName: 'add' } as const;

async function setupOwn(dialect: TestDialect) {
  const scene = await setup(dialect);
  const own = await ownConnection(scene.url);
  await own.run('CREATE TABLE orders (id TEXT)');
  return { ...scene, own };
}

describe('a transaction of the caller', () => {
  forEachDialect((dialect) => {
    test('enqueues and sends when it commits, together with what the caller writes', async () => {
      const { client, own } = await setupOwn(dialect);
      const receiving = await client.enqueue({ queueName: 'q', workflowName: 'receive' });

      await own.begin();
      await own.run(`INSERT INTO orders VALUES ('o')`);
      const added = await client.enqueueInTransaction(own.connection, ADD, 3, 4);
      const echoed = await client.enqueuePortableInTransaction<object>(
        own.connection,
        { queueName: 'q', workflowName: 'echo' },
        [{ at: new Date(0) }],
      );
      await client.sendInTransaction(own.connection, receiving.workflowID, 'sent', 'topic', 'key');
      await client.sendInTransaction(own.connection, receiving.workflowID, 'sent again', 'topic', 'key');
      expect(await client.getWorkflow(added.workflowID)).toBeUndefined();
      await own.run('COMMIT');

      // Nobody looks by itself so soon: the commit has woken the dispatcher and the receiver.
      expect(await added.getResult()).toBe(7);
      expect(await echoed.getResult()).toEqual({ at: '1970-01-01T00:00:00.000Z' });
      expect(await receiving.getResult()).toBe('sent');
      expect(await client.getAllNotifications(receiving.workflowID)).toHaveLength(1);
    });

    test('leaves nothing behind when it is rolled back', async () => {
      const { client, own } = await setupOwn(dialect);
      const receiving = await client.enqueue({ queueName: 'q', workflowName: 'receive' });

      await own.begin();
      const lost = await client.enqueueInTransaction(own.connection, ADD, 1, 2);
      await client.sendInTransaction(own.connection, receiving.workflowID, 'lost', 'topic');
      await own.run('ROLLBACK');

      expect(await client.getWorkflow(lost.workflowID)).toBeUndefined();
      expect(await client.getAllNotifications(receiving.workflowID)).toEqual([]);
    });

    test('goes on after each refusal, and commits the rest', async () => {
      const { client, own } = await setupOwn(dialect);
      const holder = { ...ADD, deduplicationID: 'd', delaySeconds: 1000 };
      await client.enqueue({ ...holder, workflowID: 'holder' }, 1, 1);
      await client.registerQueue('parts', { partitionConcurrency: 1 });
      const enqueue = (options: object) => client.enqueueInTransaction(own.connection, { ...ADD, ...options }, 2, 2);

      await own.begin();
      await own.run(`INSERT INTO orders VALUES ('o')`);
      const refusals = [
        await failureOf(enqueue({ deduplicationID: 'd' })),
        await failureOf(enqueue({ workflowID: 'holder', workflowName: 'other' })),
        await failureOf(enqueue({ workflowID: 'holder', workflowIDReusePolicy: 'reject' })),
        await failureOf(enqueue({ deduplicationID: 'd', duplicationPolicy: 'return-existing' })),
        await failureOf(enqueue({ queueName: 'parts' })),
        await failureOf(enqueue({ workflowID: ' ' })),
        await failureOf(enqueue({ workflowID: 'a\0b' })),
        await failureOf(enqueue({ deduplicationID: 'x'.repeat(5000) })),
        await failureOf(client.sendInTransaction(own.connection, 'nobody', 'message')),
      ];
      const same = await enqueue({ workflowID: 'holder' });
      const kept = await enqueue({ deduplicationID: 'free' });
      await own.run('COMMIT');

      expect(refusals.map(({ name }) => name)).toEqual([
        'DBOSQueueDuplicatedError',
        'DBOSConflictingWorkflowError',
        'DBOSWorkflowIDInUseError',
        'DBOSInvalidArgumentError',
        'InvalidQueueError',
        'DBOSInvalidArgumentError',
        'DBOSInvalidArgumentError',
        'DBOSInvalidArgumentError',
        'DBOSNonExistentWorkflowError',
      ]);
      expect(await same.getStatus()).toMatchObject({ workflowID: 'holder', status: 'DELAYED', input: [1, 1] });
      expect(await kept.getResult()).toBe(4);
      expect(await own.run('SELECT id FROM orders')).toEqual([{ id: 'o' }]);
    });

    test('delays a workflow from the commit of others on, and wakes whoever looks after delays', async () => {
      const { client, own } = await setupOwn(dialect);

      await own.begin();
      const handle = await client.enqueueInTransaction(own.connection, { ...ADD, delaySeconds: 0.05 }, 1, 1);
      await own.run('COMMIT');

      expect(['DELAYED', 'ENQUEUED', 'PENDING', 'SUCCESS']).toContain((await handle.getStatus())?.status);
      // Without the wake-up it would be looked for after half a minute.
      expect(await handle.getResult()).toBe(2);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('needs no connection but its own, be it the only one of the pool', async () => {
      const { url } = await setup(dialect);
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      onTestFinished(() => pool.end());
      const client = await connect(url, { systemDatabasePool: pool });

      const own = await pool.connect();
      await own.query('BEGIN');
      const handle = await client.enqueueInTransaction(own, ADD, 1, 2);
      await client.sendInTransaction(own, handle.workflowID, 'unread');
      await own.query('COMMIT');
      own.release();

      expect(await handle.getResult()).toBe(3);
    });

    test('is one of a client: a pool and a SQLite handle are refused', async () => {
      const { client, url } = await setup(dialect);
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      onTestFinished(() => pool.end());

      await expect(client.enqueueInTransaction(pool, ADD, 1, 2)).rejects.toThrow(/not the pool/);
      const handle = { prepare: () => ({ all: () => [] }) };
      await expect(client.enqueueInTransaction(handle, ADD, 1, 2)).rejects.toThrow(/is on Postgres, so/);
    });
  });

  onlyOn('sqlite', (dialect) => {
    test('is one of a SQLite handle: a `pg` client is refused', async () => {
      const { client } = await setup(dialect);

      await expect(client.enqueueInTransaction(new pg.Client(), ADD, 1, 2)).rejects.toThrow(/is on SQLite, so/);
    });
  });
});
