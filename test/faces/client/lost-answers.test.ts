// The answer to a commit of the client is lost. What was written is found again, and nothing is done twice.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { internals } from '../../../src/kernel/base/internals.js';
import { resumeWorkflows } from '../../../src/features/lifecycle/lifecycle.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import { topics } from '../../../src/database/notify/topics.js';
import { onlyOn } from '../../rig/dialects.js';
import { startProxy } from '../../rig/proxy.js';
import { connect } from './scene.js';

onlyOn('postgres', (dialect) => {
  /** A client behind a proxy. It tells nobody of what it does, so that nothing but its statements passes there. */
  async function setupProxy() {
    const url = await dialect.createURL();
    const proxy = await startProxy(url);
    // In a pool of the caller each request has the text of its statement with it.
    const pool = new pg.Pool({ connectionString: proxy.url, max: 1 });
    pool.on('error', () => {});
    onTestFinished(() => pool.end());
    const client = await connect(proxy.url, { systemDatabasePool: pool, useListenNotify: false });
    const database = await dialect.open(url);
    const count = async (rows: Sql) => Number((await database.read(sql`SELECT COUNT(*) AS n FROM ${rows}`))[0]?.['n']);
    const workflows = () => count(sql`${table('workflow_status')}`);
    const messages = () => count(sql`${table('notifications')}`);
    return { proxy, client, database, workflows, messages };
  }

  test('a workflow is enqueued once although nobody heard of it, and is no obstacle to itself', async () => {
    const { proxy, client, workflows } = await setupProxy();
    const options = { queueName: 'q', workflowName: 'w' };

    proxy.loseNextAnswer(/INSERT INTO/);
    const random = await client.enqueue(options);
    proxy.loseNextAnswer(/INSERT INTO/);
    const named = await client.enqueue({ ...options, workflowID: 'w', workflowIDReusePolicy: 'reject' });
    proxy.loseNextAnswer(/INSERT INTO/);
    const sole = await client.enqueue({ ...options, deduplicationID: 'd' });

    expect(proxy.losses).toBe(3);
    expect(await workflows()).toBe(3);
    for (const handle of [random, named, sole]) expect((await handle.getStatus())?.status).toBe('ENQUEUED');
  });

  test('a message is sent once although nobody heard of it', async () => {
    const { proxy, client, messages } = await setupProxy();
    const { workflowID } = await client.enqueue({ queueName: 'q', workflowName: 'w' });

    proxy.loseNextAnswer(/INSERT INTO/);
    await client.send(workflowID, 'once');

    expect(proxy.losses).toBe(1);
    expect(await messages()).toBe(1);
  });

  test('a verb that is repeated finds its own change done, and says that it has changed nothing', async () => {
    const { proxy, client, workflows } = await setupProxy();
    const options = { queueName: 'q', workflowName: 'w' };
    const [a, b] = [await client.enqueue(options), await client.enqueue(options)];
    await client.createSchedule({ scheduleName: 's', workflowName: 'w', schedule: '0 0 1 1 *' });

    proxy.loseNextAnswer(/UPDATE/);
    const cancelled = await client.cancelWorkflows([a.workflowID, b.workflowID]);
    proxy.loseNextAnswer(/paused_queues/);
    const paused = await client.pauseQueue('q');
    proxy.loseNextAnswer(/COMMIT\b/);
    const halted = await client.pauseSchedule('s');
    proxy.loseNextAnswer(/COMMIT\b/);
    const deleted = await client.deleteWorkflow(a.workflowID);

    expect(proxy.losses).toBe(4);
    expect([cancelled, paused, halted, deleted]).toEqual([[], false, false, []]);
    expect((await b.getStatus())?.status).toBe('CANCELLED');
    expect(await client.resumeQueue('q')).toBe(true);
    expect(await client.resumeSchedule('s')).toBe(true);
    expect(await workflows()).toBe(1);
  });

  test('a cancellation or deletion whose answer was lost is announced, so that the runs stop at once', async () => {
    const { proxy, client, database } = await setupProxy();
    const { bus } = client[internals].operator;
    const announced: string[] = [];
    bus.subscribe(topics.changes, (workflowIDs) => void announced.push(...workflowIDs));
    const options = { queueName: 'q', workflowName: 'w' };
    for (const workflowID of ['alone', 'parent', 'child', 'deleted']) await client.enqueue({ ...options, workflowID });
    await database.run(
      sql`UPDATE ${table('workflow_status')} SET parent_workflow_id = 'parent' WHERE workflow_uuid = 'child'`,
    );

    proxy.loseNextAnswer(/UPDATE/);
    await client.cancelWorkflow('alone');
    proxy.loseNextAnswer(/UPDATE/);
    await client.cancelWorkflow('parent', { cancelChildren: true });
    proxy.loseNextAnswer(/COMMIT\b/);
    await client.deleteWorkflow('deleted');

    expect(proxy.losses).toBe(3);
    expect(announced.toSorted()).toEqual(['alone', 'child', 'deleted', 'parent']);
  });

  test('a verb that does the same again when it is repeated says what it has changed', async () => {
    const { proxy, client } = await setupProxy();
    const { workflowID } = await client.enqueue({ queueName: 'q', workflowName: 'w' });

    proxy.loseNextAnswer(/UPDATE/);
    const delayed = await client.setWorkflowDelay(workflowID, 1000);
    proxy.loseNextAnswer(/UPDATE/);
    const prioritized = await client.setWorkflowPriority(workflowID, 3);
    proxy.loseNextAnswer(/COMMIT\b/);
    const resumed = await resumeWorkflows(client[internals].operator, [workflowID]);

    expect(proxy.losses).toBe(3);
    expect([delayed, prioritized, resumed]).toEqual([true, true, [workflowID]]);
  });

  test('a schedule is created, triggered and filled up once although nobody heard of it', async () => {
    const { proxy, client, workflows } = await setupProxy();

    proxy.loseNextAnswer(/COMMIT\b/);
    await client.createSchedule({ scheduleName: 's', workflowName: 'w', schedule: '0 0 1 1 *' });
    proxy.loseNextAnswer(/INSERT INTO/);
    const triggered = await client.triggerSchedule('s');
    proxy.loseNextAnswer(/INSERT INTO/);
    const filled = await client.backfillSchedule('s', new Date('2020-06-01'), new Date('2022-06-01'));

    expect(proxy.losses).toBe(3);
    expect(await client.listSchedules()).toHaveLength(1);
    expect(filled.map(({ workflowID }) => workflowID)).toEqual([
      'sched-s-2021-01-01T00:00:00.000Z',
      'sched-s-2022-01-01T00:00:00.000Z',
    ]);
    expect(triggered.workflowID).toMatch(/^sched-s-trigger-/);
    expect(await workflows()).toBe(3);
  });
});
