// The answer to a change of schedules is lost, and the change is tried again.
import { expect, onTestFinished, test, vi } from 'vitest';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { onlyOn } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { startProxy } from '../rig/proxy.js';

onlyOn('postgres', (dialect) => {
  async function setup() {
    const proxy = await startProxy(await dialect.createURL());
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: proxy.url, applicationVersion: 'v1' });
    const runs: Date[] = [];
    const tick = DBOS.registerWorkflow(async (due: Date) => void runs.push(due), { name: 'tick' });
    await DBOS.launch();
    let losses = 0;
    /** Carries out the next transaction or the commit of a triggered run, and loses the answer when it is sent once more. */
    const loseOnce = (method: 'commit' | 'transaction') => {
      // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
      const original = PostgresDatabase.prototype[method] as (
        this: PostgresDatabase,
        argument: never,
      ) => Promise<never>;
      const spy = vi.spyOn(PostgresDatabase.prototype, method) as unknown as {
        mockImplementation(f: (this: PostgresDatabase, argument: never) => Promise<never>): { mockRestore(): void };
      };
      const mocked = spy.mockImplementation(async function (argument) {
        const isWanted = method === 'transaction' || JSON.stringify(argument).includes('sched-s-trigger');
        const answer = await original.call(this, argument);
        if (!isWanted || losses > 0) return answer;
        losses += 1;
        proxy.loseNextAnswer();
        return original.call(this, argument);
      });
      onTestFinished(() => mocked.mockRestore());
    };
    return { DBOS, tick, runs, loseOnce, losses: () => losses };
  }

  test('a schedule that was created although nobody heard of it is no obstacle to itself', async () => {
    const { DBOS, tick, loseOnce, losses } = await setup();
    loseOnce('transaction');

    await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 1 1 *' });

    expect(losses()).toBe(1);
    expect((await DBOS.listSchedules()).length).toBe(1);
  });

  test('a schedule that was triggered although nobody heard of it runs once', async () => {
    const { DBOS, tick, runs, loseOnce, losses } = await setup();
    await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 1 1 *' });
    loseOnce('commit');

    const handle = await DBOS.triggerSchedule('s');
    await handle.getResult();

    expect(losses()).toBe(1);
    expect(runs.length).toBe(1);
  });
});
