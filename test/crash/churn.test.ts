// Three processes under load, of which one after the other is killed and started again.
import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { countByStatus, expectAllDone, expectGivenIsDurable } from './invariants.js';
import { type Line, linesOf } from './journal.js';
import { startWorker, until, type Worker } from './processes.js';
import { withSeed } from './random.js';
import { idsOf, type Scene, setScene } from './setup.js';

const PROCESSES = 3;
const KILLS = 7;
const FIRST_SHARE = 69;
/** What comes anew with each process that is started. */
const NEXT_SHARE = 9;
/** `five` is one row, `sleeper` too, `family` has two children. */
const rowsOf = (workflows: number): number => (workflows / 3) * (1 + 1 + 3);

const SETTINGS = { stepMs: 250, sleepMs: 2500 };

function start(worker: Worker, ids: readonly string[]): void {
  worker.send({ do: 'launch' });
  worker.send({ do: 'start', name: 'five', workflowIDs: ids.filter((_, index) => index % 3 === 0) });
  worker.send({ do: 'start', name: 'family', workflowIDs: ids.filter((_, index) => index % 3 === 1) });
  worker.send({ do: 'start', name: 'sleeper', workflowIDs: ids.filter((_, index) => index % 3 === 2) });
  worker.send({ do: 'finish' });
}

/** Kills a process that has begun to run workflows, after some more steps of all of them. */
async function killOne({ journal }: Scene, victim: Worker, moreSteps: number): Promise<Line[]> {
  const stepsRun = (): number => linesOf(journal.read(), 'step').length;
  const isRunning = (): boolean => linesOf(journal.read(), 'run').some(({ pid }) => pid === victim.pid);
  const wanted = stepsRun() + moreSteps;
  await until('it runs workflows', isRunning);
  await until('some more steps have run, or all that there are', async () => {
    const before = stepsRun();
    await new Promise((resolve) => setTimeout(resolve, SETTINGS.stepMs));
    return stepsRun() >= wanted || stepsRun() === before;
  });
  await victim.kill();
  return journal.read();
}

forEachDialect((dialect) => {
  test('workflows survive that their processes are killed again and again', { timeout: 90_000 }, () =>
    withSeed(async (random) => {
      const scene = await setScene(dialect);
      const settings = { url: scene.url, journalPath: scene.journalPath, ...SETTINGS };
      const shares = Array.from({ length: PROCESSES }, (_, share) => idsOf(`share-${share}`, FIRST_SHARE));
      const workers = await Promise.all(shares.map(() => startWorker(settings)));

      workers.forEach((worker, share) => start(worker, shares[share] ?? []));
      for (let kill = 0; kill < KILLS; kill += 1) {
        const share = random.below(PROCESSES);
        const linesThen = await killOne(scene, workers[share] as Worker, random.below(60));
        // Others go on meanwhile, so the tables are later than the journal; what was given out must be there all the same.
        expectGivenIsDurable(await scene.tables(), linesThen);
        workers[share] = await startWorker(settings);
        // The same IDs again: those that exist are attached to.
        shares[share]?.push(...idsOf(`next-${kill}`, NEXT_SHARE));
        start(workers[share], shares[share] ?? []);
      }
      const rows = rowsOf(shares.flat().length);
      const isAllDone = async () => (await scene.withDatabase(countByStatus)).get('SUCCESS') === rows;
      await until('all workflows are done', isAllDone, { boundMs: 60_000 });

      const tables = await scene.tables();
      expect(tables.workflows.size).toBe(rows);
      expectAllDone(tables, scene.journal.read());
      const recovered = [...tables.workflows.values()].filter(({ recoveryAttempts }) => recoveryAttempts > 1);
      expect(recovered.length).toBeGreaterThan(0);
    }),
  );
});
