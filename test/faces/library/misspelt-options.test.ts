import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { createDBOS, DBOSClient, type DBOSInstance, type DLogger } from '../../../src/index.js';
import { failureOf } from '../../run/succession.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

/** What plain JavaScript passes. */
const wrong = (options: object): never => options as never;
/** The same among options that are right. */
const among = (options: object): object => options;

test.each<[string, (DBOS: DBOSInstance) => unknown, string]>([
  ['a workflow', (DBOS) => DBOS.registerWorkflow(async () => {}, wrong({ name: 'w', maxRetries: 3 })), 'maxRetries'],
  ['a step', (DBOS) => DBOS.registerStep(async () => {}, wrong({ name: 's', retries: 3 })), 'retries'],
  [
    'a schedule in code',
    (DBOS) => DBOS.registerScheduled(async () => {}, wrong({ crontab: '* * * * *', timezone: 'UTC' })),
    'timezone',
  ],
])('an unknown option of %s is refused', (_, call, option) => {
  expect(() => call(createDBOS())).toThrow(`config has an unknown field "${option}"`);
});

test('an unknown field of the configuration is refused before the launch', () => {
  const DBOS = createDBOS();

  expect(() => DBOS.setConfig(wrong({ name: 'shop', systemDatabaseURL: 'sqlite::memory:' }))).toThrow(
    'systemDatabaseURL',
  );
  expect(() => DBOS.setConfig(wrong({ systemDatabaseUrl: 'sqlite::memory:' }))).toThrow('No application name');
});

test('a workflow without a name is refused', () => {
  expect(() => createDBOS().registerWorkflow(async () => {})).toThrow('A workflow needs a name');
});

test('a schedule in code without a cron expression is refused', () => {
  expect(() => createDBOS().registerScheduled(async () => {}, wrong({ cron: '* * * * *' }))).toThrow('crontab');
});

forEachDialect((dialect) => {
  describe('an unknown option is refused by name', () => {
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
    const timezone = { timezone: 'UTC' };

    test.each<[string, (scene: Scene) => Promise<unknown>, string]>([
      [
        'start',
        async ({ DBOS, workflow }) => DBOS.startWorkflow(workflow, wrong({ workflowId: 'w' }))(),
        '"workflowID"',
      ],
      ['getEvent', ({ DBOS }) => DBOS.getEvent('w', 'key', wrong({ timeoutSecs: 1 })), '"timeoutSecs"'],
      ['getResult', ({ DBOS }) => DBOS.getResult('w', wrong({ timeoutSec: 1 })), 'timeoutSeconds'],
      [
        'getResult of a handle',
        ({ DBOS }) => DBOS.retrieveWorkflow('w').getResult(wrong({ pollingIntervalMS: 1 })),
        '"pollingIntervalMs"',
      ],
      [
        'getResult of a handle of a client',
        ({ client }) => client.retrieveWorkflow('w').getResult(wrong({ timeoutSeconds: 1 })),
        '"timeoutSeconds"',
      ],
      ['waitAll', ({ DBOS }) => DBOS.waitAll([], wrong({ pollingInterval: 1 })), '"pollingIntervalMs"'],
      [
        'createSchedule',
        ({ DBOS, workflow }) =>
          DBOS.createSchedule({ ...schedule, workflowFn: workflow, ...among({ cronTimezone: 'UTC' }) }),
        '"cronTimezone"',
      ],
      [
        'options of createSchedule',
        ({ DBOS, workflow }) => DBOS.createSchedule({ ...schedule, workflowFn: workflow, options: wrong(timezone) }),
        '"timezone"',
      ],
      [
        'applySchedules',
        ({ DBOS, workflow }) => DBOS.applySchedules([{ ...schedule, workflowFn: workflow, ...timezone }]),
        '"timezone"',
      ],
      ['updateSchedule', ({ DBOS }) => DBOS.updateSchedule('s', wrong(timezone)), '"timezone"'],
      ['forkWorkflow', ({ DBOS }) => DBOS.forkWorkflow('w', 0, wrong({ timeoutMs: 1 })), '"timeoutMS"'],
      [
        'applySchedules of a client',
        ({ client }) => client.applySchedules([{ ...schedule, workflowName: 'workflow', ...timezone }]),
        '"timezone"',
      ],
      [
        'enqueue of a client',
        ({ client }) => client.enqueue({ queueName: 'q', workflowName: 'workflow', ...among({ workflowId: 'w' }) }),
        '"workflowID"',
      ],
      [
        'the configuration of a client',
        ({ url }) => DBOSClient.create({ systemDatabaseUrl: url, ...among({ appName: 'a' }) }),
        '"appName"',
      ],
    ])('%s', async (_, call, named) => {
      const error = await failureOf(call(await setup()));

      expect(error.message).toContain('unknown field');
      expect(error.message).toContain(named);
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
