import { describe, expect, test } from 'vitest';
import { DBOSExecutorNotInitializedError } from '../../../src/kernel/errors/errors.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { RegisterQueueOptions } from '../../../src/features/queue/queue.js';
import { insertQueue } from '../../../src/features/queue/queues.sql.js';
import { toQueueRecord } from '../../../src/features/queue/queue.js';
import { WorkflowQueue } from '../../../src/faces/library/workflow-queue.js';
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { failureOf, newHalt } from '../../run/succession.js';

/** A logger that keeps what it was told. */
function newLogger() {
  const infos: string[] = [];
  return { infos, logger: { ...silentLogger, info: (entry: unknown) => void infos.push(String(entry)) } };
}

forEachDialect((dialect) => {
  /** A launched engine. */
  async function setup(config: Parameters<typeof createEngine>[1] = {}) {
    const { DBOS, url } = await createEngine(dialect, { name: 'shop', applicationVersion: 'v1', ...config });
    await DBOS.launch();
    return { DBOS, url };
  }

  /** Two engines of one application: the second has the latest version. */
  async function setupVersions() {
    const { DBOS: older, url } = await setup({ applicationVersion: 'v1' });
    const { DBOS: latest } = await setup({ applicationVersion: 'v2', systemDatabaseUrl: url });
    return { older, latest };
  }

  describe('registerQueue', () => {
    test('keeps a new queue and gives it with its settings', async () => {
      const { DBOS } = await setup();

      const queue = await DBOS.registerQueue('mail', {
        globalConcurrency: 10,
        workerConcurrency: 5,
        rateLimit: { limitPerPeriod: 7, periodSec: 2.5 },
        partitionConcurrency: 4,
        partitionWorkerConcurrency: 2,
        partitionRateLimit: { limitPerPeriod: 3, periodSec: 60 },
        minPollingIntervalMs: 250,
      });

      expect(queue).toMatchObject({
        name: 'mail',
        databaseBacked: true,
        globalConcurrency: 10,
        concurrency: 10,
        workerConcurrency: 5,
        rateLimit: { limitPerPeriod: 7, periodSec: 2.5 },
        partitionConcurrency: 4,
        partitionWorkerConcurrency: 2,
        partitionRateLimit: { limitPerPeriod: 3, periodSec: 60 },
        minPollingIntervalMs: 250,
        priorityEnabled: true,
        partitionQueue: true,
        applicationName: 'shop',
      });
    });

    test('logs a new queue, and only a new one', async () => {
      const { infos, logger } = newLogger();
      const { DBOS } = await setup({ logger });

      await DBOS.registerQueue('mail');
      await DBOS.registerQueue('mail', { globalConcurrency: 2 });

      expect(infos.filter((line) => line.includes('new queue'))).toEqual(['Registered new queue: mail']);
    });

    test.each<[RegisterQueueOptions['onConflict'], 'older' | 'latest', number]>([
      [undefined, 'older', 1],
      [undefined, 'latest', 2],
      ['update_if_latest_version', 'older', 1],
      ['update_if_latest_version', 'latest', 2],
      ['always_update', 'older', 2],
      ['always_update', 'latest', 2],
      ['never_update', 'older', 1],
      ['never_update', 'latest', 1],
    ])('with onConflict %s by the %s version leaves a concurrency of %d', async (onConflict, who, stored) => {
      const engines = await setupVersions();
      await engines.older.registerQueue('mail', { globalConcurrency: 1, onConflict: 'always_update' });

      const queue = await engines[who].registerQueue('mail', { globalConcurrency: 2, onConflict });

      expect(queue.globalConcurrency).toBe(stored);
      expect(await queue.getGlobalConcurrency()).toBe(stored);
    });

    test('replaces all settings, also by none', async () => {
      const { DBOS } = await setup();
      await DBOS.registerQueue('mail', { globalConcurrency: 3, partitionConcurrency: 1, minPollingIntervalMs: 5 });

      const queue = await DBOS.registerQueue('mail');

      expect(await queue.getGlobalConcurrency()).toBeUndefined();
      expect(await queue.getPartitionConcurrency()).toBeUndefined();
      expect(await queue.getPartitionQueue()).toBe(false);
      expect(await queue.getMinPollingIntervalMs()).toBe(1000);
    });

    test.each<[RegisterQueueOptions['onConflict']]>([
      ['update_if_latest_version'],
      ['always_update'],
      ['never_update'],
    ])('with onConflict %s refuses a name that another application has', async (onConflict) => {
      const { DBOS, url } = await setup();
      const { DBOS: other } = await setup({ name: 'other', applicationVersion: 'other-v1', systemDatabaseUrl: url });
      await DBOS.registerQueue('mail', { globalConcurrency: 1 });

      const error = await failureOf(other.registerQueue('mail', { globalConcurrency: 2, onConflict }));

      expect(error).toMatchObject({ name: 'OwnedByAnotherApplicationError', dbosErrorCode: 1 });
      expect(error.message).toBe(
        'Queue "mail" belongs to application "shop". Choose another name for the queue of "other".',
      );
      expect(await (await DBOS.retrieveQueue('mail'))?.getGlobalConcurrency()).toBe(1);
    });

    test('takes over a queue that nobody owns', async () => {
      const { DBOS, url } = await setup();
      const database = await dialect.open(url);
      await insertQueue(database, toQueueRecord('mail', { globalConcurrency: 1 }, null));

      const kept = await DBOS.registerQueue('mail', { globalConcurrency: 2, onConflict: 'never_update' });
      const queue = await DBOS.registerQueue('mail', { globalConcurrency: 2 });

      expect(kept).toMatchObject({ globalConcurrency: 1, applicationName: undefined });
      expect(queue).toMatchObject({ globalConcurrency: 2, applicationName: 'shop' });
    });

    test('refuses bad names, bad settings and a bad onConflict, and stores nothing', async () => {
      const { DBOS } = await setup();

      const errors = await Promise.all([
        failureOf(DBOS.registerQueue('_dbos_mine')),
        failureOf(DBOS.registerQueue(' ')),
        failureOf(DBOS.registerQueue('mail', { workerConcurrency: 2, globalConcurrency: 1 })),
        failureOf(DBOS.registerQueue('mail', { onConflict: 'perhaps' as 'never_update' })),
      ]);

      expect(errors.map((error) => error['code'])).toEqual([
        'INVALID_QUEUE',
        'INVALID_QUEUE',
        'INVALID_QUEUE',
        'INVALID_ARGUMENT',
      ]);
      expect(errors[3]?.message).toContain('but is "perhaps"');
      expect(await DBOS.listQueues()).toEqual([]);
    });

    test('at the same time from many sides keeps one queue', async () => {
      const { infos, logger } = newLogger();
      const { DBOS } = await setup({ logger });

      const queues = await Promise.all(
        Array.from({ length: 10 }, () => DBOS.registerQueue('mail', { globalConcurrency: 1 })),
      );

      expect(queues.map((queue) => queue.globalConcurrency)).toEqual(queues.map(() => 1));
      expect(await DBOS.listQueues()).toHaveLength(1);
      expect(infos.filter((line) => line.startsWith('Registered'))).toHaveLength(1);
    });

    test('needs a launched engine', async () => {
      await expect(createDBOS().registerQueue('mail')).rejects.toThrow(DBOSExecutorNotInitializedError);
    });
  });

  describe('a queue in the database', () => {
    test('can be retrieved and listed, by application too', async () => {
      const { DBOS, url } = await setup();
      const { DBOS: other } = await setup({ name: 'other', applicationVersion: 'other-v1', systemDatabaseUrl: url });
      await insertQueue(await dialect.open(url), toQueueRecord('common', {}, null));
      await DBOS.registerQueue('mail', { workerConcurrency: 3 });
      await DBOS.registerQueue('images');
      await other.registerQueue('theirs');
      const namesOf = async (names?: string | string[]) => (await DBOS.listQueues(names)).map((queue) => queue.name);

      expect(await DBOS.retrieveQueue('mail')).toMatchObject({ name: 'mail', workerConcurrency: 3 });
      expect(await DBOS.retrieveQueue('missing')).toBeNull();
      expect(await namesOf()).toEqual(['common', 'images', 'mail']);
      expect(await namesOf('other')).toEqual(['common', 'theirs']);
      expect(await namesOf(['other', 'shop'])).toEqual(['common', 'images', 'mail', 'theirs']);
      expect(await namesOf([])).toEqual(['common']);
    });

    test('that is deleted is gone; what waits in it waits for the next of its name', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'ran', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('mail');
      await DBOS.pauseQueue('mail');
      const handle = await DBOS.startWorkflow(workflow, { queueName: 'mail' })();

      await DBOS.deleteQueue('mail');
      await DBOS.resumeQueue('mail');

      expect(await DBOS.retrieveQueue('mail')).toBeNull();
      expect(await DBOS.explainWorkflow(handle.workflowID)).toMatchObject({ reason: 'queue-not-served' });
      await DBOS.registerQueue('mail');
      expect(await handle.getResult()).toBe('ran');
    });

    test('can be deleted twice', async () => {
      const { DBOS } = await setup();
      await DBOS.registerQueue('mail');

      await DBOS.deleteQueue('mail');

      expect(await DBOS.deleteQueue('mail')).toBe(false);
    });

    test('has a setter for each setting, which others read', async () => {
      const { DBOS } = await setup();
      const queue = await DBOS.registerQueue('mail');
      const other = await DBOS.retrieveQueue('mail');

      await queue.setGlobalConcurrency(20);
      await queue.setWorkerConcurrency(10);
      await queue.setRateLimit({ limitPerPeriod: 5, periodSec: 0.5 });
      await queue.setPartitionConcurrency(8);
      await queue.setPartitionWorkerConcurrency(4);
      await queue.setPartitionRateLimit({ limitPerPeriod: 2, periodSec: 3 });
      await queue.setMinPollingIntervalMs(100);
      await queue.setPriorityEnabled(false);

      expect(await other?.getGlobalConcurrency()).toBe(20);
      expect(await other?.getConcurrency()).toBe(20);
      expect(await other?.getWorkerConcurrency()).toBe(10);
      expect(await other?.getRateLimit()).toEqual({ limitPerPeriod: 5, periodSec: 0.5 });
      expect(await other?.getPartitionConcurrency()).toBe(8);
      expect(await other?.getPartitionWorkerConcurrency()).toBe(4);
      expect(await other?.getPartitionRateLimit()).toEqual({ limitPerPeriod: 2, periodSec: 3 });
      expect(await other?.getMinPollingIntervalMs()).toBe(100);
      expect(await other?.getPriorityEnabled()).toBe(false);
      expect(await other?.getPartitionQueue()).toBe(true);
      expect(queue).toMatchObject({ globalConcurrency: 20, partitionRateLimit: { limitPerPeriod: 2, periodSec: 3 } });
    });

    test('loses a limit that is set to undefined', async () => {
      const { DBOS } = await setup();
      const queue = await DBOS.registerQueue('mail', {
        globalConcurrency: 20,
        rateLimit: { limitPerPeriod: 1, periodSec: 1 },
        partitionConcurrency: 2,
      });

      await queue.setConcurrency(undefined);
      await queue.setRateLimit(undefined);
      await queue.setPartitionConcurrency(undefined);

      expect(await queue.getGlobalConcurrency()).toBeUndefined();
      expect(await queue.getRateLimit()).toBeUndefined();
      expect(await queue.getPartitionConcurrency()).toBeUndefined();
      expect(await queue.getPartitionQueue()).toBe(false);
    });

    test('checks each change against what is stored by then', async () => {
      const { DBOS } = await setup();
      const queue = await DBOS.registerQueue('mail', { globalConcurrency: 5 });
      const other = await DBOS.retrieveQueue('mail');
      await other?.setGlobalConcurrency(2);

      const tooMany = await failureOf(queue.setWorkerConcurrency(3));
      const none = await failureOf(queue.setPartitionConcurrency(0));
      const halfRate = await failureOf(queue.setRateLimit({ limitPerPeriod: 1 } as never));
      const noInterval = await failureOf(queue.setMinPollingIntervalMs(0));

      expect(tooMany.message).toContain('workerConcurrency (3) must not be greater than globalConcurrency (2)');
      for (const error of [tooMany, none, halfRate, noInterval]) expect(error['code']).toBe('INVALID_QUEUE');
      expect(await queue.getWorkerConcurrency()).toBeUndefined();
    });

    test('of the older partitioned kind stays partitioned when a limit is changed', async () => {
      const { DBOS } = await setup();
      const queue = await DBOS.registerQueue('mail', { partitionQueue: true, concurrency: 1 });

      await queue.setGlobalConcurrency(2);
      await queue.setMinPollingIntervalMs(500);

      expect(await queue.getPartitionQueue()).toBe(true);
      await queue.setPartitionQueue(false);
      expect(await queue.getPartitionQueue()).toBe(false);
    });

    test('that was deleted says so to those who still hold it', async () => {
      const { DBOS } = await setup();
      const queue = await DBOS.registerQueue('mail', { globalConcurrency: 1 });
      await DBOS.deleteQueue('mail');

      const read = await failureOf(queue.getGlobalConcurrency());
      const written = await failureOf(queue.setGlobalConcurrency(2));

      expect(read.message).toBe("Queue 'mail' was not found in the database.");
      expect(written.message).toBe("Queue 'mail' was not found in the database.");
    });

    test('changes for those who serve it at once, in both directions', async () => {
      const { DBOS } = await createEngine(dialect);
      const halts = Array.from({ length: 4 }, () => newHalt());
      const workflow = DBOS.registerWorkflow(async (n: number) => halts[n]?.here(), { name: 'workflow' });
      await DBOS.launch();
      const queue = await DBOS.registerQueue('mail', { globalConcurrency: 1 });
      const starts = halts.map((_, n) => ({ args: [n] as [number] }));
      const handles = await DBOS.startWorkflows(workflow, starts, { queueName: 'mail' });
      await halts[0]?.reached;

      await queue.setGlobalConcurrency(2);
      await halts[1]?.reached;
      await queue.setGlobalConcurrency(1);
      halts[0]?.release();
      await handles[0]?.getResult();

      // One still runs, which is as many as may.
      expect(await DBOS.explainWorkflow(handles[2]?.workflowID ?? '')).toMatchObject({ reason: 'concurrency' });
      halts.forEach((halt) => halt.release());
      await Promise.all(handles.map((handle) => handle.getResult()));
    });
  });

  describe('pauseQueue and resumeQueue', () => {
    test('can be called twice, and refuse names that nobody can have', async () => {
      const { DBOS } = await setup();

      await DBOS.pauseQueue('mail');
      await DBOS.pauseQueue('mail');
      await DBOS.resumeQueue('mail');
      await DBOS.resumeQueue('mail');

      expect((await failureOf(DBOS.pauseQueue('_dbos_internal_queue')))['code']).toBe('INVALID_QUEUE');
      expect((await failureOf(DBOS.resumeQueue(' ')))['code']).toBe('INVALID_ARGUMENT');
    });

    test('leave running workflows alone', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(async () => halt.here(), { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('mail');
      const handle = await DBOS.startWorkflow(workflow, { queueName: 'mail' })();
      await halt.reached;

      await DBOS.pauseQueue('mail');
      halt.release();

      await handle.getResult();
      expect((await handle.getStatus())?.status).toBe('SUCCESS');
    });

    test('hold for the partitions of a queue', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async (key: string) => key, { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('mail', { partitionConcurrency: 1 });
      await DBOS.pauseQueue('mail');
      const starts = ['a', 'b'].map((key) => ({ args: [key] as [string], enqueueOptions: { queuePartitionKey: key } }));
      const handles = await DBOS.startWorkflows(workflow, starts, { queueName: 'mail' });
      expect(await DBOS.explainWorkflow(handles[1]?.workflowID ?? '')).toMatchObject({ reason: 'paused' });

      await DBOS.resumeQueue('mail');

      expect(await Promise.all(handles.map((handle) => handle.getResult()))).toEqual(['a', 'b']);
    });
  });
});

describe('a queue in memory', () => {
  test('has its settings, and getters that give them', async () => {
    const queue = new WorkflowQueue(
      'mail',
      { globalConcurrency: 4, workerConcurrency: 2, rateLimit: { limitPerPeriod: 1, periodSec: 2 } },
      createDBOS(),
    );

    expect(queue).toMatchObject({
      name: 'mail',
      databaseBacked: false,
      globalConcurrency: 4,
      workerConcurrency: 2,
      rateLimit: { limitPerPeriod: 1, periodSec: 2 },
      applicationName: undefined,
    });
    expect(await queue.getGlobalConcurrency()).toBe(4);
    expect(await queue.getRateLimit()).toEqual({ limitPerPeriod: 1, periodSec: 2 });
  });

  test('cannot be changed', async () => {
    const queue = new WorkflowQueue('mail', {}, createDBOS());

    const errors = await Promise.all([
      failureOf(queue.setConcurrency(1)),
      failureOf(queue.setGlobalConcurrency(1)),
      failureOf(queue.setWorkerConcurrency(1)),
      failureOf(queue.setRateLimit(undefined)),
      failureOf(queue.setPartitionConcurrency(1)),
      failureOf(queue.setPartitionWorkerConcurrency(1)),
      failureOf(queue.setPartitionRateLimit(undefined)),
      failureOf(queue.setMinPollingIntervalMs(1)),
      failureOf(queue.setPriorityEnabled(true)),
      failureOf(queue.setPartitionQueue(true)),
    ]);

    for (const error of errors) expect(error.message).toContain('Cannot configure queue "mail"');
  });

  test('has the older positional form, with or without a concurrency', () => {
    const rateLimit = { limitPerPeriod: 1, periodSec: 2 };

    const both = new WorkflowQueue('positional both', 3, rateLimit);
    const first = new WorkflowQueue('positional first', 3);
    const second = new WorkflowQueue('positional second', undefined, rateLimit);

    expect(both).toMatchObject({ globalConcurrency: 3, rateLimit });
    expect(first).toMatchObject({ globalConcurrency: 3, rateLimit: undefined });
    expect(second).toMatchObject({ globalConcurrency: undefined, rateLimit });
  });

  test('is defined once for an instance', () => {
    const [one, two] = [createDBOS(), createDBOS()];
    new WorkflowQueue('mail', {}, one);

    expect(() => new WorkflowQueue('mail', {}, two)).not.toThrow();
    expect(() => new WorkflowQueue('mail', {}, one)).toThrow("Workflow Queue 'mail' defined multiple times");
  });

  test('has the rules of all queues', () => {
    const owner = createDBOS();

    expect(() => new WorkflowQueue('_dbos_mine', {}, owner)).toThrow('reserved');
    expect(() => new WorkflowQueue('mail', { workerConcurrency: 0 }, owner)).toThrow('workerConcurrency');
    expect(() => new WorkflowQueue('positional bad', 0)).toThrow('concurrency must be');
    // A refused queue was not defined.
    expect(() => new WorkflowQueue('mail', {}, owner)).not.toThrow();
  });
});

describe('the static members of WorkflowQueue', () => {
  test('check names and settings', () => {
    expect(() => WorkflowQueue.validateQueueRegistration('mail', { concurrency: 1 })).not.toThrow();
    expect(() => WorkflowQueue.validateQueueRegistration('_dbos_mine', {})).toThrow('reserved');
    expect(() => WorkflowQueue.validateQueueRegistration('mail', { concurrency: 0 })).toThrow('concurrency must be');
    expect(() => WorkflowQueue.validateQueueParams({ concurrency: 1 })).not.toThrow();
    expect(() => WorkflowQueue.validateQueueParams({ concurrency: 1, globalConcurrency: 1 })).toThrow('older name');
  });

  test('make a row of settings', () => {
    expect(WorkflowQueue.recordFromParams('mail', { concurrency: 2, minPollingIntervalMs: 50 })).toMatchObject({
      name: 'mail',
      concurrency: 2,
      pollingIntervalSec: 0.05,
      applicationName: null,
    });
  });
});
