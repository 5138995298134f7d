// Workflows that wait for a message, an event or another workflow leave memory, and what they wait for wakes them.
import { expect, test, vi } from 'vitest';
import type { DBOSInstance } from '../../../src/index.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import {
  createScene,
  HOUR,
  isParked,
  isRunningIn,
  ownPromise,
  type ParkingScene,
  statusOf,
  sweep,
  SWEEP_MS,
  untilParked,
} from './parking-scene.js';

interface Scene extends ParkingScene {
  /** Starts the workflow "w", which waits. */
  start(): Promise<{ getResult(): Promise<unknown> }>;
  /** Lets the workflow "other" set its event and end. */
  release(): void;
}

type Waiting = (DBOS: DBOSInstance) => Promise<unknown>;

const waits: Record<string, { wait: Waiting; end: (scene: Scene) => Promise<void> | void; result: unknown }> = {
  recv: {
    wait: (DBOS) => DBOS.recv('topic', 3600),
    end: ({ DBOS }) => DBOS.send('w', 'hello', 'topic'),
    result: 'hello',
  },
  'recv without a limit': {
    wait: (DBOS) => DBOS.recv('topic', Infinity),
    end: ({ DBOS }) => DBOS.send('w', 'hello', 'topic'),
    result: 'hello',
  },
  getEvent: {
    wait: (DBOS) => DBOS.getEvent('other', 'key', 3600),
    end: (scene) => scene.release(),
    result: 'set',
  },
  'the result of a handle': {
    wait: (DBOS) => DBOS.retrieveWorkflow('other').getResult(),
    end: (scene) => scene.release(),
    result: 'ended',
  },
  'getResult with a timeout': {
    wait: (DBOS) => DBOS.getResult('other', 3600),
    end: (scene) => scene.release(),
    result: 'ended',
  },
  waitFirst: {
    wait: async (DBOS) =>
      (await DBOS.waitFirst([DBOS.retrieveWorkflow('other'), DBOS.retrieveWorkflow('never')])).workflowID,
    end: (scene) => scene.release(),
    result: 'other',
  },
  waitAll: {
    wait: async (DBOS) => (await DBOS.waitAll([DBOS.retrieveWorkflow('other')])).length,
    end: (scene) => scene.release(),
    result: 1,
  },
  'branches under Promise.all': {
    wait: (DBOS) =>
      Promise.all([
        DBOS.recv('topic', 7200),
        DBOS.getEvent('other', 'key', 7200),
        DBOS.sleep(HOUR).then(() => 'slept'),
      ]),
    end: async (scene) => {
      const { clock, DBOS } = scene;
      await DBOS.send('w', 'hello', 'topic');
      await until(async () => ((await DBOS.listWorkflowSteps('w')) ?? []).some(({ name }) => name === 'DBOS.recv'));
      await untilParked(scene, 'w');
      scene.release();
      await until(async () => ((await DBOS.listWorkflowSteps('w')) ?? []).some(({ name }) => name === 'DBOS.getEvent'));
      clock.advance(HOUR);
    },
    result: ['hello', 'set', 'slept'],
  },
  'DBOS.race': {
    wait: (DBOS) => DBOS.race([DBOS.recv('topic', 3600), DBOS.sleep(HOUR)]),
    end: ({ DBOS }) => DBOS.send('w', 'hello', 'topic'),
    result: 'hello',
  },
};

async function setup(dialect: TestDialect, wait: Waiting): Promise<Scene> {
  const scene = await createScene(dialect);
  const { DBOS } = scene;
  const released = ownPromise();
  const other = DBOS.registerWorkflow(
    async () => {
      await DBOS.runStep(() => released.promise, { name: 'hold' });
      await DBOS.setEvent('key', 'set');
      return 'ended';
    },
    { name: 'other' },
  );
  const never = DBOS.registerWorkflow(() => DBOS.runStep(() => new Promise(() => {}), { name: 'hold' }), {
    name: 'never',
  });
  const waiter = DBOS.registerWorkflow(() => wait(DBOS), { name: 'waiter' });
  await DBOS.launch();
  await DBOS.startWorkflow(other, { workflowID: 'other' })();
  await DBOS.startWorkflow(never, { workflowID: 'never' })();
  return {
    ...scene,
    start: () => DBOS.startWorkflow(waiter, { workflowID: 'w' })(),
    release: () => released.release(),
  };
}

forEachDialect((dialect) => {
  test.each(Object.keys(waits))('%s parks its workflow, and what it waits for wakes it', async (kind) => {
    const { wait, end, result } = waits[kind]!;
    const scene = await setup(dialect, wait);
    const handle = await scene.start();
    await untilParked(scene, 'w');

    await end(scene);

    expect(await handle.getResult()).toEqual(result);
    expect((await scene.DBOS.getWorkflowStatus('w'))?.recoveryAttempts).toBe(1);
  });

  test('the timeout of DBOS.wait wakes a workflow, also when its process has ended', async () => {
    const wait: Waiting = async (DBOS) =>
      (await DBOS.wait([DBOS.recv('topic', Infinity)], { timeoutMs: HOUR })).pending.length;
    const scene = await setup(dialect, wait);
    const { clock, DBOS } = scene;
    await scene.start();
    await untilParked(scene, 'w', 10_000);
    await DBOS.shutdown();
    const { DBOS: next } = await createScene(dialect, { systemDatabaseUrl: scene.url, executorID: 'two' }, clock);
    next.registerWorkflow(() => wait(next), { name: 'waiter' });
    await next.launch();

    clock.advance(HOUR);

    expect(await next.retrieveWorkflow('w').getResult()).toBe(1);
  });

  test('a timeout of DBOS.wait does not park a workflow that awaits something of its own', async () => {
    const own = ownPromise();
    const scene = await setup(
      dialect,
      async (DBOS) => (await DBOS.wait([own.promise], { timeoutMs: HOUR })).done.length,
    );
    const { clock, DBOS } = scene;
    const handle = await scene.start();
    await clock.untilArmed(HOUR);

    clock.advance(20_000);

    expect(clock.isArmed(SWEEP_MS)).toBe(false);
    expect(isRunningIn(DBOS, 'w')).toBe(true);
    own.release();
    expect(await handle.getResult()).toBe(1);
  });

  test('a parent that waits for its child is parked until the child ends', async () => {
    const scene = await createScene(dialect);
    const { DBOS } = scene;
    const released = ownPromise();
    const child = DBOS.registerWorkflow(
      async () => {
        await DBOS.runStep(() => released.promise, { name: 'hold' });
        return 'of the child';
      },
      { name: 'child' },
    );
    const parent = DBOS.registerWorkflow(() => child(), { name: 'parent' });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(parent, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    released.release();

    expect(await handle.getResult()).toBe('of the child');
  });

  test('a parent hears that its child was deleted while both were parked', async () => {
    const scene = await createScene(dialect);
    const { DBOS } = scene;
    const child = DBOS.registerWorkflow(() => DBOS.recv('never', Infinity), { name: 'child' });
    const parent = DBOS.registerWorkflow(
      async () => {
        const handle = await DBOS.startWorkflow(child, { workflowID: 'child' })();
        return handle.getResult().catch((error: { code?: string }) => error.code);
      },
      { name: 'parent' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(parent, { workflowID: 'w' })();
    await untilParked(scene, 'w', 10_000);
    await until(async () => {
      if (scene.clock.isArmed(SWEEP_MS)) scene.clock.advance(SWEEP_MS);
      return isParked(DBOS, 'child');
    });

    await DBOS.deleteWorkflow('child');

    expect(await handle.getResult()).toBe('NON_EXISTENT_WORKFLOW');
  });

  test('a parent hears that its child was cancelled while it was parked', async () => {
    const scene = await setup(dialect, (DBOS) => DBOS.retrieveWorkflow('other').getResult());
    const handle = await scene.start();
    const failure = handle.getResult().catch((error: unknown) => error);
    await untilParked(scene, 'w');

    await scene.DBOS.cancelWorkflow('other');
    scene.release();

    expect(await failure).toMatchObject({ code: 'AWAITED_WORKFLOW_CANCELLED' });
  });

  test('a receive that is parked ends at its timeout', async () => {
    const scene = await setup(dialect, (DBOS) => DBOS.recv('topic', 3600));
    const handle = await scene.start();
    await untilParked(scene, 'w');

    scene.clock.advance(HOUR);

    expect(await handle.getResult()).toBeNull();
  });

  test('a receive is parked only when its time limit is recorded', async () => {
    const scene = await setup(dialect, (DBOS) => DBOS.recv('topic', 3600));
    const { clock, DBOS } = scene;
    const { database } = engineOf(DBOS).runtime;
    const held = ownPromise();
    let lookups = 0;
    const read = database.read.bind(database);
    vi.spyOn(database, 'read').mockImplementation(async (statement) => {
      if (statement.strings.join('').includes('SELECT r.ordinal')) {
        lookups += 1;
        await held.promise;
      }
      return read(statement);
    });
    const handle = await scene.start();
    await until(() => lookups > 0);

    clock.advance(20_000);
    await sweep(scene);
    held.release();
    await untilParked(scene, 'w', 20_000);

    expect(await DBOS.listWorkflowSteps('w')).toHaveLength(1);
    clock.advance(HOUR);
    expect(await handle.getResult()).toBeNull();
  });

  test('a message of another topic does not wake a workflow', async () => {
    const scene = await setup(dialect, (DBOS) => DBOS.recv('topic', 3600));
    const { DBOS } = scene;
    const handle = await scene.start();
    await untilParked(scene, 'w');

    await DBOS.send('w', 'wrong', 'another');

    expect(await isParked(DBOS, 'w')).toBe(true);
    await DBOS.send('w', 'right', 'topic');
    expect(await handle.getResult()).toBe('right');
  });

  test('an outcome that no trigger has seen wakes a workflow after a while', async () => {
    const scene = await setup(dialect, (DBOS) => DBOS.retrieveWorkflow('other').getResult());
    const { clock, DBOS } = scene;
    const handle = await scene.start();
    await untilParked(scene, 'w');
    const database = await dialect.open(scene.url);
    const workflows = table('workflow_status');
    const ofTable = dialect.name === 'postgres' ? sql`ON ${workflows}` : sql``;
    await database.run(sql`DROP TRIGGER everstep_wake_result_waiters ${ofTable}`);
    await database.run(sql`UPDATE ${workflows} SET status = 'SUCCESS' WHERE workflow_uuid = 'other'`);
    expect(await isParked(DBOS, 'w')).toBe(true);

    await until(async () => {
      clock.advance(1000);
      return (await statusOf(DBOS, 'w')) === 'SUCCESS';
    });

    expect(await handle.getResult()).toBeNull();
  });

  test('a message that plain SQL inserts wakes a workflow', async () => {
    const scene = await setup(dialect, (DBOS) => DBOS.recv('topic', 3600));
    const handle = await scene.start();
    await untilParked(scene, 'w');
    const database = await dialect.open(scene.url);

    await database.run(
      sql`INSERT INTO ${table('notifications')} (message_uuid, destination_uuid, topic, message) VALUES ('m', 'w', 'topic', '"sql"')`,
    );
    // On SQLite, engines look for the commits of others by their clock.
    await until(async () => {
      scene.clock.advance(20);
      return (await statusOf(scene.DBOS, 'w')) === 'SUCCESS';
    });

    expect(await handle.getResult()).toBe('sql');
  });
});
