// Processes that die while others live, and processes that recover at the same time.
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect, hasPush, onlyOn, type TestDialect } from '../rig/dialects.js';
import { countByStatus, expectAllDone, expectGivenIsDurable, expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import { launchWorker, startWorker, until, type Worker } from './processes.js';
import { idsOf, launchHere, type Scene, setScene } from './setup.js';

/** Starts workflows that wait in the middle of a step. */
async function hold(scene: Scene, worker: Worker, workflowIDs: readonly string[]): Promise<void> {
  await worker.perform({ do: 'start', name: 'held', workflowIDs });
  const held = () =>
    linesOf(scene.journal.read(), 'step').filter((line) => line.name === 'held' && line.pid === worker.pid);
  await until('all workflows are held', () => held().length === workflowIDs.length);
}

function untilAllDone(scene: Scene, count: number): Promise<void> {
  return scene.withDatabase((database) =>
    until(`${count} workflows are done`, async () => (await countByStatus(database)).get('SUCCESS') === count),
  );
}

/** Launches victims and, in this process, a survivor that knows them. Leases are too long to play a part. */
async function launchWithSurvivor(
  dialect: TestDialect,
  scene: Scene,
  { victims, host }: { readonly victims: number; readonly host?: string },
): Promise<Worker[]> {
  const { url, journalPath, gate } = scene;
  const leaseSeconds = 3600;
  const launchVictims = () =>
    Promise.all(Array.from({ length: victims }, () => launchWorker({ url, journalPath, gate, leaseSeconds, host })));
  // On SQLite, a launch is seen by its commit. On Postgres it is announced a moment later, so a victim that was launched
  // last could be killed before anyone knows of it.
  if (dialect.name === 'sqlite') await launchHere(scene, { leaseSeconds });
  const launched = await launchVictims();
  if (dialect.name === 'postgres') await launchHere(scene, { leaseSeconds });
  return launched;
}

async function measureTakeOver(dialect: TestDialect, host?: string): Promise<number> {
  const scene = await setScene(dialect);
  const [victim] = (await launchWithSurvivor(dialect, scene, { victims: 1, host })) as [Worker];
  await hold(scene, victim, idsOf('held', 10));

  await victim.kill();
  const killedAt = Date.now();
  const then = await scene.tables();
  const linesThen = scene.journal.read();
  await until('a workflow is run by the survivor', () => linesOf(scene.journal.read(), 'run').length > 10);
  const tookMs = Date.now() - killedAt;
  await untilAllDone(scene, 10);

  const now = await scene.tables();
  const lines = scene.journal.read();
  expectGivenIsDurable(then, linesThen);
  expectKept(then, now, lines.slice(linesThen.length));
  expectAllDone(now, lines);
  expect(linesOf(lines, 'run')).toHaveLength(20);
  return tookMs;
}

forEachDialect((dialect) => {
  test.each(['launched afterwards', 'alive all along'])(
    'the work of a process that dies after it was taken for dead is recovered by one %s',
    async (heir) => {
      const scene = await setScene(dialect);
      const { url, journalPath, gate } = scene;
      // Looks at the list of executors about once a second, the victim only now and then.
      const launchHeir = () => launchHere(scene, { leaseSeconds: 1 });
      const victim = await launchWorker({ url, journalPath, gate, leaseSeconds: 3600 });
      if (heir === 'alive all along') await launchHeir();

      // What a peer does at the end of a lease. The victim would enter the list again at its next heartbeat.
      await scene.withDatabase((database) =>
        database.run(sql`DELETE FROM ${table('executors')} WHERE lease_until_epoch_ms > ${Date.now() + 60_000}`),
      );
      await victim.perform({ do: 'start', name: 'held', workflowIDs: idsOf('held', 3) });
      await victim.kill();
      if (heir === 'launched afterwards') await launchHeir();

      await untilAllDone(scene, 3);
      expectAllDone(await scene.tables(), scene.journal.read());
    },
  );

  test('two processes that recover at the same time share the work', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, gate, journal } = scene;
    const workflowIDs = idsOf('held', 40);
    const victim = await launchWorker({ url, journalPath, gate });
    await hold(scene, victim, workflowIDs);
    const heirs = await Promise.all([startWorker({ url, journalPath }), startWorker({ url, journalPath })]);

    await victim.kill();
    const then = await scene.tables();
    const linesThen = journal.read();
    await Promise.all(heirs.map((heir) => heir.perform({ do: 'launch' })));
    await untilAllDone(scene, workflowIDs.length);

    const now = await scene.tables();
    const lines = journal.read();
    expectKept(then, now, lines.slice(linesThen.length));
    expectAllDone(now, lines);
    const runs = linesOf(lines.slice(linesThen.length), 'run');
    expect(runs.map(({ workflowID }) => workflowID).sort()).toEqual([...workflowIDs].sort());
    for (const workflow of now.workflows.values()) expect(workflow.recoveryAttempts).toBe(2);
  });

  test('the work of a process that is killed is taken over by one that is alive', async () => {
    const tookMs = await measureTakeOver(dialect);

    console.info(`${dialect.name}: taken over ${tookMs} ms after the kill, by looking for the process.`);
  });

  test('the work of two processes that are killed together is taken over by the third', async () => {
    const scene = await setScene(dialect);
    const victims = await launchWithSurvivor(dialect, scene, { victims: 2 });
    await Promise.all(victims.map((victim, index) => hold(scene, victim, idsOf(`held-${index}`, 5))));

    await Promise.all(victims.map((victim) => victim.kill()));
    const then = await scene.tables();
    const linesThen = scene.journal.read();
    await untilAllDone(scene, 10);

    const now = await scene.tables();
    const lines = scene.journal.read();
    expectKept(then, now, lines.slice(linesThen.length));
    expectAllDone(now, lines);
  });
});

onlyOn('postgres', (dialect) => {
  test.skipIf(!hasPush)('the work of a process that is killed on another machine is taken over', async () => {
    const tookMs = await measureTakeOver(dialect, `not-${hostname()}`);

    console.info(`${dialect.name}: taken over ${tookMs} ms after the kill, by the lock that it held.`);
  });
});
