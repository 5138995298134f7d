// The database server crashes and comes back while workflows run.
import { expect, test } from 'vitest';
import { onlyOn } from '../rig/dialects.js';
import { expectAllDone } from './invariants.js';
import { linesOf } from './journal.js';
import type { ServerCommand } from './postgres-process.js';
import { launchWorker, until } from './processes.js';
import { holdServer } from './server-processes.js';
import { idsOf, setScene } from './setup.js';

onlyOn('postgres', (dialect) => {
  test('a process goes on by itself when its database server has crashed', async () => {
    const server = await holdServer<ServerCommand>(new URL('./postgres-process.ts', import.meta.url));
    const scene = await setScene(dialect, server.url);
    const { url, journalPath, journal } = scene;
    const worker = await launchWorker({ url, journalPath, stepMs: 15 });
    await worker.perform({ do: 'start', name: 'five', workflowIDs: idsOf('five', 60) });
    await worker.perform({ do: 'start', name: 'family', workflowIDs: idsOf('family', 20) });
    const stepsRun = () => linesOf(journal.read(), 'step').length;

    for (let crashes = 1; crashes <= 2; crashes += 1) {
      await until('work is in full run', () => stepsRun() > crashes * 60);
      await server.perform('crash');
      // Started while there is no database, and durable when there is one again.
      worker.send({ do: 'start', name: 'one', workflowIDs: [`meanwhile-${crashes}`] });
      await server.perform('start');
    }
    await worker.perform({ do: 'finish' });

    const lines = journal.read();
    const tables = await scene.tables();
    expectAllDone(tables, lines);
    expect(tables.workflows.size).toBe(60 + 20 * 3 + 2);
    expect(linesOf(lines, 'result')).toHaveLength(82);
    // No run was given up: each workflow was begun once, and so was each step.
    expect(linesOf(lines, 'run')).toHaveLength(tables.workflows.size);
    expect(stepsRun()).toBe(60 * 5 + 20 * 6 + 2);
  });
});
