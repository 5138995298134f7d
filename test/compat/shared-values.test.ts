// What DBOS has written is there for everything of ours that reads, and the other way round.
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAdmin } from '../../src/faces/http/admin.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { callerOf, TOKEN } from '../faces/http/scene.js';
import { call } from '../faces/cli/terminals.js';
import { postgres, wantsDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { createSharedDatabase, type DbosKind, launchPeer } from './peers.js';

describe.skipIf(!wantsDialect('postgres')).each<DbosKind>(['dbos-4', 'dbos-5'])('beside %s', (kind) => {
  it('input, output and error of its workflows are shown by clients, engines, the CLI and HTTP', async () => {
    const { url } = await createSharedDatabase({ isMigrated: true });
    const theirs = await launchPeer({ kind, url });
    const good = await theirs.perform<string>('start', { workflow: 'echo', args: [{ a: 1 }] });
    const bad = await theirs.perform<string>('start', { workflow: 'fail', args: ['broken'] });
    await theirs.perform('result', { id: good });
    await expect(theirs.perform('result', { id: bad })).rejects.toThrow('broken');
    const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
    onTestFinished(() => client.destroy());
    const { DBOS } = await createEngine(postgres, { systemDatabaseUrl: url });
    await DBOS.launch();
    const http = callerOf(createAdmin({ source: client, token: TOKEN }).fetch);

    const wanted = { input: [{ a: 1 }], output: { a: 1 } };
    expect(await client.getWorkflow(good)).toMatchObject(wanted);
    expect(await client.retrieveWorkflow(good).getStatus()).toMatchObject(wanted);
    expect(await DBOS.getWorkflowStatus(good)).toMatchObject(wanted);
    expect((await call(['workflow', 'get', good, '--json', '-s', url])).json()).toMatchObject(wanted);
    expect((await http('GET', `/api/v1/workflows/${good}`)).body).toMatchObject({
      input: { json: [{ a: 1 }] },
      output: { json: { a: 1 } },
    });

    expect(await client.getWorkflow(bad)).toMatchObject({ input: ['broken'], error: { message: 'broken' } });
    expect((await call(['workflow', 'get', bad, '-s', url])).out).toContain('broken');
  });

  it('it runs what the SQL function enqueues after our migration', async () => {
    const { url, query } = await createSharedDatabase({ isMigrated: true });
    const theirs = await launchPeer({ kind, url, queues: [['sql', {}]] });

    const [{ id } = { id: '' }] = await query<{ id: string }>(
      `SELECT dbos.enqueue_workflow('echo', 'sql', ARRAY['{"a":1}'::json]) AS id`,
    );

    expect(await theirs.perform('result', { id })).toEqual({ a: 1 });
  });
});
