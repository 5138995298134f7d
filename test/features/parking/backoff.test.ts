// The attempts of a step and the wait between them survive the process.
import { expect, test } from 'vitest';
import type { DBOSInstance, StepStatus } from '../../../src/index.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { createScene, HOUR, untilParked } from './parking-scene.js';

/** Resolves when the first failure is stored. */
async function untilKept(DBOS: DBOSInstance): Promise<void> {
  const { database } = engineOf(DBOS).runtime;
  await until(async () => (await database.read(sql`SELECT 1 FROM ${table('step_attempts')}`)).length > 0);
}

forEachDialect((dialect) => {
  /** A workflow whose step fails as long as `fails` says. Its attempts are counted across engines. */
  function register(
    DBOS: DBOSInstance,
    attempts: unknown[],
    { fails = 3, intervalSeconds = 5, parkAfterMs = 10_000 } = {},
  ) {
    return DBOS.registerWorkflow(
      () =>
        DBOS.runStep(
          async () => {
            attempts.push((DBOS.stepStatus as StepStatus).currentAttempt);
            if (attempts.length <= fails) throw new Error(`failure ${attempts.length}`);
            return Promise.resolve('done');
          },
          { name: 'step', retriesAllowed: true, intervalSeconds, backoffRate: 1, maxAttempts: 3 },
        ),
      { name: 'retrying', parkAfterMs },
    );
  }

  test('another process continues the count and the wait', async () => {
    const { clock, DBOS, url } = await createScene(dialect);
    const attempts: unknown[] = [];
    const retrying = register(DBOS, attempts, { fails: 2, intervalSeconds: 9 });
    await DBOS.launch();
    await DBOS.startWorkflow(retrying, { workflowID: 'w' })();
    await clock.untilArmed(9_000);
    await untilKept(DBOS);
    clock.advance(4_000);
    await DBOS.shutdown();
    const { DBOS: second } = await createScene(dialect, { systemDatabaseUrl: url }, clock);
    register(second, attempts, { fails: 2, intervalSeconds: 9 });

    await second.launch();
    await clock.untilArmed(5_000);
    expect(attempts).toEqual([1]);
    clock.advance(5_000);
    await clock.untilArmed(9_000);
    clock.advance(9_000);

    expect(await second.retrieveWorkflow('w').getResult()).toBe('done');
    expect(attempts).toEqual([1, 2, 3]);
  });

  test('a step that gives up in another process has the errors of all attempts', async () => {
    const { clock, DBOS, url } = await createScene(dialect);
    const attempts: unknown[] = [];
    const retrying = register(DBOS, attempts);
    await DBOS.launch();
    await DBOS.startWorkflow(retrying, { workflowID: 'w' })();
    await clock.untilArmed(5_000);
    await untilKept(DBOS);
    await DBOS.shutdown();
    const { DBOS: second } = await createScene(dialect, { systemDatabaseUrl: url }, clock);
    register(second, attempts);
    await second.launch();
    const failure = second
      .retrieveWorkflow('w')
      .getResult()
      .catch((error: unknown) => error);
    for (let count = 0; count < 2; count += 1) {
      await clock.untilArmed(5_000);
      clock.advance(5_000);
    }

    expect(String(await failure)).toMatch(/failure 1[^]*failure 2[^]*failure 3/);
    expect(attempts).toEqual([1, 2, 3]);
  });

  test('a long backoff parks the workflow', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const attempts: unknown[] = [];
    const retrying = register(DBOS, attempts, { fails: 1, intervalSeconds: HOUR / 1000 });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(retrying, { workflowID: 'w' })();
    await untilParked(scene, 'w');
    expect(attempts).toEqual([1]);

    clock.advance(HOUR);

    expect(await handle.getResult()).toBe('done');
    expect(attempts).toEqual([1, 2]);
  });

  test('a rewound step starts counting again', async () => {
    const { clock, DBOS } = await createScene(dialect);
    const attempts: unknown[] = [];
    const retrying = register(DBOS, attempts);
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(retrying, { workflowID: 'w' })();
    const failure = handle.getResult().catch((error: unknown) => error);
    for (let count = 0; count < 2; count += 1) {
      await clock.untilArmed(5_000);
      clock.advance(5_000);
    }
    await failure;

    await DBOS.rewindWorkflow('w');
    await until(async () => (await DBOS.getWorkflowStatus('w'))?.status === 'SUCCESS');

    expect(attempts).toEqual([1, 2, 3, 1]);
  });
});
