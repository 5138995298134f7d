// Workflows of queues with limits: whether they leave their slots while they wait.
import { expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { createScene, HOUR, isRunningIn, ownPromise, statusOf, sweep, untilParked } from './parking-scene.js';

forEachDialect((dialect) => {
  /** A queue with one slot, for a workflow that sleeps and one that holds its slot until it is released. */
  async function setup(releaseSlotWhileParked: boolean) {
    const scene = await createScene(dialect);
    const { DBOS } = scene;
    const held = ownPromise();
    const own = ownPromise();
    const ran: string[] = [];
    const note = (name: string) => DBOS.runStep(async () => Promise.resolve(ran.push(name)), { name });
    const sleeper = DBOS.registerWorkflow(
      async () => {
        await DBOS.sleep(HOUR);
        await note('sleeper');
      },
      { name: 'sleeper' },
    );
    const racer = DBOS.registerWorkflow(
      async () => {
        await Promise.race([DBOS.sleep(HOUR), own.promise]);
        await note('racer');
      },
      { name: 'racer' },
    );
    const holder = DBOS.registerWorkflow(() => DBOS.runStep(() => held.promise, { name: 'hold' }), { name: 'holder' });
    await DBOS.launch();
    await DBOS.registerQueue('q', { globalConcurrency: 1, releaseSlotWhileParked });
    const start = (workflow: typeof sleeper, workflowID: string) =>
      DBOS.startWorkflow(workflow, { workflowID, queueName: 'q' })();
    return { ...scene, ran, start, sleeper, racer, holder, release: () => held.release(), goOn: () => own.release() };
  }

  test('a parked workflow leaves its slot to another, and gets it again when it is due', async () => {
    const scene = await setup(true);
    const { clock, DBOS, ran, start } = scene;
    const handle = await start(scene.sleeper, 'w');
    await untilParked(scene, 'w');
    await start(scene.holder, 'holder');
    await until(() => isRunningIn(DBOS, 'holder'));

    clock.advance(HOUR);
    await until(async () => (await statusOf(DBOS, 'w')) === 'ENQUEUED');
    expect(isRunningIn(DBOS, 'w')).toBe(false);
    expect(ran).toEqual([]);
    scene.release();

    await handle.getResult();
    expect(ran).toEqual(['sleeper']);
  });

  test('without the option it stays in memory and keeps its slot', async () => {
    const scene = await setup(false);
    const { clock, DBOS, start } = scene;
    const handle = await start(scene.sleeper, 'w');
    await until(() => clock.isArmed(HOUR));
    await start(scene.holder, 'holder');

    await sweep(scene);

    expect(await statusOf(DBOS, 'w')).toBe('PENDING');
    expect(await statusOf(DBOS, 'holder')).toBe('ENQUEUED');
    clock.advance(HOUR);
    await handle.getResult();
    scene.release();
  });

  test('a workflow whose code goes on while it is parked waits for a slot', async () => {
    const scene = await setup(true);
    const { clock, DBOS, ran, start } = scene;
    const handle = await start(scene.racer, 'w');
    await untilParked(scene, 'w');
    await start(scene.holder, 'holder');
    await until(() => isRunningIn(DBOS, 'holder'));

    scene.goOn();
    await until(async () => (await statusOf(DBOS, 'w')) === 'ENQUEUED');
    expect(ran).toEqual([]);
    scene.release();
    clock.advance(HOUR);

    await handle.getResult();
    expect(ran).toEqual(['racer']);
  });

  test('the option is stored, listed and changed', async () => {
    const { DBOS } = await setup(true);
    const queue = await DBOS.retrieveQueue('q');

    expect(queue?.releaseSlotWhileParked).toBe(true);
    await queue?.setReleaseSlotWhileParked(false);

    expect(await queue?.getReleaseSlotWhileParked()).toBe(false);
    expect((await DBOS.retrieveQueue('q'))?.releaseSlotWhileParked).toBe(false);
    expect(engineOf(DBOS).queues.mayLeave('q')).toBe(false);
    await queue?.setReleaseSlotWhileParked(true);
    expect(engineOf(DBOS).queues.mayLeave('q')).toBe(true);
  });
});
