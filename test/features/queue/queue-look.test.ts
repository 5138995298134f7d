import { describe, expect, test } from 'vitest';
import type { QueueRecord } from '../../../src/features/queue/queue.js';
import { lookAtQueues } from '../../../src/features/queue/queue-look.sql.js';
import { insertQueue, listQueues } from '../../../src/features/queue/queues.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

const LOOK = { applicationName: 'test', names: ['in memory', 'stored'] };
const NOW = 1_800_000_000_000;

function newQueue(name: string, applicationName: string | null): QueueRecord {
  return {
    name,
    concurrency: 3,
    workerConcurrency: null,
    rateLimitMax: null,
    rateLimitPeriodSec: null,
    isPriorityEnabled: false,
    isPartitionQueue: false,
    pollingIntervalSec: 1,
    partitionConcurrency: null,
    partitionWorkerConcurrency: null,
    partitionRateLimitMax: null,
    partitionRateLimitPeriodSec: null,
    applicationName,
  };
}

describe('a look at the queues', () => {
  forEachDialect((dialect) => {
    test('tells which are stored and where work waits', async () => {
      const database = await dialect.create();
      await insertQueue(database, { ...newQueue('stored', 'test'), releasesParkedSlots: true });
      await insertQueue(database, newQueue('of all', null));
      await insertQueue(database, newQueue('foreign', 'another'));
      const queueNames = ['in memory', 'of all', 'foreign', 'unknown'];
      const waiting = queueNames.map((queueName) => newWorkflow({ status: 'ENQUEUED', queueName, owner: null }));
      await database.run(insertWorkflows([...waiting, newWorkflow({ queueName: 'stored' })]));

      const look = await lookAtQueues(database, LOOK);

      expect(look.queues).toEqual(await listQueues(database, ['test']));
      expect(look.queues.map(({ name }) => name)).toEqual(['of all', 'stored']);
      expect([...look.waiting].sort()).toEqual(['in memory', 'of all']);
      expect([look.delayMs, look.deadlineMs]).toEqual([undefined, undefined]);
    });

    test('tells when the next delayed workflow and the next deadline are due', async () => {
      const database = await dialect.open(await dialect.createURL(), { now: () => NOW });
      const delayed = (delayMs: number, fields = {}) =>
        newWorkflow({ status: 'DELAYED', queueName: 'q', owner: null, delayMs, ...fields });
      await database.run(
        insertWorkflows([
          delayed(9000),
          delayed(7000),
          delayed(5000, { applicationName: 'another' }),
          newWorkflow({ deadlineAt: NOW + 4000 }),
          newWorkflow({ deadlineAt: NOW - 3000 }),
          newWorkflow({ deadlineAt: NOW - 6000, status: 'SUCCESS' }),
        ]),
      );

      expect(await lookAtQueues(database, LOOK)).toMatchObject({ delayMs: 7000, deadlineMs: -3000 });
    });
  });
});
