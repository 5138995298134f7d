// Connections that break at random moments: before a request arrives, or before its answer does.
import { expect, onTestFinished, test, vi } from 'vitest';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { onlyOn } from '../rig/dialects.js';
import { patientClock } from '../rig/patient-clock.js';
import { startProxy } from '../rig/proxy.js';
import { countByStatus, expectAllDone, expectGivenIsDurable, expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import { describeCommit } from './kill-points.js';
import { disturb } from './network.js';
import { launchWorker, until } from './processes.js';
import { withSeed } from './random.js';
import { idsOf, launchHere, setScene } from './setup.js';

const WORKFLOWS = 50;
const FAULTS_MIN = 6;

onlyOn('postgres', (dialect) => {
  test('connections that break at random moments lose and repeat nothing', () =>
    withSeed(async (random) => {
      const scene = await setScene(dialect);
      const { journal } = scene;
      const proxy = await startProxy(scene.url);
      const { DBOS, workflows } = await launchHere({ url: proxy.url, journal }, {}, { stepMs: 20 });
      let [isOver, faults, started] = [false, 0, 0];
      const runOne = async (workflowID: string): Promise<void> => {
        const handle = await DBOS.startWorkflow(workflows.five, { workflowID })();
        journal.write({ kind: 'handle', workflowID });
        const value = await handle.getResult();
        journal.write({ kind: 'result', workflowID, value });
      };

      const disturbed = disturb(
        proxy,
        random,
        () => isOver,
        () => void (faults += 1),
      );
      while (faults < FAULTS_MIN) {
        await Promise.all(idsOf(`five-${started}`, WORKFLOWS).map(runOne));
        started += WORKFLOWS;
      }
      isOver = true;
      await disturbed;

      const lines = journal.read();
      const tables = await scene.tables();
      expect(tables.workflows.size).toBe(started);
      expectAllDone(tables, lines);
      // The process never died, so nothing may have run twice at all.
      expect(linesOf(lines, 'run')).toHaveLength(started);
      expect(linesOf(lines, 'step')).toHaveLength(5 * started);
    }));

  test('a take-over over connections that break loses and repeats nothing', () =>
    withSeed(async (random) => {
      const scene = await setScene(dialect);
      const { url, journalPath, journal, gate } = scene;
      const proxy = await startProxy(url);
      const victim = await launchWorker({ url, journalPath, gate });
      await launchHere({ url: proxy.url, journal });
      await victim.perform({ do: 'start', name: 'held', workflowIDs: idsOf('held', WORKFLOWS) });
      await victim.perform({ do: 'start', name: 'five', workflowIDs: idsOf('five', WORKFLOWS) });
      const held = () => linesOf(journal.read(), 'step').filter(({ name }) => name === 'held');
      await until('all are held', () => held().length === WORKFLOWS);
      let isOver = false;

      await victim.kill();
      const then = await scene.tables();
      const linesThen = journal.read();
      const disturbed = disturb(proxy, random, () => isOver);
      await scene.withDatabase((database) =>
        until('all are done', async () => (await countByStatus(database)).get('SUCCESS') === 2 * WORKFLOWS),
      );
      isOver = true;
      await disturbed;

      const now = await scene.tables();
      const lines = journal.read();
      expectGivenIsDurable(then, linesThen);
      expectKept(then, now, lines.slice(linesThen.length));
      expectAllDone(now, lines);
    }));

  test('a take-over whose answer is lost is not forgotten', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, journal, gate } = scene;
    const proxy = await startProxy(url);
    const { commit } = PostgresDatabase.prototype as { commit: typeof PostgresDatabase.prototype.commit };
    const spy = vi.spyOn(PostgresDatabase.prototype, 'commit');
    onTestFinished(() => spy.mockRestore());
    const victim = await launchWorker({ url, journalPath, gate, leaseSeconds: 3600 });
    await launchHere({ url: proxy.url, journal }, { leaseSeconds: 3600 }, {}, { clock: patientClock });
    await victim.perform({ do: 'start', name: 'held', workflowIDs: idsOf('held', 3) });
    let losses = 0;
    spy.mockImplementation(function (this: PostgresDatabase, statements, options) {
      if (describeCommit(this, statements).includes('recover') && losses++ === 0) proxy.loseNextAnswer();
      return commit.call(this, statements, options);
    });

    await victim.kill();

    await scene.withDatabase((database) =>
      until('all are done', async () => (await countByStatus(database)).get('SUCCESS') === 3),
    );
    expect(losses).toBeGreaterThan(0);
    expectAllDone(await scene.tables(), journal.read());
  });
});
