// A journal that gets partitions while workflows write to it, and the command for it.
import { expect, test } from 'vitest';
import type { HistoryEvent } from '../../../src/features/history/history.js';
import { PartitioningError } from '../../../src/kernel/errors/errors.js';
import { call } from '../../faces/cli/terminals.js';
import { until } from '../../crash/processes.js';
import { findPartitionFaults } from '../../../src/features/retention/partitioned-tables.sql.js';
import { onlyOn, partitioned, postgres } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { raw } from '../../database/migrations/catalog.js';

onlyOn('postgres', (dialect) => {
  test('no event is lost or doubled by a conversion while workflows run', async () => {
    const { DBOS } = await createEngine(dialect, { history: 'full' });
    const add = DBOS.registerStep(async (n: number) => n + 1, { name: 'add' });
    const work = DBOS.registerWorkflow(async () => add(await add(await add(0))), { name: 'work' });
    await DBOS.launch();
    const ids: string[] = [];
    let isConverted = false;
    const load = async (): Promise<void> => {
      while (!isConverted || ids.length < 20) {
        const handle = await DBOS.startWorkflow(work)();
        expect(await handle.getResult()).toBe(3);
        ids.push(handle.workflowID);
      }
    };
    const running = Promise.all([load(), load()]);
    await until('some have run', () => ids.length > 4);

    const converted = await DBOS.partitionHistory({ every: 'day', ahead: 1 }).finally(() => (isConverted = true));
    await running;
    const again = await DBOS.partitionHistory();

    expect(converted.converted).toBe(true);
    expect(again).toMatchObject({ converted: false });
    for (const id of ids) expect(await DBOS.checkHistory(id), id).toEqual([]);
    const { database } = engineOf(DBOS).runtime;
    const doubled = await database.read(
      raw(`SELECT e.workflow_id, e.key FROM dbos.journal_events AS e GROUP BY 1, 2 HAVING COUNT(*) > 1`),
    );
    expect(doubled).toEqual([]);
    // A follower that starts at the beginning gets each event once.
    const seen: HistoryEvent[] = [];
    const [count] = await database.read(raw('SELECT COUNT(*)::int AS events FROM dbos.journal_events'));
    const stop = new AbortController();
    for await (const event of DBOS.tailHistory({ since: 0, signal: stop.signal })) {
      seen.push(event);
      if (seen.length === count?.['events']) stop.abort();
    }
    expect(new Set(seen.map(({ workflowID }) => workflowID))).toEqual(new Set(ids));
  });

  test('an engine creates partitions in advance, without a retention', async () => {
    const clock = new ManualClock(Date.now());
    const { DBOS, url } = await createEngine(partitioned, {}, clock.settings);
    const database = await postgres.open(url);
    const ahead = await database.run(
      raw(`SELECT c.oid::regclass::text AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'dbos.journal'::regclass AND c.relname ~ '^journal_\\d'`),
    );
    for (const { name } of ahead) await database.run(raw(`DROP TABLE ${String(name)}`));
    expect(await findPartitionFaults(database)).toHaveLength(1);

    await DBOS.launch();

    await until('they are there', async () => {
      clock.advance(5000);
      return (await findPartitionFaults(database)).length === 0;
    });
    await DBOS.shutdown();
  });

  test('the command converts once, and doctor finds nothing wrong', async () => {
    const url = await postgres.createURL();

    const first = await call([
      'history',
      'partition',
      '--yes',
      '--every',
      'month',
      '--archive-index',
      '--sys-db-url',
      url,
    ]);
    const second = await call(['history', 'partition', '--yes', '--json', '--sys-db-url', url]);
    const migrated = await call(['migrate', '--sys-db-url', url]);
    const doctor = await call(['doctor', '--json', '--sys-db-url', url]);

    expect(first).toMatchObject({ exitCode: 0, out: expect.stringContaining('are partitioned') as string });
    expect(second.json()).toEqual({ converted: false, created: [] });
    expect(migrated.exitCode).toBe(0);
    expect(doctor.exitCode).toBe(0);
    expect(doctor.out).not.toContain('"partitions"');
  });
});

onlyOn('sqlite', (dialect) => {
  test('SQLite refuses it with an error of its own', async () => {
    const { DBOS } = await createEngine(dialect, {});
    await DBOS.launch();

    await expect(DBOS.partitionHistory()).rejects.toThrow(PartitioningError);
  });
});
