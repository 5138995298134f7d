// Three processes under load, of which one after the other is killed and started again.
import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { countByStatus, expectAllDone, expectGivenIsDurable } from './invariants.js';
import { linesOf } from './journal.js';
import { startWorker, until, type Worker } from './processes.js';
import { withSeed } from './random.js';
import { idsOf, type Scene, setScene } from './setup.js';

const PROCESSES = 3;
const WORKFLOWS = 207;
const KILLS = 7;
/** `five` is one row, `family` has two children. */
const FREE_ROWS = (WORKFLOWS / 3) * (1 + 3 + 1);
/** One in each share waits until there have been all kills. */
const ROWS = FREE_ROWS + PROCESSES;

function startShare(worker: Worker, share: number): void {
  const ids = idsOf(`share-${share}`, WORKFLOWS / PROCESSES);
  worker.send({ do: 'launch' });
  worker.send({ do: 'start', name: 'five', workflowIDs: ids.filter((_, index) => index % 3 === 0) });
  worker.send({ do: 'start', name: 'family', workflowIDs: ids.filter((_, index) => index % 3 === 1) });
  worker.send({ do: 'start', name: 'sleeper', workflowIDs: ids.filter((_, index) => index % 3 === 2) });
  worker.send({ do: 'start', name: 'held', workflowIDs: [`held-${share}`] });
  worker.send({ do: 'finish' });
}

forEachDialect((dialect) => {
  test('workflows survive that their processes are killed again and again', () =>
    withSeed(async (random) => {
      const scene = await setScene(dialect);
      const { url, journalPath, journal, gate } = scene;
      const settings = { url, journalPath, gate, stepMs: 250, sleepMs: 2500 };
      const workers = await Promise.all(Array.from({ length: PROCESSES }, () => startWorker(settings)));
      const stepsRun = () => linesOf(journal.read(), 'step').length;

      workers.forEach(startShare);
      for (let kills = 1; kills <= KILLS; kills += 1) {
        const wanted = stepsRun() + random.below(60);
        await until(
          'some more steps have run',
          async () => stepsRun() >= wanted || (await countDone(scene)) === FREE_ROWS,
        );
        const share = kills === KILLS ? await shareThatHolds(scene, workers) : random.below(PROCESSES);
        await workers[share]?.kill();
        const linesThen = journal.read();
        // Others go on meanwhile, so the tables are later than the journal; what was given out must be there all the same.
        expectGivenIsDurable(await scene.tables(), linesThen);
        workers[share] = await startWorker(settings);
        // The same IDs again: those that exist are attached to.
        startShare(workers[share], share);
      }
      scene.openGate();
      await until('all workflows are done', async () => (await countDone(scene)) === ROWS, { boundMs: 120_000 });

      const lines = journal.read();
      const tables = await scene.tables();
      expect(tables.workflows.size).toBe(ROWS);
      expectAllDone(tables, lines);
      const recovered = [...tables.workflows.values()].filter(({ recoveryAttempts }) => recoveryAttempts > 1);
      expect(recovered.length).toBeGreaterThan(0);
    }));
});

async function countDone(scene: Scene): Promise<number> {
  return (await scene.withDatabase(countByStatus)).get('SUCCESS') ?? 0;
}

/** The share whose process is in the middle of a workflow that waits. */
async function shareThatHolds({ journal }: Scene, workers: readonly Worker[]): Promise<number> {
  const find = (): number => {
    const held = linesOf(journal.read(), 'step').filter(({ name }) => name === 'held');
    return workers.findIndex(({ pid }) => held.some((line) => line.pid === pid));
  };
  await until('a process holds a workflow', () => find() >= 0);
  return find();
}
