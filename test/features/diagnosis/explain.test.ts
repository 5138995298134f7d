import { describe, expect, test } from 'vitest';
import { parkWorkflows } from '../../../src/features/parking/parking.sql.js';
import type { AwaitedRow } from '../../../src/features/parking/waits.sql.js';
import { explainWorkflow } from '../../../src/features/diagnosis/explain.js';
import { type QueueParameters, toQueueRecord, INTERNAL_QUEUE } from '../../../src/features/queue/queue.js';
import type { Database } from '../../../src/database/database.js';
import { claimWorkflows } from '../../../src/features/queue/claims.sql.js';
import { type Incarnation, insertIncarnation, type Services } from '../../../src/features/liveness/executors.sql.js';
import { cancelWorkflows, deadLetterIfOwned } from '../../../src/run/rows/lifecycle.js';
import { insertQueue, pauseQueue } from '../../../src/features/queue/queues.sql.js';
import { registerVersion } from '../../../src/features/version/versions.sql.js';
import { finishIfOwned, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';

const NOW = 1_800_000_000_000;
function explain(database: Database, workflowID: string) {
  return explainWorkflow(operatorOn(database), workflowID);
}

const NOW_TEXT = '2027-01-15T08:00:00.000Z';

forEachDialect((dialect) => {
  /** A database whose clock stands still, with one live engine that serves all queues and has `workflow`. */
  async function setup({ hasEngine = true } = {}) {
    const clock = new ManualClock(NOW);
    const database = await dialect.create({ now: () => clock.now() });
    await registerVersion(database, 'v1', 'test');
    if (hasEngine) await enter(database);
    return { database, clock };
  }

  async function enter(
    database: Database,
    fields: Partial<Incarnation> = {},
    services: Partial<Services> = {},
  ): Promise<void> {
    const says = { listenQueues: null, memoryQueues: [], functions: ['.workflow'], ...services };
    const incarnation = {
      incarnationID: 'live',
      executorID: 'ex',
      applicationName: 'test',
      applicationVersion: 'v1',
      host: 'host',
      pid: 1,
      metadata: JSON.stringify({ services: says }),
      ...fields,
    };
    await insertIncarnation(database, incarnation, { leaseMs: 30_000 });
  }

  async function addQueue(database: Database, parameters: QueueParameters = {}): Promise<void> {
    await insertQueue(database, toQueueRecord('q', parameters, 'test'));
  }

  /** Adds workflows that wait in queue `q`, in this order. */
  async function enqueue(database: Database, ...workflows: Partial<NewWorkflow>[]): Promise<void> {
    for (const fields of workflows) {
      const waiting = { status: 'ENQUEUED', queueName: 'q', owner: null, recoveryAttempts: 0 } as const;
      await database.run(insertWorkflows([newWorkflow({ ...waiting, ...fields })]));
    }
  }

  /** The terms on which the live engine claims from queue `q`. */
  const terms = {
    queueName: 'q',
    owner: 'live.1',
    executorID: 'ex',
    applicationVersion: 'v1',
    applicationName: 'test',
    functions: ['.workflow'],
  };

  /** Lets the live engine take the next workflows of queue `q`. */
  async function claim(database: Database, limit: number, rate: { max: number; periodMs: number } | null = null) {
    await claimWorkflows(database, { ...terms, limit, limits: { concurrency: null, workerConcurrency: null, rate } });
  }

  describe('the reason', () => {
    test('not-found', async () => {
      const { database } = await setup();

      expect(await explain(database, 'w')).toEqual({
        workflowID: 'w',
        status: null,
        reason: 'not-found',
        message: 'Workflow "w" not found.',
        details: {},
      });
    });

    test('succeeded', async () => {
      const { database } = await setup();
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'live.1' })]));
      const outcome = { workflowID: 'w', owner: 'live.1', status: 'SUCCESS', output: '1', error: null } as const;
      await database.run(finishIfOwned([outcome]));

      expect(await explain(database, 'w')).toEqual({
        workflowID: 'w',
        status: 'SUCCESS',
        reason: 'succeeded',
        message: `It ended at ${NOW_TEXT} with a result.`,
        details: { completedAt: NOW },
      });
    });

    test('failed', async () => {
      const { database } = await setup();
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'live.1' })]));
      const outcome = { workflowID: 'w', owner: 'live.1', status: 'ERROR', output: null, error: '1' } as const;
      await database.run(finishIfOwned([outcome]));

      expect(await explain(database, 'w')).toMatchObject({
        status: 'ERROR',
        reason: 'failed',
        message: `It ended at ${NOW_TEXT} with an error. Fork it to retry.`,
      });
    });

    test('cancelled', async () => {
      const { database } = await setup();
      await enqueue(database, { workflowID: 'w' });
      await cancelWorkflows(database, ['w']);

      expect(await explain(database, 'w')).toMatchObject({
        status: 'CANCELLED',
        reason: 'cancelled',
        message: `It was cancelled at ${NOW_TEXT}. Resume it to continue.`,
      });
    });

    test('dead-lettered', async () => {
      const { database } = await setup();
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'live.1', recoveryAttempts: 102 })]));
      await deadLetterIfOwned(database, [{ workflowID: 'w', owner: 'live.1' }]);

      expect(await explain(database, 'w')).toMatchObject({
        status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
        reason: 'dead-lettered',
        message:
          `It was started 102 times without ending, so it became a dead letter at ${NOW_TEXT}. ` +
          'Find out why its process dies, then resume it.',
        details: { recoveryAttempts: 102, completedAt: NOW },
      });
    });

    test('delayed', async () => {
      const { database } = await setup();
      await enqueue(database, { workflowID: 'w', status: 'DELAYED', delayMs: 60_000 });

      expect(await explain(database, 'w')).toMatchObject({
        status: 'DELAYED',
        reason: 'delayed',
        message: 'It is delayed until 2027-01-15T08:01:00.000Z.',
        details: { delayUntil: NOW + 60_000 },
      });
    });

    const awaitedRows: Record<string, { awaited: AwaitedRow[]; message: string; waitsFor: unknown[] }> = {
      'a time': {
        awaited: [],
        message: 'It sleeps until 2027-01-15T08:01:00.000Z.',
        waitsFor: [{ kind: 'sleep', until: NOW + 60_000 }],
      },
      'a message': {
        awaited: [{ kind: 'message', workflowID: 'w', topic: 't' }],
        message: 'It waits for a message of topic "t", until 2027-01-15T08:01:00.000Z at the latest.',
        waitsFor: [{ kind: 'message', topic: 't', until: NOW + 60_000 }],
      },
      'an event or a workflow': {
        awaited: [
          { kind: 'event', workflowID: 'other', key: 'k' },
          { kind: 'outcome', workflowID: 'other' },
        ],
        message:
          'It waits for event "k" of workflow "other" or the end of workflow "other", until 2027-01-15T08:01:00.000Z at the latest.',
        waitsFor: [
          { kind: 'event', workflowID: 'other', key: 'k', until: NOW + 60_000 },
          { kind: 'workflow', workflowID: 'other', until: NOW + 60_000 },
        ],
      },
    };

    test.each(Object.keys(awaitedRows))('parked until there is %s', async (kind) => {
      const { awaited, message, waitsFor } = awaitedRows[kind]!;
      const { database } = await setup();
      const owner = 'live.1';
      const applicationVersion = 'v1';
      await database.run(
        insertWorkflows([
          newWorkflow({ workflowID: 'w', owner, applicationVersion }),
          newWorkflow({ workflowID: 'other', owner: 'live.2' }),
        ]),
      );
      await parkWorkflows(database, [{ workflowID: 'w', owner, dueAt: NOW + 60_000, awaited }]);

      expect(await explain(database, 'w')).toMatchObject({
        status: 'PENDING',
        reason: 'parked',
        message: `It is parked, out of memory. ${message} A process of version "v1" continues it then.`,
        details: { waitsFor, wakesAt: NOW + 60_000 },
      });
    });

    test('running', async () => {
      const { database } = await setup();
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'live.1', executorID: 'ex' })]));

      expect(await explain(database, 'w')).toMatchObject({
        status: 'PENDING',
        reason: 'running',
        message: `It has been running on executor "ex" since ${NOW_TEXT}.`,
        details: { executorID: 'ex', startedAt: NOW },
      });
    });

    test('run-by-another-library', async () => {
      const { database } = await setup();
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: '9b2d', executorID: 'local' })]));

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'run-by-another-library',
        message: expect.stringMatching(/DBOS.*executor "local" of version "v1".*everstep migrate --adopt/),
        details: { executorID: 'local', applicationVersion: 'v1', startedAt: NOW },
      });
    });

    test('executor-gone', async () => {
      const { database, clock } = await setup();
      await enter(database, { incarnationID: 'other', executorID: 'other' });
      await database.run(
        insertWorkflows([
          newWorkflow({ workflowID: 'unlisted', owner: 'dead.1', executorID: 'gone' }),
          newWorkflow({ workflowID: 'silent', owner: 'other.1', executorID: 'other' }),
        ]),
      );
      clock.advance(30_001);

      expect(await explain(database, 'unlisted')).toMatchObject({
        status: 'PENDING',
        reason: 'executor-gone',
        message:
          'It was claimed by executor "gone", whose process is dead. Any live process of version "v1" will take it over.',
        details: { executorID: 'gone', startedAt: NOW },
      });
      expect((await explain(database, 'silent')).reason).toBe('executor-gone');
    });

    test('paused', async () => {
      const { database } = await setup();
      await addQueue(database);
      await pauseQueue(database, 'q');
      await enqueue(database, { workflowID: 'w' });

      expect(await explain(database, 'w')).toEqual({
        workflowID: 'w',
        status: 'ENQUEUED',
        reason: 'paused',
        message: `Queue "q" has been paused since ${NOW_TEXT}. Resume the queue.`,
        details: { queueName: 'q', pausedAt: NOW },
      });
    });

    test('queue-not-served, because it is not registered', async () => {
      const { database } = await setup();
      await enqueue(database, { workflowID: 'w' });

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'queue-not-served',
        message: 'No process serves queue "q". It is not registered.',
        details: { queueName: 'q', isRegistered: false },
      });
    });

    test('queue-not-served, because no process listens to it', async () => {
      const { database, clock } = await setup({ hasEngine: false });
      await addQueue(database);
      await enqueue(database, { workflowID: 'w' });
      await enter(database, { incarnationID: 'dead' });
      clock.advance(30_001);
      await enter(database, {}, { listenQueues: ['another'] });

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'queue-not-served',
        message: 'No process serves queue "q". No live process claims from it.',
        details: { queueName: 'q', isRegistered: true },
      });
    });

    test('no-partition-key', async () => {
      const { database } = await setup();
      await addQueue(database, { partitionConcurrency: 1 });
      await enqueue(database, { workflowID: 'w' });

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'no-partition-key',
        message: 'Queue "q" is partitioned, but the workflow has no partition key. Resume it into another queue.',
        details: { queueName: 'q' },
      });
    });

    test('no-executor-of-application', async () => {
      const { database } = await setup();
      await addQueue(database);
      await enqueue(database, { workflowID: 'w', applicationName: 'other' });

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'no-executor-of-application',
        message: 'No live process of application "other" serves queue "q".',
        details: { applicationName: 'other', queueName: 'q' },
      });
    });

    test('no-executor-of-version', async () => {
      const { database, clock } = await setup();
      await addQueue(database);
      clock.advance(1);
      await registerVersion(database, 'v2', 'test');
      await enqueue(
        database,
        { workflowID: 'pinned', applicationVersion: 'v0' },
        { workflowID: 'latest', applicationVersion: null },
      );

      expect(await explain(database, 'pinned')).toMatchObject({
        reason: 'no-executor-of-version',
        message:
          'No live process of version "v0" serves queue "q"; the running versions are "v1". ' +
          'Start a process of that version, or fork the workflow to another.',
        details: { version: 'v0', running: ['v1'], queueName: 'q' },
      });
      expect(await explain(database, 'latest')).toMatchObject({
        reason: 'no-executor-of-version',
        details: { version: 'v2', running: ['v1'] },
      });
    });

    test('function-not-registered', async () => {
      const { database } = await setup();
      await addQueue(database);
      await enqueue(
        database,
        { workflowID: 'w', name: 'missing' },
        { workflowID: 'method', name: 'missing', className: 'Mailer' },
      );

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'function-not-registered',
        message: 'No live process of version "v1" has a workflow "missing" registered.',
        details: { workflowName: 'missing', className: null, version: 'v1' },
      });
      expect((await explain(database, 'method')).message).toContain('"Mailer.missing"');
    });

    test('concurrency', async () => {
      const { database } = await setup();
      await addQueue(database, { globalConcurrency: 2 });
      await enqueue(database, {}, {}, { workflowID: 'w' });
      await claim(database, 2);

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'concurrency',
        message: 'All 2 concurrency slot(s) of queue "q" are in use.',
        details: { queueName: 'q', concurrency: 2 },
      });
    });

    test('worker-concurrency', async () => {
      const { database } = await setup();
      await addQueue(database, { workerConcurrency: 1 });
      await enqueue(database, {}, { workflowID: 'w' });
      await claim(database, 1);

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'worker-concurrency',
        message: 'All 1 process(es) serving queue "q" are at its worker concurrency of 1.',
        details: { queueName: 'q', workerConcurrency: 1, processes: 1 },
      });
      await enter(database, { incarnationID: 'second' });
      expect((await explain(database, 'w')).reason).toBe('about-to-start');
    });

    test('rate-limit', async () => {
      const { database, clock } = await setup();
      await addQueue(database, { rateLimit: { limitPerPeriod: 2, periodSec: 60 } });
      await enqueue(database, {}, {}, { workflowID: 'w' });
      await claim(database, 2, { max: 2, periodMs: 60_000 });
      clock.advance(10_000);

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'rate-limit',
        message: 'The rate limit of queue "q" is 2 workflow(s) per 60 s. The next one may start in 50 s.',
        details: { queueName: 'q', rate: { max: 2, periodMs: 60_000 }, waitMs: 50_000 },
      });
    });

    const inA = { queuePartitionKey: 'a' };

    test('partition-concurrency', async () => {
      const { database } = await setup();
      await addQueue(database, { partitionConcurrency: 1 });
      await enqueue(database, inA, { ...inA, workflowID: 'w' }, { queuePartitionKey: 'b', workflowID: 'other' });
      await claim(database, 1);

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'partition-concurrency',
        message: 'All 1 concurrency slot(s) of partition "a" of queue "q" are in use.',
        details: { queueName: 'q', partitionKey: 'a', concurrency: 1 },
      });
      expect((await explain(database, 'other')).reason).toBe('about-to-start');
    });

    test('partition-worker-concurrency', async () => {
      const { database } = await setup();
      await addQueue(database, { partitionWorkerConcurrency: 1 });
      await enqueue(database, inA, { ...inA, workflowID: 'w' }, { queuePartitionKey: 'b', workflowID: 'other' });
      await claim(database, 1);

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'partition-worker-concurrency',
        message: 'All 1 process(es) serving partition "a" of queue "q" are at its worker concurrency of 1.',
        details: { partitionKey: 'a', workerConcurrency: 1, processes: 1 },
      });
      expect((await explain(database, 'other')).reason).toBe('about-to-start');
    });

    test('partition-rate-limit', async () => {
      const { database, clock } = await setup();
      await addQueue(database, { partitionRateLimit: { limitPerPeriod: 1, periodSec: 2 } });
      await enqueue(database, inA, { ...inA, workflowID: 'w' }, { queuePartitionKey: 'b', workflowID: 'other' });
      await claim(database, 1, { max: 1, periodMs: 2000 });
      clock.advance(550);

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'partition-rate-limit',
        message:
          'The rate limit of partition "a" of queue "q" is 1 workflow(s) per 2 s. The next one may start in 1.5 s.',
        details: { partitionKey: 'a', waitMs: 1450 },
      });
      expect((await explain(database, 'other')).reason).toBe('about-to-start');
    });

    test('waiting-its-turn', async () => {
      const { database, clock } = await setup();
      await addQueue(database);
      await enqueue(database, { workflowID: 'first' }, { workflowID: 'prior', priority: 0 });
      clock.advance(1);
      await enqueue(database, { workflowID: 'w' }, { workflowID: 'last', priority: 1 });

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'waiting-its-turn',
        message: '2 workflow(s) are ahead of it in the queue.',
        details: { queueName: 'q', ahead: 2 },
      });
      expect((await explain(database, 'last')).details).toMatchObject({ ahead: 3 });
    });

    test('waiting-its-turn, among workflows of one millisecond', async () => {
      const { database } = await setup();
      await addQueue(database);
      await enqueue(database, { workflowID: 'z' }, { workflowID: 'y' }, { workflowID: 'x' });

      const explained = await Promise.all(['z', 'y', 'x'].map((id) => explain(database, id)));

      expect(explained.map(({ details }) => details['ahead'])).toEqual([0, 1, 2]);
    });

    test('about-to-start', async () => {
      const { database } = await setup();
      await addQueue(database, { globalConcurrency: 1 });
      await enqueue(database, { workflowID: 'w' }, {});

      expect(await explain(database, 'w')).toMatchObject({
        reason: 'about-to-start',
        message: 'It is next in the queue and about to start.',
        details: { queueName: 'q', ahead: 0 },
      });
    });

    test('about-to-start, in the internal queue, which nobody registers', async () => {
      const { database } = await setup();
      await enqueue(database, { workflowID: 'w', queueName: INTERNAL_QUEUE });

      expect((await explain(database, 'w')).reason).toBe('about-to-start');
    });
  });
});
