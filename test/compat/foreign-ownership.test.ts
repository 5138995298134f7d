// Workflows that change hands between real DBOS workers and ours: neither owner tokens nor fences of ours are in their way,
// and nothing that is recorded runs again.
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import { onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { createNotes, isInstalled, type Release, startWorker } from './foreign.js';

const HOUR = 3_600_000;

interface Scene {
  readonly url: string;
  readonly notes: pg.Pool;
  /** Launches an engine of ours with the same workflow as the workers of DBOS. */
  readonly launch: (executorID: string) => Promise<Ours>;
}

interface Ours {
  readonly DBOS: DBOSInstance;
  readonly nap: (ms: number) => Promise<string>;
}

async function setup(dialect: TestDialect): Promise<Scene> {
  const url = await dialect.createURL();
  const notes = await createNotes(url);
  const launch = async (executorID: string): Promise<Ours> => {
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: url, applicationVersion: 'v1', executorID });
    const add = (name: string) => notes.query(`INSERT INTO steps VALUES ('everstep', $1)`, [name]);
    const nap = DBOS.registerWorkflow(
      async (ms: number) => {
        await DBOS.runStep(() => add('before').then(() => 1), { name: 'before' });
        await DBOS.sleep(ms);
        await DBOS.runStep(() => add('after').then(() => 2), { name: 'after' });
        return 'everstep';
      },
      { name: 'nap' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q', { minPollingIntervalMs: 20 });
    return { DBOS, nap };
  };
  return { url, notes, launch };
}

async function stepsOf({ notes }: Scene): Promise<string[]> {
  const { rows } = await notes.query<{ kind: string; name: string }>('SELECT kind, name FROM steps');
  return rows.map(({ kind, name }) => `${kind} ${name}`);
}

/** Waits until the workflow sleeps: its first step and its sleep are recorded. */
async function untilAsleep({ notes }: Scene): Promise<void> {
  await until(async () => (await notes.query('SELECT 1 FROM dbos.operation_outputs')).rows.length === 2);
}

async function untilEnded({ notes }: Scene): Promise<void> {
  await until(
    async () => (await notes.query(`SELECT 1 FROM dbos.workflow_status WHERE status = 'SUCCESS'`)).rows.length > 0,
  );
}

/** Makes the recorded sleep end now. */
async function wake({ notes }: Scene): Promise<void> {
  await notes.query(`UPDATE dbos.operation_outputs SET output = '1' WHERE function_name = 'DBOS.sleep'`);
}

const theirs = { applicationVersion: 'v1', executorID: 'theirs' };

describe.skipIf(!isInstalled)('a workflow changes hands', () => {
  onlyOn('postgres', (dialect) => {
    test.each<Release>(['dbos-5', 'dbos-4'])('one that we cancelled is resumed and ended by %s', async (release) => {
      const scene = await setup(dialect);
      const { DBOS, nap } = await scene.launch('ours');
      await DBOS.startWorkflow(nap, { workflowID: 'w', queueName: 'q' })(HOUR);
      await untilAsleep(scene);
      await DBOS.cancelWorkflow('w');
      await DBOS.shutdown();
      await wake(scene);
      const worker = await startWorker(release, scene.url, theirs);

      await worker.call('resume', 'w');

      await untilEnded(scene);
      const { DBOS: next } = await scene.launch('next');
      expect(await next.retrieveWorkflow('w').getResult()).toBe('dbos');
      expect(await stepsOf(scene)).toEqual(['everstep before', 'dbos after']);
    });

    test.each<Release>(['dbos-5', 'dbos-4'])(
      'one that is pending with us is taken over by %s, and our run stops',
      async (release) => {
        const scene = await setup(dialect);
        const { DBOS, nap } = await scene.launch('shared');
        const handle = await DBOS.startWorkflow(nap, { workflowID: 'w' })(HOUR);
        await untilAsleep(scene);
        await wake(scene);

        // Under our executor ID it recovers at its launch what is pending with us, and both may claim it.
        await startWorker(release, scene.url, { ...theirs, executorID: 'shared' });

        expect(['dbos', 'everstep']).toContain(await handle.getResult());
        const steps = await stepsOf(scene);
        expect(steps.map((step) => step.split(' ')[1])).toEqual(['before', 'after']);
        const { rows } = await scene.notes.query(`SELECT status FROM dbos.workflow_status WHERE workflow_uuid = 'w'`);
        expect(rows).toEqual([{ status: 'SUCCESS' }]);
      },
    );

    test('one that we put back on its queue at a shutdown is continued by DBOS', async () => {
      const scene = await setup(dialect);
      const { DBOS, nap } = await scene.launch('ours');
      await DBOS.startWorkflow(nap, { workflowID: 'w' })(HOUR);
      await untilAsleep(scene);
      await DBOS.shutdown();
      await wake(scene);

      await startWorker('dbos-5', scene.url, theirs);

      await untilEnded(scene);
      expect(await stepsOf(scene)).toEqual(['everstep before', 'dbos after']);
    });

    test.each<Release>(['dbos-5', 'dbos-4'])(
      'one that %s cancelled and left is resumed and ended by us',
      async (release) => {
        const scene = await setup(dialect);
        const { DBOS } = await scene.launch('ours');
        await DBOS.shutdown();
        const worker = await startWorker(release, scene.url, theirs);
        await worker.call('startNap', 'w', 'q', HOUR);
        await untilAsleep(scene);
        await worker.call('cancel', 'w');
        await worker.kill();
        await wake(scene);
        const { DBOS: next } = await scene.launch('next');

        const handle = await next.resumeWorkflow('w');

        expect(await handle.getResult()).toBe('everstep');
        expect(await stepsOf(scene)).toEqual(['dbos before', 'everstep after']);
      },
    );
  });
});
