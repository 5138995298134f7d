// Processes that park and wake the same workflows: many at once, one that was presumed dead, and one whose server restarts.
import { expect, test } from 'vitest';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { expectAllDone, expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import type { ServerCommand } from './postgres-process.js';
import { launchWorker, until } from './processes.js';
import { holdServer } from './server-processes.js';
import { freeze, idsOf, type Scene, setScene } from './setup.js';

const PROCESSES = 8;
const PARKING = { parkAfterMs: 100, sleepMs: 3000 };

/** How often each step has run. */
function runsOf({ journal }: Scene): number[] {
  const counts = new Map<string, number>();
  for (const { workflowID, name } of linesOf(journal.read(), 'step')) {
    const key = `${workflowID}/${name}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts.values()];
}

async function untilParked(scene: Scene, count: number): Promise<void> {
  await until('workflows were parked', async () => {
    const { workflows } = await scene.tables();
    return [...workflows.values()].filter(({ status }) => status !== 'PENDING').length >= count;
  });
}

forEachDialect((dialect) => {
  test('of eight processes, one continues each workflow that is due', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath } = scene;
    const workers = await Promise.all(
      Array.from({ length: PROCESSES }, () => launchWorker({ url, journalPath, ...PARKING })),
    );

    await workers[0]?.perform({ do: 'start', name: 'sleeper', workflowIDs: idsOf('sleeper', 60) });
    await workers[0]?.perform({ do: 'finish' });

    expectAllDone(await scene.tables(), scene.journal.read());
    expect(runsOf(scene)).toEqual(Array.from({ length: 120 }, () => 1));
  });

  test('a process that was presumed dead while it parked changes nothing', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, journal } = scene;
    const ids = idsOf('sleeper', 20);
    const owner = await launchWorker({ url, journalPath, leaseSeconds: 1, ...PARKING });
    await owner.perform({ do: 'start', name: 'sleeper', workflowIDs: ids });

    await freeze(scene, owner);
    const heir = await launchWorker({ url, journalPath, leaseSeconds: 1, ...PARKING });
    await heir.perform({ do: 'start', name: 'sleeper', workflowIDs: ids });
    await heir.perform({ do: 'finish' });
    const then = await scene.tables();
    const linesThen = journal.read();
    owner.signal('SIGCONT');
    await owner.perform({ do: 'finish' });

    const now = await scene.tables();
    expectAllDone(now, journal.read());
    expectKept(then, now, journal.read().slice(linesThen.length));
    expect(now.workflows).toEqual(then.workflows);
  });
});

onlyOn('postgres', (dialect) => {
  test('workflows are parked and woken although the server crashes', async () => {
    const server = await holdServer<ServerCommand>(new URL('./postgres-process.ts', import.meta.url));
    const scene = await setScene(dialect, server.url);
    const { url, journalPath } = scene;
    const worker = await launchWorker({ url, journalPath, ...PARKING });
    await worker.perform({ do: 'start', name: 'guardian', workflowIDs: idsOf('guardian', 20) });

    // While they are being parked, perhaps, and when some have been.
    await server.perform('crash');
    await server.perform('start');
    await untilParked(scene, 10);
    await server.perform('crash');
    await server.perform('start');
    await worker.perform({ do: 'finish' });

    expectAllDone(await scene.tables(), scene.journal.read());
    expect(runsOf(scene)).toEqual(Array.from({ length: 80 }, () => 1));
  });
});
