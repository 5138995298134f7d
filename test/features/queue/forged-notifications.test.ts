// Any role that may connect can send on our channels. What it sends can cause a look at the database, and nothing else.
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { PartitionRotation } from '../../../src/features/queue/partition-rotation.run.js';
import { CHANNELS } from '../../../src/database/notify/topics.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';

const FORGED = [
  '',
  'null',
  '5',
  '[]',
  '{',
  '[null]',
  '[5,5]',
  '["q","\\u0000"]',
  '["\\u0000"]',
  '["q","\\ud800"]',
  `["q",${'['.repeat(3000)}`,
  '["__proto__","constructor"]',
  'x'.repeat(7999),
];

onlyOn('postgres', (dialect) => {
  test('forged payloads on all channels keep no queue from being served', async () => {
    const { DBOS, url } = await createEngine(dialect);
    const echo = DBOS.registerWorkflow(async (text: string) => text, { name: 'echo' });
    await DBOS.launch();
    await DBOS.registerQueue('q', { partitionQueue: true, concurrency: 1 });
    const stranger = new pg.Client({ connectionString: url });
    await stranger.connect();
    onTestFinished(() => stranger.end());

    for (const channel of CHANNELS)
      for (const payload of FORGED) await stranger.query('SELECT pg_notify($1, $2)', [channel, payload]);
    await stranger.query(
      `SELECT pg_notify('everstep_queues', json_build_array('q', 'forged-' || n)::text) FROM generate_series(1, 5000) AS n`,
    );

    const options = { queueName: 'q', enqueueOptions: { queuePartitionKey: 'p' } };
    const handle = await DBOS.startWorkflow(echo, options)('served');
    expect(await handle.getResult()).toBe('served');
  });
});

onlyOn('postgres', (dialect) => {
  test('a flood of forged schedules causes few reads, and a real one is known', async () => {
    const { DBOS, url } = await createEngine(dialect);
    const tick = DBOS.registerWorkflow(async () => {}, { name: 'tick' });
    await DBOS.launch();
    const reload = vi.spyOn(engineOf(DBOS).scheduler, 'reload');
    const stranger = new pg.Client({ connectionString: url });
    await stranger.connect();
    onTestFinished(() => stranger.end());
    await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 1 1 *' });

    await stranger.query(`UPDATE dbos.workflow_schedules SET schedule = '* * * * * *'`);
    await stranger.query(`SELECT pg_notify('everstep_schedules', 'forged-' || n) FROM generate_series(1, 5000) AS n`);
    await stranger.query(`SELECT pg_notify('everstep_schedules', 's')`);

    await until(async () => (await DBOS.listWorkflows({ workflowName: 'tick' })).length > 0);
    expect(reload.mock.calls.length).toBeLessThan(500);
  });
});

test('a flood of partitions is not remembered', () => {
  const rotation = new PartitionRotation(
    systemClock,
    () => {},
    () => 1000,
  );

  for (let index = 0; index < 100_000; index += 1) rotation.add(`forged-${index}`);

  expect(rotation.readyCount).toBeLessThanOrEqual(2000);
  rotation.take(2000);
  expect(rotation.scanAfter).toBe('');
});
