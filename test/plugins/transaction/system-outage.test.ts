// The system database is away while a function runs in a transaction of the application's database.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { NodePostgresDataSource } from '../../../src/plugins/transaction/adapters/node-postgres.js';
import { until } from '../../crash/processes.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { startProxy } from '../../rig/proxy.js';

onlyOn('postgres', (postgres) => {
  test('holds no locks of the application, and is done once when the system database is back', async () => {
    const url = await postgres.createURL({ isMigrated: false });
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('CREATE TABLE counters (value INTEGER); INSERT INTO counters VALUES (0)');
    const proxy = await startProxy(await postgres.createURL());
    const { DBOS } = await createEngine(postgres, { systemDatabaseUrl: proxy.url });
    const source = new NodePostgresDataSource('app', { connectionString: url }, { owner: DBOS });
    let [bodies, updates] = [0, 0];
    const workflow = DBOS.registerWorkflow(
      async (isAway: boolean) => {
        await DBOS.runStep(async () => (isAway ? proxy.cut() : undefined), { name: 'before' });
        return source.runTransaction(
          async () => {
            bodies += 1;
            await source.client.query('UPDATE counters SET value = value + 1');
            updates += 1;
            return bodies;
          },
          { name: 'add' },
        );
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    // Whether both are one database is asked at the first transaction.
    await workflow(false);

    const result = workflow(true);
    await until('the function has locked the row', () => updates === 2);
    // Waits until the row is free.
    await client.query('SELECT value FROM counters FOR UPDATE');
    expect(bodies).toBe(2);
    proxy.restore();

    expect(await result).toBe(3);
    expect((await client.query('SELECT value FROM counters')).rows).toEqual([{ value: 2 }]);
  });
});
