import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { createDBOS, DBOSClient, type DBOSInstance, type DLogger } from '../../../src/index.js';
import { failureOf } from '../../run/succession.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

/** What plain JavaScript passes. */
const wrong = (options: object): never => options as never;

/** What the process is warned of from now on. */
function warningsHere(): string[] {
  const warnings: string[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning.message);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  return warnings;
}

test.each<[string, (DBOS: DBOSInstance) => unknown, string]>([
  ['a workflow', (DBOS) => DBOS.registerWorkflow(async () => {}, wrong({ name: 'w', maxRetries: 3 })), 'maxRetries'],
  ['a step', (DBOS) => DBOS.registerStep(async () => {}, wrong({ name: 's', retries: 3 })), 'retries'],
  [
    'a schedule in code',
    (DBOS) => DBOS.registerScheduled(async () => {}, wrong({ crontab: '* * * * *', timezone: 'UTC' })),
    'timezone',
  ],
])('an unknown option of %s is warned of', async (_, call, option) => {
  const warnings = warningsHere();

  call(createDBOS());

  await expect.poll(() => warnings).toContainEqual(expect.stringContaining(`config has an unknown field "${option}"`));
});

test('unknown fields of the configuration are warned of once, with a suggestion', async () => {
  const warnings = warningsHere();
  const config = wrong({ name: 'shop', userDbPoolSize: 5, systemDatabaseURL: 'sqlite::memory:', telemetry: undefined });

  createDBOS().setConfig(config);
  createDBOS().setConfig(config);

  const names = '"userDbPoolSize", "systemDatabaseURL"';
  const warning =
    `DBOSConfig has an unknown field "systemDatabaseURL" (of ${names}), which is ignored. ` +
    'Did you mean "systemDatabaseUrl"?';
  await expect.poll(() => warnings).toEqual([warning]);
  expect(() => createDBOS().setConfig(wrong({ systemDatabaseUrl: 'sqlite::memory:' }))).toThrow('No application name');
});

test('a wrong value is refused beside an unknown option, in any order', () => {
  const DBOS = createDBOS();
  const register = (config: object) => DBOS.registerStep(async () => {}, wrong(config));

  expect(() => register({ other: 1, maxAttempts: 'three' })).toThrow('config.maxAttempts must be');
  expect(() => register({ maxAttempts: 'three', other: 1 })).toThrow('config.maxAttempts must be');
});

test('a schedule in code without a cron expression is refused', () => {
  expect(() => createDBOS().registerScheduled(async () => {}, wrong({ cron: '* * * * *' }))).toThrow('crontab');
});

forEachDialect((dialect) => {
  describe('an unknown option', () => {
    async function setup() {
      const { DBOS, url } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
      await DBOS.launch();
      const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
      onTestFinished(() => client.destroy());
      return { DBOS, client, workflow, url };
    }
    type Scene = Awaited<ReturnType<typeof setup>>;
    const schedule = { scheduleName: 's', schedule: '0 0 * * *' };

    test.each<[string, (scene: Scene) => Promise<unknown>, string]>([
      ['wait', ({ DBOS }) => DBOS.wait([], wrong({ returnWhn: 'all' })), '"returnWhen"'],
    ])('of %s, which DBOS does not have, is refused by name', async (_, call, named) => {
      const error = await failureOf(call(await setup()));

      expect(error.message).toContain('unknown field');
      expect(error.message).toContain(named);
    });

    test.each<[string, (scene: Scene, other: object) => Promise<unknown>, RegExp]>([
      [
        'startWorkflow',
        async ({ DBOS, workflow }, other) => (await DBOS.startWorkflow(workflow, wrong(other))()).getResult(),
        /^params has/,
      ],
      [
        'enqueueOptions',
        ({ DBOS, workflow }, other) => DBOS.startWorkflow(workflow, { queueName: 'q', enqueueOptions: wrong(other) })(),
        /^params\.enqueueOptions has/,
      ],
      ['registerQueue', ({ DBOS }, other) => DBOS.registerQueue('q', wrong(other)), /^The queue has/],
      ['listWorkflows', ({ DBOS }, other) => DBOS.listWorkflows(other), /^filter has/],
      ['runStep', ({ DBOS }, other) => DBOS.runStep(async () => 1, wrong({ name: 's', ...other })), /^config has/],
      [
        'getEvent',
        ({ DBOS }, other) => DBOS.getEvent('none', 'key', { timeoutSeconds: 0.01, ...other }),
        /^options has/,
      ],
      [
        'forkWorkflow',
        async ({ DBOS, workflow }, other) => {
          const handle = await DBOS.startWorkflow(workflow)();
          await handle.getResult();
          return DBOS.forkWorkflow(handle.workflowID, 0, wrong(other));
        },
        /^options has/,
      ],
      [
        'getResult of a handle',
        async ({ DBOS, workflow }, other) => (await DBOS.startWorkflow(workflow)()).getResult(wrong(other)),
        /^options has/,
      ],
      [
        'createSchedule',
        ({ DBOS, workflow }, other) =>
          DBOS.createSchedule({ ...schedule, workflowFn: workflow, options: wrong(other) }),
        /has an unknown field/,
      ],
      [
        'enqueue of a client',
        ({ client }, other) => client.enqueue({ queueName: 'q', workflowName: 'workflow', ...other }),
        /^options has/,
      ],
      [
        'the configuration of a client',
        async ({ url }, other) => (await DBOSClient.create({ systemDatabaseUrl: url, ...other })).destroy(),
        /^DBOSClientConfig has/,
      ],
      ['shutdown', ({ DBOS }, other) => DBOS.shutdown(wrong(other)), /^options has/],
    ])('of %s is warned of and ignored, as DBOS does', async (_, call, place) => {
      const scene = await setup();
      const warnings = warningsHere();
      // Another for each database: a warning is given once.
      const option = `other_${dialect.name}_${randomUUID()}`;

      await call(scene, { [option]: 1 });

      await expect
        .poll(() => warnings.filter((warning) => warning.includes(option)))
        .toEqual([expect.stringMatching(place)]);
    });
  });

  test('a name that a minifier made is warned of, a given one is not', async () => {
    const warnings: unknown[] = [];
    const logger: DLogger = { ...silentLogger, warn: (entry) => void warnings.push(entry) };
    const { DBOS } = await createEngine(dialect, { logger });
    async function t1() {}
    DBOS.registerWorkflow(t1);
    DBOS.registerWorkflow(async () => {}, { name: 'ab' });

    await DBOS.launch();

    expect(warnings).toEqual([expect.stringContaining('The names of workflows t1 look as if a minifier')]);
  });
});
