// Parked workflows when things go wrong: rivals, lost notifications, restarts, a database that is away.
import { expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/index.js';
import { recoverIncarnation } from '../../../src/run/rows/lifecycle.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { createScene, HOUR, isParked, isRunningIn, statusOf, SWEEP_MS, untilParked } from './parking-scene.js';

const config = { applicationVersion: 'v1', parkAfterMs: 10_000 };

forEachDialect((dialect) => {
  function register(DBOS: DBOSInstance, ran: string[]) {
    return DBOS.registerWorkflow(
      async (name: string) => {
        await DBOS.sleep(HOUR);
        await DBOS.runStep(async () => Promise.resolve(ran.push(name)), { name: 'after' });
      },
      { name: 'sleeper' },
    );
  }

  test('of several engines, one continues each workflow', async () => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const { DBOS: first, url } = await createEngine(dialect, { ...config, executorID: '0' }, clock.settings);
    const sleeper = register(first, ran);
    await first.launch();
    const names = Array.from({ length: 30 }, (_, index) => `w${index}`);
    for (const name of names) await first.startWorkflow(sleeper, { workflowID: name })(name);
    await until(() => {
      if (clock.isArmed(SWEEP_MS)) clock.advance(SWEEP_MS);
      return engineOf(first).runs.all.length === 0;
    });
    for (const executorID of ['1', '2', '3']) {
      const { DBOS } = await createEngine(dialect, { ...config, executorID, systemDatabaseUrl: url }, clock.settings);
      register(DBOS, ran);
      await DBOS.launch();
    }

    clock.advance(HOUR);
    await until(async () => {
      clock.advance(20);
      return (await first.listWorkflows({ status: 'SUCCESS' })).length === names.length;
    });

    expect(ran.toSorted()).toEqual(names.toSorted());
  });

  test('a process that was launched before anything was parked wakes at once what another has parked', async () => {
    const receive = (DBOS: DBOSInstance) =>
      DBOS.registerWorkflow(() => DBOS.recv('topic', Infinity), { name: 'receiver' });
    const scene = await createScene(dialect);
    const { clock, DBOS: parker, url } = scene;
    const { DBOS: sender } = await createScene(dialect, { systemDatabaseUrl: url, executorID: 'two' }, clock);
    receive(sender);
    await sender.launch();
    const receiver = receive(parker);
    await parker.launch();
    await parker.startWorkflow(receiver, { workflowID: 'w' })();
    await untilParked(scene, 'w', 10_000);
    await parker.shutdown();
    // On SQLite it looks for the commits of others by its clock.
    for (let passedMs = 0; passedMs < 2000; passedMs += 20) {
      clock.advance(20);
      await new Promise((resolve) => setImmediate(resolve));
    }

    await sender.send('w', 'now', 'topic');

    expect(await sender.retrieveWorkflow('w').getResult()).toBe('now');
  });

  test('a process that ends while its workflows are being parked loses none', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS, url } = scene;
    const ran: string[] = [];
    const sleeper = register(DBOS, ran);
    await DBOS.launch();
    await DBOS.startWorkflow(sleeper, { workflowID: 'w' })('w');
    await until(() => clock.isArmed(SWEEP_MS) && clock.isArmed(HOUR));
    clock.advance(SWEEP_MS);
    await DBOS.shutdown();
    const { DBOS: second } = await createScene(dialect, { systemDatabaseUrl: url, executorID: 'two' }, clock);
    register(second, ran);
    await second.launch();

    // The first process may have parked it, or have left that to the second.
    await until(async () => {
      if (clock.isArmed(SWEEP_MS)) clock.advance(SWEEP_MS);
      return (await isParked(second, 'w')) && !isRunningIn(second, 'w');
    });
    clock.advance(HOUR);
    await until(async () => {
      clock.advance(20);
      return (await statusOf(second, 'w')) === 'SUCCESS';
    });

    expect(ran).toEqual(['w']);
  });

  test('a clock that is set back does not wake a workflow early, nor lose it', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const ranAt: number[] = [];
    const sleeper = DBOS.registerWorkflow(
      async () => {
        await DBOS.sleep(HOUR);
        await DBOS.runStep(async () => Promise.resolve(ranAt.push(clock.now())), { name: 'after' });
      },
      { name: 'late' },
    );
    const begunAt = clock.now();
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    clock.advance(-HOUR / 2);
    for (let passedMs = 0; passedMs < HOUR; passedMs += HOUR / 10) {
      clock.advance(HOUR / 10);
      await statusOf(DBOS, 'w');
    }
    expect(ranAt).toEqual([]);
    clock.advance(HOUR / 2);
    // In small steps: a claim whose answer takes many seconds is undone, and the step would run again.
    await until(async () => {
      clock.advance(5);
      return (await statusOf(DBOS, 'w')) === 'SUCCESS';
    });

    await handle.getResult();
    expect(ranAt[0]).toBeGreaterThanOrEqual(begunAt + HOUR);
    expect(ranAt).toHaveLength(1);
  });

  test('a run whose engine was presumed dead does not park what another has', async () => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const { DBOS: first, url } = await createEngine(dialect, { ...config, executorID: 'one' }, clock.settings);
    const sleeper = register(first, ran);
    await first.launch();
    await first.startWorkflow(sleeper, { workflowID: 'w' })('w');
    await until(() => clock.isArmed(SWEEP_MS) && clock.isArmed(HOUR));
    const { database, incarnationID } = engineOf(first).runtime;
    await recoverIncarnation(database, incarnationID);
    const { DBOS: second } = await createScene(dialect, { systemDatabaseUrl: url, executorID: 'two' }, clock);
    register(second, ran);
    await second.launch();

    await until(async () => {
      clock.advance(SWEEP_MS);
      return (await isParked(second, 'w')) && !isRunningIn(first, 'w') && !isRunningIn(second, 'w');
    });
    clock.advance(HOUR);
    await until(async () => {
      clock.advance(20);
      return (await statusOf(second, 'w')) === 'SUCCESS';
    });

    expect(ran).toEqual(['w']);
  });

  test('a workflow that is woken early sleeps for the rest of the time', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const ran: string[] = [];
    const sleeper = register(DBOS, ran);
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })('w');
    await untilParked(scene, 'w');
    await DBOS.resumeWorkflow('w');
    await until(() => isRunningIn(DBOS, 'w'));
    await untilParked(scene, 'w');
    expect(ran).toEqual([]);

    clock.advance(HOUR);
    await handle.getResult();

    expect(ran).toEqual(['w']);
  });
});

onlyOn('postgres', (dialect) => {
  function register(DBOS: DBOSInstance) {
    return DBOS.registerWorkflow(() => DBOS.recv('topic', 3600), { name: 'receiver' });
  }

  test('without notifications, polls find a workflow that was woken', async () => {
    const scene = await createScene(dialect, { useListenNotify: false });
    const { clock, DBOS } = scene;
    const receiver = register(DBOS);
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(receiver, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    await DBOS.send('w', 'hello', 'topic');
    await until(async () => {
      clock.advance(500);
      return (await statusOf(DBOS, 'w')) === 'SUCCESS';
    });

    expect(await handle.getResult()).toBe('hello');
  });

  test('a workflow is parked although the answer is lost', async () => {
    const url = await dialect.createURL();
    const proxy = await startProxy(url);
    const scene = await createScene(dialect, { systemDatabaseUrl: proxy.url });
    const { clock, DBOS } = scene;
    const receiver = register(DBOS);
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(receiver, { workflowID: 'w' })();

    proxy.loseNextAnswer(/parked_waits/);
    await until(async () => {
      clock.advance(200);
      return (await isParked(DBOS, 'w')) && !isRunningIn(DBOS, 'w');
    });
    await DBOS.send('w', 'hello', 'topic');
    await until(async () => {
      clock.advance(200);
      return (await statusOf(DBOS, 'w')) === 'SUCCESS';
    });

    expect(proxy.losses).toBe(1);
    expect(await handle.getResult()).toBe('hello');
  });
});
