import { describe, expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { setup } from './scene.js';

forEachDialect((dialect) => {
  test('a queue in detail has its executors, rate and largest partitions', async () => {
    const { call, enqueue, run } = await setup(dialect);
    await call('PUT', '/api/v1/queues/a%2Fb', { partitionQueue: true, partitionConcurrency: 1 });
    for (const queuePartitionKey of ['small', 'large', 'large', 'large']) {
      await enqueue('receive', { queueName: 'a/b', queuePartitionKey });
    }
    await run('add', { args: [1, 2] });
    const details = async (name: string) => (await call('GET', `/api/v1/queues/${name}/details`)).body as unknown;
    const running = async (): Promise<unknown> => ((await details('a%2Fb')) as { running: number }).running;
    await until(async () => (await running()) === 2);

    expect(await details('a%2Fb')).toMatchObject({
      queueName: 'a/b',
      enqueued: 2,
      running: 2,
      claimedPerMinute: 0.2,
      executors: [{ executorID: 'local', running: 2 }],
      partitions: [
        { partitionKey: 'large', enqueued: 2, running: 1 },
        { partitionKey: 'small', enqueued: 0, running: 1 },
      ],
      partitionCount: 2,
    });
    expect(await details('q')).toMatchObject({ enqueued: 0, running: 0, claimedPerMinute: 0.1, partitions: [] });
    expect(await details('unknown')).toMatchObject({ enqueued: 0, oldestWaitMs: null, executors: [] });
  });

  test('executors and versions show what they have to do', async () => {
    const { call, enqueue, DBOS } = await setup(dialect);
    const id = await enqueue('receive');
    await until(async () => (await DBOS.getWorkflowStatus(id))?.status === 'PENDING');
    await enqueue('add', { args: [1, 2], appVersion: 'gone' });

    const { executors } = (await call('GET', '/api/v1/executors')).body as { executors: object[] };
    const { versions } = (await call('GET', '/api/v1/version-work')).body as { versions: { versionName: string }[] };

    expect(executors).toMatchObject([
      { executorID: 'local', isAlive: true, running: 1, startedAt: expect.any(Number) },
    ]);
    expect(versions.find(({ versionName }) => versionName === 'gone')).toMatchObject({
      enqueued: 1,
      executors: 0,
      isLatest: false,
    });
    expect(versions.find(({ versionName }) => versionName !== 'gone')).toMatchObject({
      running: 1,
      executors: 1,
      isLatest: true,
    });
  });

  test('a backfill can be previewed, and a cron expression', async () => {
    const { call } = await setup(dialect);
    await call('POST', '/api/v1/schedules', { scheduleName: 'hourly', workflowName: 'tick', schedule: '0 * * * *' });
    const preview = async (start: string, end: string) =>
      (await call('POST', '/api/v1/schedules/hourly/backfill-preview', { start, end })).body as unknown;

    expect(await preview('2030-01-01T00:00:00Z', '2030-01-01T03:00:00Z')).toEqual({
      count: 2,
      occurrences: ['2030-01-01T01:00:00.000Z', '2030-01-01T02:00:00.000Z'],
      isTruncated: false,
    });
    expect(await preview('2030-01-01T00:00:00Z', '2040-01-01T00:00:00Z')).toMatchObject({
      count: 10_000,
      isTruncated: true,
    });
    expect((await call('GET', '/api/v1/workflow-count?scheduleName=hourly')).body).toMatchObject({ count: 0 });
    const { body } = await call('GET', '/api/v1/schedule-preview?schedule=0%200%201%201%20*&count=2');
    expect(body.nextRuns).toHaveLength(2);
    const wrong = await call('GET', '/api/v1/schedule-preview?schedule=often');
    expect([wrong.status, wrong.body.error.message]).toEqual([400, expect.stringContaining('cron')]);
  });

  describe('retention', () => {
    test('is shown, and planned without deleting', async () => {
      const retention = { completed: '30 days', perWorkflow: { fail: {} } } as const;
      const { call, run } = await setup(dialect, {}, { retention });
      await run('add', { args: [1, 2] });

      const configured = await call('GET', '/api/v1/retention');
      const byDefault = await call('POST', '/api/v1/retention/plan', {});
      const given = await call('POST', '/api/v1/retention/plan', { completed: 0 });

      expect(configured.body).toEqual({ policy: retention, isArchiving: false });
      expect(byDefault.body).toEqual({ plan: [] });
      expect(given.body).toMatchObject({ plan: [{ name: 'add', status: 'SUCCESS', workflows: 1 }] });
      expect((await call('GET', '/api/v1/workflow-count')).body).toMatchObject({ count: 1 });
      expect((await call('POST', '/api/v1/retention/plan', { completed: 'soon' })).status).toBe(400);
    });

    test('that is not configured is null, and cannot be planned', async () => {
      const { call } = await setup(dialect);

      expect((await call('GET', '/api/v1/retention')).body).toEqual({ policy: null, isArchiving: false });
      expect((await call('POST', '/api/v1/retention/plan', {})).status).toBe(400);
    });
  });

  test('health has the versions of the tables, indexes and findings', async () => {
    const { call } = await setup(dialect);
    const indexes = async (): Promise<unknown> => (await call('GET', '/api/v1/health')).body.indexes as unknown;

    const { body } = await call('GET', '/api/v1/health');
    await call('PUT', '/api/v1/indexes/workflowName');
    const built = await indexes();
    await call('DELETE', '/api/v1/indexes/workflowName');

    expect(body).toMatchObject({
      database: dialect.name,
      schema: { due: 0 },
      findings: expect.any(Array) as unknown[],
    });
    expect(body.schema.versions).toEqual(body.schema.neededVersions);
    expect(body.indexes).toContainEqual({ index: 'workflowName', isThere: false });
    expect(built).toContainEqual({ index: 'workflowName', isThere: true });
    expect(await indexes()).toContainEqual({ index: 'workflowName', isThere: false });
    expect((await call('PUT', '/api/v1/indexes/__proto__')).status).toBe(400);
  });

  test('counts above a maximum are estimates', async () => {
    const { call, enqueue, DBOS } = await setup(dialect);
    await DBOS.pauseQueue('q');
    for (let index = 0; index < 4; index++) await enqueue('add', { args: [1, 2] });
    const count = async (exactMax: number) =>
      (await call('GET', `/api/v1/workflow-count?queueName=q&exactMax=${exactMax}`)).body as unknown;

    expect(await count(4)).toEqual({ count: 4, isEstimate: false });
    expect(await count(2)).toMatchObject({ count: expect.any(Number) as number, isEstimate: true });
  });
});
