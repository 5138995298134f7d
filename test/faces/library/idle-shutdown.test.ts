import { expect, test } from 'vitest';
import { internals } from '../../../src/kernel/base/internals.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

const IDLE_MS = 7_000;
const LOOK_MS = IDLE_MS / 4;

forEachDialect((dialect) => {
  async function setup() {
    const clock = new ManualClock();
    const { DBOS } = await createEngine(dialect, { shutdownAfterIdleMs: '7s' }, clock.settings);
    const workflow = DBOS.registerWorkflow(() => DBOS.recv('go', { timeoutSeconds: 86_400 }), { name: 'workflow' });
    await DBOS.launch();
    const isUp = (): boolean => DBOS[internals].lifecycle.engine !== undefined;
    const look = async (): Promise<void> => {
      await clock.untilArmed(LOOK_MS);
      clock.advance(LOOK_MS);
    };
    const untilDown = async (): Promise<void> => {
      while (isUp()) {
        await until(() => !isUp() || clock.isArmed(LOOK_MS));
        clock.advance(LOOK_MS);
      }
    };
    return { DBOS, workflow, isUp, look, untilDown };
  }

  test('a process that has nothing to do shuts down', async () => {
    const { isUp, look, untilDown } = await setup();
    for (let looks = 0; looks < 3; looks += 1) await look();
    expect(isUp()).toBe(true);

    await untilDown();
  });

  test('a running workflow and a wait keep the process up', async () => {
    const { DBOS, workflow, isUp, look, untilDown } = await setup();
    const handle = await DBOS.startWorkflow(workflow)();

    for (let looks = 0; looks < 8; looks += 1) await look();

    expect(isUp()).toBe(true);
    await DBOS.send(handle.workflowID, 'now', 'go');
    expect(await handle.getResult()).toBe('now');
    await untilDown();
  });
});
