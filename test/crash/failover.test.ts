// The primary is killed while workflows run, and its synchronous standby is promoted. The URL names both.
import pg from 'pg';
import { expect, test } from 'vitest';
import { onlyOn } from '../rig/dialects.js';
import { expectAllDone } from './invariants.js';
import { linesOf } from './journal.js';
import { launchWorker, until } from './processes.js';
import type { ReplicasCommand } from './replicas-process.js';
import { holdServer } from './server-processes.js';
import { idsOf, setScene } from './setup.js';
import { urlsOf } from '../../src/database/postgres/postgres-url.js';

async function countWorkflows(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ count: string }>('SELECT count(*) FROM dbos.workflow_status');
  await client.end();
  return Number(rows[0]?.count);
}

onlyOn('postgres', (dialect) => {
  test('a failover loses nothing and repeats nothing', async () => {
    const replicas = await holdServer<ReplicasCommand>(new URL('./replicas-process.ts', import.meta.url));
    const { url } = replicas;
    const [formerURL = '', promotedURL = ''] = urlsOf(url).map((one) => one.replace(/\?.*/, ''));
    const scene = await setScene(dialect, promotedURL);
    const { journalPath, journal } = scene;
    const worker = await launchWorker({ url, journalPath, stepMs: 15 });
    await worker.perform({ do: 'start', name: 'five', workflowIDs: idsOf('five', 60) });
    await worker.perform({ do: 'start', name: 'family', workflowIDs: idsOf('family', 20) });
    const stepsRun = () => linesOf(journal.read(), 'step').length;
    await until('work is in full run', () => stepsRun() > 60);

    worker.send({ do: 'start', name: 'one', workflowIDs: ['meanwhile'] });
    await replicas.perform('fail');
    await until('meanwhile is done', () =>
      linesOf(journal.read(), 'result').some(({ workflowID }) => workflowID === 'meanwhile'),
    );
    // From now on there are two servers that accept writes.
    await replicas.perform('return');
    const before = await countWorkflows(formerURL);
    const second = await launchWorker({ url, journalPath });
    await second.perform({ do: 'start', name: 'one', workflowIDs: idsOf('second', 5) });
    await worker.perform({ do: 'start', name: 'one', workflowIDs: idsOf('first', 5) });
    await worker.perform({ do: 'finish' });
    await second.perform({ do: 'finish' });

    const lines = journal.read();
    const tables = await scene.tables();
    expectAllDone(tables, lines);
    expect(tables.workflows.size).toBe(60 + 20 * 3 + 1 + 10);
    // No run was given up: each workflow was begun once, and so was each step.
    expect(linesOf(lines, 'run')).toHaveLength(tables.workflows.size);
    expect(stepsRun()).toBe(60 * 5 + 20 * 6 + 1 + 10);
    expect(await countWorkflows(formerURL)).toBe(before);
  });
});
