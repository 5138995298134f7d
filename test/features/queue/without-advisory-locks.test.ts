// Engines on a server without advisory locks: limits hold by a row lock, and the lease alone says who is alive.
import { expect, test } from 'vitest';
import { removeAdvisoryLocks } from '../../rig/advisory-locks.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { keepingLogger } from '../../database/migrations/setup.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql } from '../../../src/kernel/sql/sql.js';

onlyOn('postgres', (dialect) => {
  async function setup() {
    const url = await dialect.createURL();
    await removeAdvisoryLocks(url);
    let running = 0;
    let most = 0;
    const launch = async (executorID: string) => {
      const logger = keepingLogger();
      const config = { systemDatabaseUrl: url, executorID, applicationVersion: 'v', logger };
      const { DBOS } = await createEngine(dialect, config);
      const work = DBOS.registerWorkflow(
        async (partition: string) => {
          running += 1;
          most = Math.max(most, running);
          await DBOS.runStep(() => Promise.resolve());
          running -= 1;
          return partition;
        },
        { name: 'work' },
      );
      await DBOS.launch();
      return { DBOS, work, logger };
    };
    return { url, launch, most: () => most };
  }

  test('a server without advisory locks serves queues with a global limit, and keeps to it', async () => {
    const { launch, most } = await setup();
    const engines = [await launch('a'), await launch('b')] as const;
    const [{ DBOS, work }] = engines;
    await DBOS.registerQueue('limited', { concurrency: 2 });

    const started = Array.from({ length: 20 }, () => DBOS.startWorkflow(work, { queueName: 'limited' })('one'));
    const results = await Promise.all((await Promise.all(started)).map((handle) => handle.getResult()));

    expect(results).toHaveLength(20);
    expect(most()).toBeLessThanOrEqual(2);
  });

  test('a server without advisory locks serves partitions, and queues pause', async () => {
    const { launch } = await setup();
    const { DBOS, work } = await launch('a');
    await DBOS.registerQueue('parts', { partitionQueue: true, partitionConcurrency: 1 });
    const start = (partition: string) =>
      DBOS.startWorkflow(work, { queueName: 'parts', enqueueOptions: { queuePartitionKey: partition } })(partition);

    const handles = await Promise.all([start('x'), start('y'), start('x')]);

    expect(await Promise.all(handles.map((handle) => handle.getResult()))).toEqual(['x', 'y', 'x']);
    expect(await DBOS.pauseQueue('parts')).toBe(true);
  });

  test('an engine on a server without advisory locks listens, and has peers', async () => {
    const { launch } = await setup();
    const first = await launch('a');
    const second = await launch('b');

    const handle = await first.DBOS.startWorkflow(first.work, { workflowID: 'w' })('one');

    expect(await second.DBOS.retrieveWorkflow('w').getResult()).toBe('one');
    expect(await handle.getResult()).toBe('one');
    for (const { logger } of [first, second]) {
      expect(logger.warnings).toEqual([expect.stringMatching(/lacks advisory locks\. .* late is not refused/)]);
    }
  });

  test('a server without advisory locks gets the trigger for messages later', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    await removeAdvisoryLocks(url);
    const database = await dialect.open(url);
    await migrate(database, { logger: silentLogger, useListenNotify: false });
    const logger = keepingLogger();

    await migrate(database, { logger, useListenNotify: true });

    const found = await database.read(
      sql`SELECT t.tgname FROM pg_catalog.pg_trigger AS t WHERE t.tgname = 'dbos_notifications_trigger'`,
    );
    expect(found).toHaveLength(1);
    expect(logger.warnings).toEqual([]);
  });
});
