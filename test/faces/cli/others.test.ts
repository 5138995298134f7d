import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { call, type Called, type CallOptions } from './terminals.js';

interface Setup {
  readonly DBOS: DBOSInstance;
  readonly url: string;
  readonly everstep: (line: string | readonly string[], options?: CallOptions) => Promise<Called>;
}

/** A launched engine with a workflow and a queue, and the command line on its database. */
async function setup(dialect: TestDialect): Promise<Setup> {
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: '1.0' });
  DBOS.registerWorkflow(async (at: unknown) => at, { name: 'clean' });
  await DBOS.launch();
  await DBOS.registerQueue('mail', { globalConcurrency: 4 });
  return {
    DBOS,
    url,
    everstep: (line, options) => call(line, { environment: { DBOS_SYSTEM_DATABASE_URL: url }, ...options }),
  };
}

describe('the command line', () => {
  forEachDialect((dialect) => {
    test('shows, changes, pauses and removes queues', async () => {
      const { DBOS, everstep } = await setup(dialect);

      const changed = await everstep('queue set mail --rate-limit 10/60 --concurrency none');
      const paused = await everstep('q pause mail --json');
      const handle = await DBOS.enqueueWorkflowWithOptions({ queueName: 'mail', workflowName: 'clean' });
      const listed = await everstep('queue list');
      const stats = await everstep('queue stats mail --json');
      const resumed = await everstep('queue resume mail');
      await handle.getResult();
      const deleted = await everstep('queue delete mail --yes');
      const missing = await everstep('queue get mail');

      expect(changed.out).toMatch(/^limits +10 per 60 s$/m);
      expect(paused.json()).toMatchObject({ queueName: 'mail', settings: { rateLimit: { limitPerPeriod: 10 } } });
      expect(listed.out).toMatch(/^mail +paused +1 +0 +0 .*10 per 60 s +test$/m);
      expect(stats.json()).toMatchObject([{ queueName: 'mail', enqueued: 1 }]);
      expect(resumed).toMatchObject({ exitCode: 0, out: 'Queue "mail" resumed.\n' });
      expect(deleted.exitCode).toBe(0);
      expect(missing).toMatchObject({ exitCode: 3, out: '' });
    });

    test('lists, builds and drops optional indexes', async () => {
      const { DBOS, everstep } = await setup(dialect);

      const before = await everstep('index list --json');
      const built = await everstep('index create queuename');
      const again = await everstep('indexes create queueName --json');
      const listed = await everstep('index list');
      const dropped = await everstep('index drop queueName');
      const unknown = await everstep('index create queue');

      expect(before.json()).toContainEqual({ index: 'queueName', isThere: false, wouldHelp: false });
      expect(built).toMatchObject({ exitCode: 0, out: 'Index "queueName" is built.\n' });
      expect(again.json()).toEqual({ index: 'queueName', isThere: true });
      expect(listed.out).toMatch(/^queueName +yes$/m);
      expect(listed.out).toMatch(/^executorId +no$/m);
      expect(dropped).toMatchObject({ exitCode: 0, out: 'Index "queueName" is dropped.\n' });
      expect(await DBOS.listOptionalIndexes()).toContainEqual({ index: 'queueName', isThere: false });
      expect(unknown).toMatchObject({ exitCode: 2, out: '' });
      expect(unknown.err).toContain('There is no optional index "queue". Use one of queueName, workflowName,');
    });

    test('says if there was nothing to pause, to resume or to remove', async () => {
      const { DBOS, everstep } = await setup(dialect);
      await DBOS.enqueueWorkflowWithOptions({ queueName: 'memory', workflowName: 'clean' });
      await everstep(['schedule', 'create', 'nightly', '--cron', '0 3 * * *', '-n', 'clean']);

      const resumed = await everstep('queue resume mail');
      const paused = [await everstep('queue pause mail --json'), await everstep('queue pause mail --json')];
      const told = await everstep('queue pause mail');
      const notStored = await everstep('queue delete memory --yes');
      const active = await everstep('schedule resume nightly');
      const halted = [await everstep('schedule pause nightly --json'), await everstep('schedule pause nightly')];

      expect(resumed).toMatchObject({ exitCode: 0, out: 'Queue "mail" was not paused.\n' });
      expect(paused.map((one) => one.json<{ changed: boolean }>().changed)).toEqual([true, false]);
      expect(told.out).toMatch(/^Queue "mail" was already paused\.\n\nqueue +mail$/m);
      expect(notStored).toMatchObject({ exitCode: 3, out: '' });
      expect(active.out).toMatch(/^Schedule "nightly" was not paused\.$/m);
      expect(halted[0]?.json()).toMatchObject({ status: 'PAUSED', changed: true });
      expect(halted[1]?.out).toMatch(/^Schedule "nightly" was already paused\.$/m);
    });

    test('refuses settings that a queue cannot have', async () => {
      const { everstep } = await setup(dialect);

      expect(await everstep('queue set mail')).toMatchObject({ exitCode: 2 });
      expect(await everstep('queue set mail --rate-limit fast')).toMatchObject({
        exitCode: 2,
        err: 'Error: --rate-limit must be N/SECONDS|none, but is "fast".\n',
      });
      expect(await everstep('queue set nothing --concurrency 1')).toMatchObject({ exitCode: 3 });
      expect((await everstep('queue set mail --worker-concurrency 9')).err).toContain('must not be greater than');
    });

    test('lists schedules of which one has a context and an expression of another language', async () => {
      const { DBOS, everstep } = await setup(dialect);
      await everstep(['schedule', 'create', 'nightly', '--cron', '0 3 * * *', '-n', 'clean']);
      await everstep(['schedule', 'create', 'theirs', '--cron', '0 3 * * *', '-n', 'clean']);
      const { database } = engineOf(DBOS).runtime;
      await database.run(sql`
        UPDATE ${table('workflow_schedules')} SET context = 'gASVCgAAAAAAAAB9lIwBa5RLAXMu', schedule = 'R R * * *'
        WHERE schedule_name = 'theirs'`);

      const listed = await everstep('schedule list');

      expect(listed.exitCode).toBe(0);
      expect(listed.out).toMatch(/^nightly +active +0 3/m);
      expect(listed.out).toMatch(/^theirs +active +R R/m);
      expect((await DBOS.listSchedules()).map(({ context }) => context)).toContain('gASVCgAAAAAAAAB9lIwBa5RLAXMu');
      expect((await everstep('schedule get theirs --json')).json()).toMatchObject({ nextRunAt: null });
    });

    test('creates, shows, pauses, triggers, backfills and removes schedules', async () => {
      const { DBOS, everstep } = await setup(dialect);
      const create = [
        'schedule',
        'create',
        'nightly',
        '--cron',
        '0 3 * * *',
        '-n',
        'clean',
        '--timezone',
        'Europe/Berlin',
      ];

      const created = await everstep(create);
      const twice = await everstep(create);
      const listed = await everstep('schedule list');
      const paused = await everstep('schedule pause nightly --json');
      const resumed = await everstep('schedule resume nightly --json');
      const next = await everstep('schedule next nightly --count 2 --json');
      const triggered = await everstep('schedule trigger nightly --json');
      const filled = await everstep('schedule backfill nightly --from 2026-01-01 --to 2026-01-03 --json');
      const deleted = await everstep('schedule delete nightly', { input: ['yes'] });
      const missing = await everstep('schedule get nightly');

      expect(created.out).toMatch(/^next run +\d{4}-/m);
      expect(twice).toMatchObject({ exitCode: 1 });
      expect(listed.out).toMatch(/^nightly +active +0 3 \* \* \* +Europe\/Berlin +clean/m);
      expect(paused.json()).toMatchObject({ status: 'PAUSED', nextRunAt: null });
      expect(resumed.json()).toMatchObject({ status: 'ACTIVE' });
      expect(next.json<string[]>()).toHaveLength(2);
      const { workflowID } = triggered.json<{ workflowID: string }>();
      await DBOS.retrieveWorkflow(workflowID).getResult();
      expect(filled.json<{ workflowIDs: string[] }>().workflowIDs).toHaveLength(2);
      expect(deleted.exitCode).toBe(0);
      expect(missing).toMatchObject({ exitCode: 3 });
    });

    test('lists versions and chooses the latest', async () => {
      const { everstep } = await setup(dialect);

      const listed = await everstep('version list');
      const chosen = await everstep('version set-latest 1.0');
      const latest = await everstep('version latest');
      const missing = await everstep('version set-latest 9.9');

      expect(listed.out).toMatch(/^1\.0 +test .* latest$/m);
      expect(chosen.exitCode).toBe(0);
      expect(latest.out).toBe('1.0\n');
      expect(missing).toMatchObject({ exitCode: 3 });
    });

    test('renames an application after a question', async () => {
      const { DBOS, everstep } = await setup(dialect);
      await DBOS.shutdown();

      const unclear = await everstep('rename-application --to store');
      const refused = await everstep('rename-application --from test --to store', { input: [''] });
      const renamed = await everstep('rename-application -f test -t store -y --json');

      expect(unclear).toMatchObject({ exitCode: 2 });
      expect(refused).toMatchObject({ exitCode: 1 });
      expect(renamed.json()).toMatchObject({ queues: 1, versions: 1 });
    });

    test('finds nothing wrong with a database that is well', async () => {
      const { everstep } = await setup(dialect);

      const { out, exitCode } = await everstep('doctor');
      const report = (await everstep('doctor --json')).json();

      expect(exitCode).toBe(0);
      expect(out).toMatch(/^local +live +in /m);
      expect(out).toContain('✓ No problems found.');
      expect(report).toMatchObject({ isHealthy: true, isReachable: true, dialect: dialect.name, findings: [] });
    });

    test('finds queues that nobody serves', async () => {
      const { DBOS, everstep } = await setup(dialect);
      await DBOS.enqueueWorkflowWithOptions({ queueName: 'nowhere', workflowName: 'clean' });

      const { out, exitCode } = await everstep('doctor');

      expect(exitCode).toBe(1);
      expect(out).toContain('✗ 1 workflow(s) wait in queue "nowhere", but no live process serves it.');
    });
  });
});
