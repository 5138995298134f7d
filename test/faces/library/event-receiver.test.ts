// The functions of `everstep/eventreceiver` belong to the default instance, so these tests launch that one.
import { afterEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import {
  enqueueWorkflows,
  getOrCreateQueue,
  getQueue,
  isPartitionedQueue,
  prepareEnqueuedWorkflow,
  registerInternalQueue,
  registerPollerQueue,
} from '../../../src/eventreceiver.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import { DBOS } from '../../../src/faces/library/dbos.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { failureOf } from '../../run/succession.js';

async function launch(dialect: TestDialect, config: Partial<DBOSConfig> = {}): Promise<void> {
  DBOS.setConfig({ name: 'test', systemDatabaseUrl: await dialect.createURL(), logger: silentLogger, ...config });
  await DBOS.launch();
}

afterEach(() => DBOS.shutdown({ deregister: true }));

describe('event receivers', () => {
  forEachDialect((dialect) => {
    test('a batch of messages becomes workflows in order, and a message that comes twice only one', async () => {
      const order: number[] = [];
      const handle = DBOS.registerWorkflow(
        async (n: number) => {
          order.push(n);
          return n;
        },
        { name: 'handle' },
      );
      await launch(dialect);
      await DBOS.registerQueue('q', { partitionConcurrency: 1 });
      const prepare = (n: number) =>
        prepareEnqueuedWorkflow(handle, [n], { queueName: 'q', workflowID: `m-${n}`, queuePartitionKey: 'key' });
      const numbers = Array.from({ length: 450 }, (_, n) => n);
      const batch = await Promise.all(numbers.map(prepare));

      const first = await enqueueWorkflows(batch);
      const second = await enqueueWorkflows([...batch.slice(440), await prepare(450), await prepare(450)]);

      expect(first.size).toBe(450);
      expect([...second]).toEqual(['m-450']);
      expect(await DBOS.retrieveWorkflow('m-450').getResult()).toBe(450);
      await DBOS.retrieveWorkflow('m-449').getResult();
      expect(order).toEqual([...numbers, 450]);
      expect(await enqueueWorkflows([])).toEqual(new Set());
    });

    test('workflows of a partition have times in the order of their batches', async () => {
      const handle = DBOS.registerWorkflow(async (n: number) => n, { name: 'handle' });
      await launch(dialect);
      await DBOS.registerQueue('q', { partitionConcurrency: 1 });
      await DBOS.pauseQueue('q');
      const prepare = (n: number) =>
        prepareEnqueuedWorkflow(handle, [n], { queueName: 'q', workflowID: `m-${n}`, queuePartitionKey: `k${n % 2}` });
      const batches = [0, 1, 2].map((batch) => Array.from({ length: 450 }, (_, n) => batch * 450 + n));

      for (const numbers of batches) await enqueueWorkflows(await Promise.all(numbers.map(prepare)));
      await DBOS.startWorkflow(handle, {
        queueName: 'q',
        workflowID: 'm-1350',
        enqueueOptions: { queuePartitionKey: 'k0' },
      })(1350);

      const waiting = await DBOS.listQueuedWorkflows({ queueName: 'q' });
      for (const key of ['k0', 'k1']) {
        const ofKey = waiting.filter(({ queuePartitionKey }) => queuePartitionKey === key);
        const inOrder = ofKey.toSorted((a, b) => a.createdAt - b.createdAt);
        expect(new Set(ofKey.map(({ createdAt }) => createdAt)).size).toBe(ofKey.length);
        expect(inOrder.map(({ input }) => input?.[0])).toEqual(
          Array.from({ length: ofKey.length }, (_, n) => 2 * n + Number(key.slice(1))),
        );
      }
      expect(waiting).toHaveLength(1351);
    });

    test('a prepared workflow takes nothing from the context of the caller', async () => {
      const handle = DBOS.registerWorkflow(async () => DBOS.authenticatedUser, { name: 'handle' });
      await launch(dialect);

      const prepared = await DBOS.withAuthedContext('user', ['role'], () =>
        prepareEnqueuedWorkflow(handle, [], { queueName: 'q', workflowID: 'w' }),
      );

      expect(prepared).toMatchObject({
        workflowUUID: 'w',
        status: 'ENQUEUED',
        workflowName: 'handle',
        queueName: 'q',
        authenticatedUser: '',
        authenticatedRoles: [],
        priority: 0,
      });
    });

    test('what cannot be enqueued in a batch is refused', async () => {
      const handle = DBOS.registerWorkflow(async (value: unknown) => value, { name: 'handle' });
      await launch(dialect);
      const prepare = (value: unknown) => prepareEnqueuedWorkflow(handle, [value], { queueName: 'q', workflowID: 'w' });
      const fine = await prepare(1);
      const circular: Record<string, unknown> = {};
      Object.defineProperty(circular, 'bad', {
        enumerable: true,
        get() {
          throw new Error('unreadable');
        },
      });

      expect((await failureOf(prepare(circular))).name).toBe('DBOSInvalidWorkflowInputError');
      expect((await failureOf(enqueueWorkflows([{ ...fine, status: 'PENDING' }]))).message).toContain('PENDING');
      expect((await failureOf(enqueueWorkflows([{ ...fine, deduplicationID: 'd' }]))).message).toContain(
        'deduplication',
      );
      expect(await DBOS.getWorkflowStatus('w')).toBeNull();
    });

    test('a poller queue is served although listenQueues leaves it out', async () => {
      const handle = DBOS.registerWorkflow(async () => 'ran', { name: 'handle' });
      registerPollerQueue('polled');
      const queue = registerInternalQueue('_dbos_receiver', { workerConcurrency: 2 });
      expect(registerInternalQueue('_dbos_receiver', { workerConcurrency: 9 }).workerConcurrency).toBe(2);
      expect(queue.name).toBe('_dbos_receiver');
      await launch(dialect, { listenQueues: ['other'] });
      await DBOS.registerQueue('polled');

      const polled = await prepareEnqueuedWorkflow(handle, [], { queueName: 'polled', workflowID: 'a' });
      const internal = await prepareEnqueuedWorkflow(handle, [], { queueName: '_dbos_receiver', workflowID: 'b' });
      await enqueueWorkflows([polled, internal]);

      expect(await DBOS.retrieveWorkflow('a').getResult()).toBe('ran');
      expect(await DBOS.retrieveWorkflow('b').getResult()).toBe('ran');
    });

    test('queues are found by name', async () => {
      const queue = getOrCreateQueue('memory', { partitionConcurrency: 2 });
      await launch(dialect);
      await DBOS.registerQueue('stored');

      expect(getOrCreateQueue('memory').partitionConcurrency).toBe(2);
      expect((await getQueue('memory'))?.partitionConcurrency).toBe(2);
      expect(isPartitionedQueue(queue)).toBe(true);
      expect((await getQueue('stored'))?.databaseBacked).toBe(true);
      expect(await getQueue('unknown')).toBeNull();
    });
  });
});
