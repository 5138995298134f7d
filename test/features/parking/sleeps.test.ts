// A workflow that sleeps for long leaves memory, and continues when it is due, in any process of its version.
import { expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { createScene, HOUR, isParked, isRunningIn, ownPromise, statusOf, sweep, untilParked } from './parking-scene.js';

forEachDialect((dialect) => {
  /** A workflow with a step before and after an hour of sleep. */
  async function setup(options: { parkAfterMs?: number } = {}) {
    const scene = await createScene(dialect);
    const { DBOS } = scene;
    const steps: string[] = [];
    const step = (name: string) => DBOS.runStep(async () => Promise.resolve(steps.push(name)), { name });
    const sleeper = DBOS.registerWorkflow(
      async (ms: number) => {
        await step('before');
        await DBOS.sleep(ms);
        await step('after');
        return 'slept';
      },
      { name: 'sleeper', ...options },
    );
    await DBOS.launch();
    return { ...scene, steps, sleeper };
  }

  test('a workflow that sleeps for long leaves memory and continues when it is due', async () => {
    const { clock, DBOS, steps, sleeper, ...scene } = await setup();
    const begunAt = clock.now();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })(HOUR);
    const result = handle.getResult();

    await untilParked({ clock, DBOS, ...scene }, 'w');
    const parked = await DBOS.getWorkflowStatus('w');
    clock.advance(HOUR);

    expect(await result).toBe('slept');
    expect(steps).toEqual(['before', 'after']);
    expect(parked).toMatchObject({ status: 'PENDING', recoveryAttempts: 1 });
    expect(parked?.waitingFor).toEqual([{ kind: 'sleep', until: begunAt + HOUR }]);
    expect(parked).toMatchObject({ queueName: undefined, delayUntilEpochMS: undefined });
    expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS', recoveryAttempts: 1 });
  });

  test.each([
    ['a sleep that is shorter than parkAfterMs', { ms: 9_000, parkAfterMs: undefined }],
    ['a workflow whose parkAfterMs is 0', { ms: HOUR, parkAfterMs: 0 }],
  ])('%s stays in memory', async (_, { ms, parkAfterMs }) => {
    const { clock, DBOS, sleeper, ...scene } = await setup({ parkAfterMs });
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })(ms);
    await clock.untilArmed(ms);

    if (parkAfterMs === undefined) await sweep({ clock, DBOS, ...scene });

    expect(await statusOf(DBOS, 'w')).toBe('PENDING');
    expect(isRunningIn(DBOS, 'w')).toBe(true);
    clock.advance(ms);
    expect(await handle.getResult()).toBe('slept');
  });

  test('a parked workflow continues in another process', async () => {
    const { clock, DBOS, sleeper, url, steps } = await setup();
    await DBOS.startWorkflow(sleeper, { workflowID: 'w' })(HOUR);
    await untilParked({ clock, DBOS, url }, 'w');
    await DBOS.shutdown();
    const { DBOS: other } = await createScene(dialect, { systemDatabaseUrl: url, executorID: 'two' }, clock);
    other.registerWorkflow(
      async (ms: number) => {
        await other.runStep(async () => Promise.resolve(steps.push('again')), { name: 'before' });
        await other.sleep(ms);
        return 'elsewhere';
      },
      { name: 'sleeper' },
    );
    await other.launch();

    clock.advance(HOUR);

    expect(await other.retrieveWorkflow('w').getResult()).toBe('elsewhere');
    expect(steps).toEqual(['before']);
  });

  test('many sleeps in a row do not make a dead letter', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const often = DBOS.registerWorkflow(
      async () => {
        for (let count = 0; count < 6; count += 1) await DBOS.sleep(HOUR);
        return 'done';
      },
      { name: 'often', maxRecoveryAttempts: 2 },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(often, { workflowID: 'w' })();

    for (let count = 0; count < 6; count += 1) {
      await untilParked(scene, 'w');
      clock.advance(HOUR);
      await until(async () => !(await isParked(DBOS, 'w')));
    }

    expect(await handle.getResult()).toBe('done');
  });

  test('a workflow is not parked while a step of it runs, and is when it has ended', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const release = ownPromise();
    const both = DBOS.registerWorkflow(
      async () => {
        const [, value] = await Promise.all([
          DBOS.sleep(HOUR),
          DBOS.runStep(() => release.promise.then(() => 1), { name: 'slow' }),
        ]);
        return value;
      },
      { name: 'both' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(both, { workflowID: 'w' })();
    await clock.untilArmed(HOUR);
    await sweep(scene);
    expect(await statusOf(DBOS, 'w')).toBe('PENDING');

    release.release();
    await untilParked(scene, 'w');
    clock.advance(HOUR);

    expect(await handle.getResult()).toBe(1);
  });

  test('a workflow whose code goes on beside a wait takes its workflow back', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const own = ownPromise();
    const racing = DBOS.registerWorkflow(
      async () => {
        const sleep = DBOS.sleep(HOUR);
        await Promise.race([sleep, own.promise]);
        const value = await DBOS.runStep(async () => Promise.resolve('ran'), { name: 'step' });
        await sleep;
        return value;
      },
      { name: 'racing' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(racing, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    own.release();
    await until(async () => ((await DBOS.listWorkflowSteps('w')) ?? []).some(({ name }) => name === 'step'));

    expect(await statusOf(DBOS, 'w')).toBe('PENDING');
    clock.advance(HOUR);
    expect(await handle.getResult()).toBe('ran');
  });

  test('a workflow whose function ends beside a wait records its result', async () => {
    const scene = await createScene(dialect);
    const { DBOS } = scene;
    const own = ownPromise();
    const racing = DBOS.registerWorkflow(
      async () => {
        await Promise.race([DBOS.sleep(HOUR), own.promise]);
        return 'own';
      },
      { name: 'racing' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(racing, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    own.release();

    expect(await handle.getResult()).toBe('own');
  });

  test('code that goes on after another process has its workflow is stopped', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const own = ownPromise();
    let ran = 0;
    const racing = DBOS.registerWorkflow(
      async () => {
        await Promise.race([DBOS.sleep(HOUR), own.promise]);
        return DBOS.runStep(async () => Promise.resolve((ran += 1)), { name: 'step' });
      },
      { name: 'racing' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(racing, { workflowID: 'w' })();
    await untilParked(scene, 'w');
    clock.advance(HOUR);
    expect(await handle.getResult()).toBe(1);

    own.release();
    await until(() => engineOf(DBOS).runs.all.length === 0);

    expect(await statusOf(DBOS, 'w')).toBe('SUCCESS');
    expect(ran).toBe(1);
  });

  test('a parked workflow can be cancelled and resumed', async () => {
    const { clock, DBOS, sleeper, steps, ...scene } = await setup();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })(HOUR);
    const cancelled = handle.getResult().catch((error: unknown) => error);
    await untilParked({ clock, DBOS, ...scene }, 'w');

    await DBOS.cancelWorkflow('w');
    expect(String(await cancelled)).toMatch(/cancelled/i);
    const resumed = await DBOS.resumeWorkflow('w');
    await until(() => isRunningIn(DBOS, 'w'));
    clock.advance(HOUR);

    expect(await resumed.getResult()).toBe('slept');
    expect(steps).toEqual(['before', 'after']);
  });

  // The shorter one ends before engines look for deadlines by themselves.
  test.each([HOUR / 2, 25_000])('a parked workflow times out at its deadline, after %i ms', async (timeoutMS) => {
    const { clock, DBOS, sleeper, ...scene } = await setup();
    const begunAt = clock.now();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w', timeoutMS })(HOUR);
    const failure = handle.getResult().catch((error: unknown) => error);
    await untilParked({ clock, DBOS, ...scene }, 'w');

    clock.advance(begunAt + timeoutMS - clock.now());
    // Engines leave each other a moment.
    await until(async () => {
      clock.advance(1);
      return (await statusOf(DBOS, 'w')) === 'CANCELLED';
    });

    expect(String(await failure)).toMatch(/cancelled/i);
  });
});
