// What a client changes is in force at once in the engines that run, long before they would look by themselves.
import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/index.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { topics } from '../../../src/database/notify/topics.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { patientClock } from '../../rig/patient-clock.js';
import { connect, setup, setupEngine } from './scene.js';

// On the patient clock, engines never look by themselves.
describe('a running engine', () => {
  forEachDialect((dialect) => {
    test('stops the workflows that a client cancels, whatever they wait for, and no others', async () => {
      const { client, stopped } = await setup(dialect);
      const names = ['receive', 'sleep', 'step'];
      const enqueue = (workflowName: string) => client.enqueue({ queueName: 'q', workflowName });
      const [other, ...handles] = await Promise.all(['receive', ...names].map(enqueue));
      await Promise.all([...handles, other].map((handle) => client.getEvent(handle?.workflowID ?? '', 'waiting')));

      await Promise.all(handles.map(({ workflowID }) => client.cancelWorkflow(workflowID)));
      await until(() => stopped.length === names.length);

      await client.send(other?.workflowID ?? '', 'alive', 'topic');
      expect(await other?.getResult()).toBe('alive');
      expect(stopped.toSorted()).toEqual(names);
    });

    test('cancels the children of a workflow with it, and goes on with what a client resumes', async () => {
      const { DBOS, url } = await createEngine(dialect, {}, { clock: patientClock });
      const child = DBOS.registerWorkflow(async () => DBOS.recv<string>('topic', 1000), { name: 'child' });
      DBOS.registerWorkflow(async () => (await DBOS.startWorkflow(child, { workflowID: 'child' })()).getResult(), {
        name: 'parent',
      });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      const client = await connect(url);
      const parent = await client.enqueue({ queueName: 'q', workflowName: 'parent' });
      await until(async () => (await client.getWorkflow('child')) !== undefined);

      await client.cancelWorkflow(parent.workflowID, { cancelChildren: true });
      const cancelled = [await parent.getStatus(), await client.getWorkflow('child')];
      const [resumed] = await client.resumeWorkflows<string>([parent.workflowID, 'child'], { queueName: 'q' });
      await client.send('child', 'hello', 'topic');

      expect(cancelled.map((status) => status?.status)).toEqual(['CANCELLED', 'CANCELLED']);
      expect(await resumed?.getResult()).toBe('hello');
      await expect(client.resumeWorkflow('nobody')).rejects.toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
    });

    test('serves a queue that a client registers, and follows its changes', async () => {
      const { url } = await setupEngine(dialect);
      const client = await connect(url);

      const queue = await client.registerQueue('fresh', { concurrency: 1 });
      const enqueue = () => client.enqueue({ queueName: 'fresh', workflowName: 'receive' });
      const [first, second] = [await enqueue(), await enqueue()];
      await client.getEvent(first.workflowID, 'waiting');
      expect(await client.explainWorkflow(second.workflowID)).toMatchObject({ status: 'ENQUEUED' });
      await queue.setConcurrency(2);
      await client.getEvent(second.workflowID, 'waiting');

      await client.pauseQueue('fresh');
      await client.send(first.workflowID, 'done', 'topic');
      await first.getResult();
      const third = await enqueue();
      expect((await client.explainWorkflow(third.workflowID)).message).toMatch(/paused/);
      expect(await client.getQueueStats({ queueName: 'fresh' })).toMatchObject([{ enqueued: 1, running: 1 }]);
      await client.resumeQueue('fresh');
      expect(await client.getEvent(third.workflowID, 'waiting')).toBe(true);
    });

    test('takes work without a version when a client makes its version the latest', async () => {
      const { DBOS: old, url } = await setupEngine(dialect, { applicationVersion: 'old' });
      await old.registerQueue('q');
      const { DBOS: recent } = await createEngine(
        dialect,
        { systemDatabaseUrl: url, applicationVersion: 'recent' },
        { clock: patientClock },
      );
      await recent.launch();
      await recent.shutdown();
      const client = await connect(url);
      expect(await client.getLatestApplicationVersion()).toMatchObject({ versionName: 'recent' });
      const handle = await client.enqueue({ queueName: 'q', workflowName: 'add' }, 1, 2);
      const pinned = await client.enqueue({ queueName: 'q', workflowName: 'add', appVersion: 'old' }, 3, 4);
      expect(await pinned.getResult()).toBe(7);
      expect((await handle.getStatus())?.status).toBe('ENQUEUED');

      await client.setLatestApplicationVersion('old');

      expect(await handle.getResult()).toBe(3);
      const versions = await client.listApplicationVersions();
      expect(versions.map(({ versionName }) => versionName)).toEqual(['old', 'recent']);
      await expect(client.setLatestApplicationVersion('unknown')).rejects.toThrow(/Application version "unknown"/);
    });

    test('fires the schedules that a client creates', async () => {
      const clock = new ManualClock();
      const { DBOS, url } = await createEngine(dialect, {}, clock.settings);
      const runs: unknown[] = [];
      DBOS.registerWorkflow(async (due: Date, context: unknown) => void runs.push(due.getUTCSeconds(), context), {
        name: 'tick',
      });
      await DBOS.launch();
      const client = await connect(url);
      const reads = countReads(DBOS);
      const before = clock.now();
      const schedule = { scheduleName: 's', workflowName: 'tick', schedule: '30 * * * * *', context: { a: 1 } };

      await client.createSchedule({ ...schedule, options: { jitterMs: 0 } });
      // By itself the engine would read the schedules after some minutes; on SQLite it looks around now and then.
      await until(() => {
        if (clock.now() < before + 1000) clock.advance(50);
        return reads() > 0;
      });
      clock.advance(40_000);
      await until(() => {
        if (clock.now() < before + 80_000) clock.advance(10);
        return runs.length > 0;
      });

      expect(runs).toEqual([30, { a: 1 }]);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('stops a workflow whose cancellation is announced while it looks for others', async () => {
      const { DBOS, client, stopped } = await setup(dialect);
      const [first, second] = [
        await client.enqueue({ queueName: 'q', workflowName: 'receive' }),
        await client.enqueue({ queueName: 'q', workflowName: 'sleep' }),
      ];
      for (const { workflowID } of [first, second]) await client.getEvent(workflowID, 'waiting');
      const { database, listener } = engineOf(DBOS).runtime.store;
      const announced = new Promise<void>((resolve) => {
        listener.subscribe((wakeup) => {
          // A listener that has connected again may have missed it, and looks as well.
          if (wakeup.kind === 'anything') resolve();
          if (
            wakeup.kind === 'message' &&
            wakeup.channel === topics.changes.channel &&
            wakeup.payload === second.workflowID
          )
            resolve();
        });
      });
      const looked = holdFirstLook(database, announced);

      // Announcements may be lost, and then the engine would not look before it polls: each is made twice.
      const announce = (workflowID: string) =>
        database.run(sql`SELECT pg_notify(${topics.changes.channel}, ${workflowID})`);
      await client.cancelWorkflow(first.workflowID);
      await announce(first.workflowID);
      await looked;
      await client.cancelWorkflow(second.workflowID);
      await announce(second.workflowID);
      await until(() => stopped.length === 2);

      expect(stopped).toEqual(['receive', 'sleep']);
    });
  });
});

/** How often the engine has read its schedules since. */
function countReads(DBOS: DBOSInstance): () => number {
  const { scheduler } = engineOf(DBOS);
  const reload = scheduler.reload.bind(scheduler);
  let count = 0;
  Object.assign(scheduler, {
    reload: async (names?: readonly string[]) => {
      await reload(names);
      count += 1;
    },
  });
  return () => count;
}

/** Keeps back the answer to the first look for runs that have lost their workflows. Resolves when it is there. */
function holdFirstLook(database: Database, until: Promise<void>): Promise<void> {
  const read = database.read.bind(database);
  return new Promise((resolve) => {
    let isFirst = true;
    const held: Database['read'] = async (statement) => {
      const rows = await read(statement);
      if (!isFirst || !JSON.stringify(statement).includes('SELECT r.ordinal\\n')) return rows;
      isFirst = false;
      resolve();
      await until;
      return rows;
    };
    Object.assign(database, { read: held });
  });
}
