// The view of timers shows when schedules fire next.
import { expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { raw } from '../../database/migrations/catalog.js';

forEachDialect((dialect) => {
  test('the next run of an active schedule is a timer', async () => {
    const { DBOS } = await createEngine(dialect);
    const report = DBOS.registerWorkflow(async (_at: Date, _context: unknown) => undefined, { name: 'report' });
    await DBOS.launch();
    const { database } = engineOf(DBOS).runtime;
    const view = dialect.name === 'postgres' ? 'dbos_history.timers' : 'history_timers';
    const timers = () => database.read(raw(`SELECT timer_id, workflow_id, fired, kind FROM ${view}`));
    // Once in four years: it is not due meanwhile.
    await DBOS.createSchedule({ scheduleName: 'leap', workflowFn: report, schedule: '0 12 29 2 *' });
    const [next] = await DBOS.nextRuns('leap', 1);

    await until(async () => (await timers()).length > 0);

    const [timer] = await timers();
    expect(timer).toMatchObject({
      timer_id: 'schedule:leap',
      workflow_id: `sched-leap-${next?.toISOString()}`,
      kind: 'schedule',
    });
    expect(Boolean(timer?.['fired'])).toBe(false);

    await DBOS.pauseSchedule('leap');
    expect(await timers()).toEqual([]);
    await DBOS.deleteSchedule('leap');
  });
});
