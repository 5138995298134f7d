// Our client and command line on a database that only DBOS has made. Nothing is created there.
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { call } from '../faces/cli/terminals.js';
import { postgres, wantsDialect } from '../rig/dialects.js';
import { readCatalog } from '../database/migrations/catalog.js';
import { createSharedDatabase, type DbosKind, launchPeer } from './peers.js';

async function setup(kind: DbosKind) {
  const { url, query } = await createSharedDatabase();
  const theirs = await launchPeer({ kind, url, queues: [['q', {}]] });
  const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
  onTestFinished(() => client.destroy());
  return { url, query, theirs, client, database: await postgres.open(url) };
}

describe.skipIf(!wantsDialect('postgres')).each<DbosKind>(['dbos-4', 'dbos-5'])('on a database of %s', (kind) => {
  it('the client enqueues, sends, waits, lists and manages, and creates nothing', async () => {
    const { theirs, client, database } = await setup(kind);
    const before = await readCatalog(database);

    const handle = await client.enqueue({ workflowName: 'echo', queueName: 'q', workflowID: 'echoed' }, { a: 1 });
    expect(await handle.getResult()).toEqual({ a: 1 });
    // The same ID again is the same workflow.
    await client.enqueue({ workflowName: 'echo', queueName: 'q', workflowID: 'echoed' }, { a: 2 });
    expect(await client.getWorkflow('echoed')).toMatchObject({ input: [{ a: 1 }], output: { a: 1 } });

    await client.enqueue({ workflowName: 'mixed', queueName: 'q', workflowID: 'mixed' }, 'hello');
    expect(await client.getEvent('mixed', 'stage', 20)).toBe('waiting');
    await client.send('mixed', 'ping', 'topic');
    expect(await client.retrieveWorkflow('mixed').getResult()).toMatchObject({ received: 'ping' });
    expect((await client.listWorkflowSteps('mixed'))?.map(({ name }) => name)).toContain('before');
    expect((await client.listWorkflows({ status: 'SUCCESS' })).map(({ workflowID }) => workflowID).sort()).toEqual([
      'echoed',
      'mixed',
      'mixed-child',
    ]);

    await client.enqueue({ workflowName: 'echo', queueName: 'none', workflowID: 'waiting' }, 1);
    expect(await client.listQueuedWorkflows({ queueName: 'none' })).toHaveLength(1);
    await client.cancelWorkflow('waiting');
    await client.resumeWorkflow('waiting');
    expect(await client.retrieveWorkflow('waiting').getResult()).toBe(1);
    await client.forkWorkflow('waiting', 0, { newWorkflowID: 'forked' });
    expect(await client.retrieveWorkflow('forked').getResult()).toBe(1);
    await client.deleteWorkflow('waiting');
    expect(await client.getWorkflow('waiting')).toBeUndefined();

    await client.registerQueue('other', { concurrency: 2 });
    expect((await client.listQueues()).map(({ name }) => name).sort()).toEqual(['other', 'q']);
    await client.createSchedule({ scheduleName: 's', workflowName: 'tick', schedule: '0 0 1 1 *' });
    await client.pauseSchedule('s');
    expect(await client.getSchedule('s')).toMatchObject({ status: 'PAUSED' });
    await client.deleteSchedule('s');
    expect((await client.listApplicationVersions()).length).toBeGreaterThan(0);

    expect(await readCatalog(database)).toEqual(before);
    await theirs.end();
  });

  it('what needs our tables says so', async () => {
    const { client } = await setup(kind);

    const wanted = { code: 'EVERSTEP_TABLES_MISSING', message: expect.stringContaining('everstep migrate') };
    await expect(client.pauseQueue('q')).rejects.toMatchObject(wanted);
    const jittered = { scheduleName: 's', workflowName: 'tick', schedule: '* * * * *', options: { jitterMs: 5 } };
    await expect(client.createSchedule(jittered)).rejects.toMatchObject(wanted);
  });

  it('the command line works', async () => {
    const { url, theirs, database } = await setup(kind);
    const before = await readCatalog(database);
    const id = await theirs.perform<string>('start', { workflow: 'echo', args: ['x'] });
    await theirs.perform('result', { id });

    const commands = [
      'workflow list',
      `workflow get ${id}`,
      `workflow steps ${id}`,
      `workflow explain ${id}`,
      'queue list',
      'schedule list',
      'version list',
      'doctor',
    ];
    for (const line of commands) {
      const { exitCode, err } = await call([...line.split(' '), '-s', url]);
      expect([line, exitCode, err]).toEqual([line, 0, '']);
    }
    const paused = await call(['queue', 'pause', 'q', '-s', url]);
    expect(paused).toMatchObject({ exitCode: 1, err: expect.stringContaining('everstep migrate') });
    expect(await readCatalog(database)).toEqual(before);
  });
});
