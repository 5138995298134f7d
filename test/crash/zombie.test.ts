// A process that is stopped for longer than its lease and then wakes up: what it held belongs to another one by now.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { expectAllDone, expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import { launchWorker, until } from './processes.js';
import { freeze, idsOf, launchHere, setScene } from './setup.js';

const HELD_IDS = idsOf('held', 3);
const HELD_OUTCOME_IDS = idsOf('outcome', 2);
const LEASE_SECONDS = 1;

forEachDialect((dialect) => {
  test('an owner that wakes up after its lease has ended changes nothing and goes on with new work', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, gate, journal } = scene;
    const owner = await launchWorker({ url, journalPath, gate, leaseSeconds: LEASE_SECONDS });
    await owner.perform({ do: 'start', name: 'held', workflowIDs: HELD_IDS });
    await owner.perform({ do: 'start', name: 'heldOutcome', workflowIDs: HELD_OUTCOME_IDS });
    const started = () => linesOf(journal.read(), 'step').filter(({ pid }) => pid === owner.pid);
    await until('all are held', () => started().length === 2 * HELD_IDS.length + HELD_OUTCOME_IDS.length);
    await until('all that came before is durable', async () => {
      const { steps } = await scene.tables();
      return steps.size === HELD_IDS.length + HELD_OUTCOME_IDS.length;
    });

    await freeze(scene, owner);
    const heir = await launchWorker({ url, journalPath, leaseSeconds: LEASE_SECONDS });
    await heir.perform({ do: 'start', name: 'held', workflowIDs: HELD_IDS });
    await heir.perform({ do: 'start', name: 'heldOutcome', workflowIDs: HELD_OUTCOME_IDS });
    await heir.perform({ do: 'finish' });
    const then = await scene.tables();
    const linesThen = journal.read();
    scene.openGate();
    owner.signal('SIGCONT');
    await owner.perform({ do: 'finish' });

    const now = await scene.tables();
    expectKept(then, now, journal.read().slice(linesThen.length));
    expect(now.workflows).toEqual(then.workflows);
    for (const workflowID of HELD_OUTCOME_IDS) {
      expect(now.workflows.get(workflowID)?.value).toContain(`pid:${heir.pid}`);
    }
    // With so short a lease, a busy machine could make anyone look dead.
    await heir.kill();
    await owner.perform({ do: 'start', name: 'five', workflowIDs: ['new'] });
    await owner.perform({ do: 'finish' });
    const lines = journal.read();
    expect(linesOf(lines, 'run').filter(({ workflowID }) => workflowID === 'new')).toMatchObject([{ pid: owner.pid }]);
    expect(linesOf(lines, 'result')).toHaveLength(2 * (HELD_IDS.length + HELD_OUTCOME_IDS.length) + 1);
    expectAllDone(await scene.tables(), lines);
  });
});

// A synchronous driver has the answer when it has committed.
onlyOn('postgres', (dialect) => {
  test('an owner that was stopped while its checkpoint was answered begins no step of a workflow that it has lost', async () => {
    const scene = await setScene(dialect);
    const { url, journalPath, journal } = scene;
    const steps = () => linesOf(journal.read(), 'step');
    const owner = await launchWorker({ url, journalPath, stepMs: 300 });
    const locker = new pg.Client(url);
    onTestFinished(() => locker.end());
    await locker.connect();
    const isAny = async (condition: string): Promise<boolean> => {
      const others = 'datname = current_database() AND pid <> pg_backend_pid()';
      return (await locker.query(`SELECT 1 FROM pg_stat_activity WHERE ${others} AND ${condition}`)).rows.length > 0;
    };
    await owner.perform({ do: 'start', name: 'five', workflowIDs: ['w'] });
    await until('the first step has begun', () => steps().length === 1);
    await locker.query('BEGIN');
    await locker.query('SELECT 1 FROM dbos.workflow_status FOR UPDATE');
    await until('its checkpoint waits', () => isAny(`wait_event_type = 'Lock'`));

    owner.signal('SIGSTOP');
    await locker.query('COMMIT');
    await until('it is durable', async () => !(await isAny(`state = 'active'`)));
    const { DBOS } = await launchHere(scene, {}, { stepMs: 100 });
    await DBOS.cancelWorkflow('w');
    await DBOS.resumeWorkflow('w');
    await DBOS.retrieveWorkflow('w').getResult();
    const before = steps().length;
    owner.signal('SIGCONT');
    await owner.perform({ do: 'finish' });

    expect(steps().slice(before)).toEqual([]);
    expectAllDone(await scene.tables(), journal.read());
  });
});
