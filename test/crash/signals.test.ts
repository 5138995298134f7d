// A process that is told to end: it finishes what it can in time and hands back the rest.
import { expect, test } from 'vitest';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect } from '../rig/dialects.js';
import { expectAllDone, expectGivenIsDurable, expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import { canStartInit, launchWorker, until } from './processes.js';
import { idsOf, launchHere, setScene } from './setup.js';

const SLEEPERS = idsOf('sleeper', 10);
const HELD = idsOf('held', 2);
const BUSY = idsOf('busy', 40);
const SHORT = idsOf('short', 10);

forEachDialect((dialect) => {
  test('a process that gets SIGTERM finishes what ends in time', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, gate, journal } = scene;
    const leaving = await launchWorker({ url, journalPath, gate, stepMs: 40, drainMs: 600_000 });
    await leaving.perform({ do: 'start', name: 'held', workflowIDs: HELD });
    await leaving.perform({ do: 'start', name: 'five', workflowIDs: SHORT });
    const held = () => linesOf(journal.read(), 'step').filter(({ name }) => name === 'held');
    await until('the held ones are held', () => held().length === HELD.length);

    leaving.signal('SIGTERM');
    scene.openGate();
    const exit = await leaving.exited;

    expect(exit, leaving.log()).toEqual({ code: null, signal: 'SIGTERM' });
    const { workflows } = await scene.tables();
    for (const workflowID of [...HELD, ...SHORT])
      expect(workflows.get(workflowID)).toMatchObject({ status: 'SUCCESS' });
  });

  test('a process that gets SIGTERM hands back what does not end in time', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, gate, journal } = scene;
    const leaving = await launchWorker({ url, journalPath, gate, sleepMs: 10_000, drainMs: 100 });
    await leaving.perform({ do: 'start', name: 'held', workflowIDs: HELD });
    await leaving.perform({ do: 'start', name: 'sleeper', workflowIDs: SLEEPERS });
    const held = () => linesOf(journal.read(), 'step').filter(({ name }) => name === 'held');
    await until('the held ones are held', () => held().length === HELD.length);

    leaving.signal('SIGTERM');
    const exit = await leaving.exited;
    const then = await scene.tables();
    const linesThen = journal.read();

    expect(exit, leaving.log()).toEqual({ code: null, signal: 'SIGTERM' });
    expectGivenIsDurable(then, linesThen);
    for (const workflowID of [...SLEEPERS, ...HELD]) {
      // Handed back, and not counted as an attempt.
      const handedBack = { status: 'ENQUEUED', owner: null, error: null, recoveryAttempts: 0 };
      expect(then.workflows.get(workflowID), workflowID).toMatchObject(handedBack);
    }
    const executors = await scene.withDatabase((database) =>
      database.read(sql`SELECT e.incarnation_id FROM ${table('executors')} AS e`),
    );
    expect(executors).toEqual([]);

    const { DBOS } = await launchHere(scene);
    for (const workflowID of [...SLEEPERS, ...HELD]) {
      const value = await DBOS.retrieveWorkflow(workflowID).getResult();
      journal.write({ kind: 'result', workflowID, value });
    }
    const now = await scene.tables();
    const lines = journal.read();
    expectKept(then, now, lines.slice(linesThen.length));
    expectAllDone(now, lines);
  });

  test.skipIf(!canStartInit())('a process with the ID 1, as in a container, ends on SIGTERM', async () => {
    const { url, journalPath, gate } = await setScene(dialect);
    const worker = await launchWorker({ url, journalPath, gate, stepMs: 1, sleepMs: 1, drainMs: 0 }, { asInit: true });

    worker.signal('SIGTERM');

    expect(await worker.exited, worker.log()).toEqual({ code: 143, signal: null });
  });

  test('a process that gets SIGTERM in full run fails none of its workflows', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, gate, journal } = scene;
    const leaving = await launchWorker({ url, journalPath, gate, stepMs: 3, sleepMs: 500, drainMs: 0 });
    await leaving.perform({ do: 'start', name: 'sleeper', workflowIDs: SLEEPERS });
    leaving.send({ do: 'start', name: 'family', workflowIDs: BUSY });
    await until('all are in full run', () => linesOf(journal.read(), 'step').length > 2 * BUSY.length);

    leaving.signal('SIGTERM');
    const exit = await leaving.exited;
    const then = await scene.tables();
    const linesThen = journal.read();

    expect(exit, leaving.log()).toEqual({ code: null, signal: 'SIGTERM' });
    expectGivenIsDurable(then, linesThen);
    const failed = [...then.workflows.values()].filter(({ status }) => status !== 'SUCCESS' && status !== 'ENQUEUED');
    expect(failed.map(({ workflowID, status, error }) => ({ workflowID, status, error }))).toEqual([]);

    const { DBOS } = await launchHere(scene);
    for (const workflowID of then.workflows.keys()) {
      const value = await DBOS.retrieveWorkflow(workflowID).getResult();
      journal.write({ kind: 'result', workflowID, value });
    }
    const now = await scene.tables();
    const lines = journal.read();
    expectKept(then, now, lines.slice(linesThen.length));
    expectAllDone(now, lines);
  });
});
