// A process that is stopped for longer than its lease and then wakes up: what it held belongs to another one by now.
import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { expectAllDone, expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import { launchWorker, until } from './processes.js';
import { freeze, idsOf, setScene } from './setup.js';

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
