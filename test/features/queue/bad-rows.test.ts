// Rows that other programs have written, and that make no sense: each ends by itself, and all others are served.
import { expect, test } from 'vitest';
import { type DLogger, silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSAwaitedWorkflowCancelledError } from '../../../src/kernel/errors/errors.js';
import type { Database } from '../../../src/database/database.js';
import { sql, table, type Value } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { failureOf } from '../../run/succession.js';

const INT64_MAX = 9_223_372_036_854_775_807n;
const INT64_MIN = -9_223_372_036_854_775_808n;

const workflows = table('workflow_status');

const SETTINGS = {
  roles: (value: Value) => sql`authenticated_roles = ${value}`,
  timeout: (value: Value) => sql`workflow_timeout_ms = ${value}`,
  deadline: (value: Value) => sql`workflow_deadline_epoch_ms = ${value}`,
  attempts: (value: Value) => sql`recovery_attempts = ${value}`,
} as const;

/** A launched engine with a paused queue, on which a bad workflow waits before a good one. */
async function setup(
  dialect: TestDialect,
  options: { readonly isPartitioned?: boolean; readonly logger?: DLogger } = {},
) {
  const { DBOS, url } = await createEngine(dialect, { logger: options.logger ?? silentLogger });
  const echo = DBOS.registerWorkflow(async (text: string) => text, { name: 'echo' });
  const oversleep = DBOS.registerWorkflow(() => DBOS.sleepms(3_600_000), { name: 'oversleep' });
  await DBOS.launch();
  await DBOS.registerQueue('q', options.isPartitioned ? { partitionQueue: true, concurrency: 5 } : {});
  await DBOS.pauseQueue('q');
  const enqueueOptions = options.isPartitioned ? { queuePartitionKey: 'p' } : undefined;
  const start = (workflowID: string) =>
    DBOS.startWorkflow(echo, { workflowID, queueName: 'q', enqueueOptions })(workflowID);
  const [bad, good] = [await start('bad'), await start('good')];
  const database: Database = await dialect.open(url);
  const spoil = (name: keyof typeof SETTINGS, value: Value) =>
    database.run(sql`UPDATE ${workflows} SET ${SETTINGS[name](value)} WHERE workflow_uuid = 'bad'`);
  return { DBOS, oversleep, bad, good, database, spoil };
}

forEachDialect((dialect) => {
  test('a workflow that cannot be prepared is a dead letter, and the others of its claim run', async () => {
    const log: string[] = [];
    const logger = {
      ...silentLogger,
      warn: (entry: unknown) => {
        if (String(entry).includes('"bad" is recovered')) throw new Error('The logger fails.');
      },
      error: (entry: unknown) => void log.push(String(entry)),
    };
    const { DBOS, bad, good, database } = await setup(dialect, { logger });
    // Branches that may have crossed are worth a warning.
    const steps = [
      ['a', 0, 100],
      ['b', 0, 10],
      ['c', 20, 30],
      ['c', 120, 130],
    ] as const;
    for (const [stepID, [name, from, until]] of steps.entries()) {
      await database.run(sql`
        INSERT INTO ${table('operation_outputs')}
          (workflow_uuid, function_id, function_name, started_at_epoch_ms, completed_at_epoch_ms)
        VALUES ('bad', ${stepID}, ${name}, ${from}, ${until})`);
    }

    await DBOS.resumeQueue('q');

    expect(await good.getResult()).toBe('good');
    expect(await failureOf(bad.getResult())).toMatchObject({ code: 'AWAITED_WORKFLOW_EXCEEDED_MAX_RECOVERY_ATTEMPTS' });
    expect(log.filter((line) => line.includes('"bad" has stored cannot be read'))).toHaveLength(1);
  });

  test.each(['admin', '"admin"', '{"admin":true}', '[1]', '[', 'null', '["admin"'])(
    'roles %s end one workflow with an error',
    async (roles) => {
      const { DBOS, bad, good, spoil } = await setup(dialect);
      await spoil('roles', roles);

      await DBOS.resumeQueue('q');

      expect(await good.getResult()).toBe('good');
      expect(await failureOf(bad.getResult())).toMatchObject({ code: 'UNREADABLE_VALUE' });
      expect(await bad.getStatus()).toMatchObject({ status: 'ERROR' });
    },
  );

  test.each([INT64_MAX, INT64_MAX - 1n, 10n ** 18n])(
    'a timeout of %s ms is cut to one that can be stored',
    async (ms) => {
      const { DBOS, bad, good, spoil } = await setup(dialect);
      await spoil('timeout', ms);

      await DBOS.resumeQueue('q');

      expect(await Promise.all([bad.getResult(), good.getResult()])).toEqual(['bad', 'good']);
    },
  );

  test.each([INT64_MIN, INT64_MAX])(
    'a deadline of %s neither stops the queue nor other deadlines',
    async (deadline) => {
      const { DBOS, oversleep, good, spoil } = await setup(dialect);
      await spoil('deadline', deadline);

      await DBOS.resumeQueue('q');

      expect(await good.getResult()).toBe('good');
      const late = await DBOS.startWorkflow(oversleep, { queueName: 'q', timeoutMS: 10 })();
      expect(await failureOf(late.getResult())).toBeInstanceOf(DBOSAwaitedWorkflowCancelledError);
    },
  );

  test.each(['no JSON', '[]', '5', 'null', '{"services":5}', '{"services":{"memoryQueues":"q"}}', '{"place":{}}'])(
    'an executor with the metadata %s does not keep others from serving queues',
    async (metadata) => {
      const { DBOS, good, database } = await setup(dialect);
      const { applicationVersion } = (await good.getStatus())!;
      await database.run(sql`
        INSERT INTO ${table('executors')}
          (incarnation_id, executor_id, application_name, application_version, host, pid, metadata, started_at,
           heartbeat_at, lease_until_epoch_ms)
        VALUES ('x', 'x', 'test', ${applicationVersion ?? ''}, 'elsewhere', 1, ${metadata}, 1, 1, ${4_000_000_000_000})`);
      await DBOS.shutdown();

      await DBOS.launch();
      await DBOS.resumeQueue('q');

      expect(await DBOS.retrieveWorkflow('good').getResult()).toBe('good');
    },
  );

  test('a lease that ends before all time ended', async () => {
    const { DBOS, database } = await setup(dialect);
    await database.run(sql`
      INSERT INTO ${table('executors')}
        (incarnation_id, executor_id, application_name, application_version, host, pid, started_at, heartbeat_at,
         lease_until_epoch_ms)
      VALUES ('x', 'x', 'test', 'v', 'elsewhere', 1, 1, 1, ${INT64_MIN})`);
    await DBOS.shutdown();

    await DBOS.launch();
    await DBOS.resumeQueue('q');

    expect(await DBOS.retrieveWorkflow('good').getResult()).toBe('good');
  });

  test('an imported workflow with unreadable roles ends with an error', async () => {
    const { DBOS, good } = await setup(dialect);
    for await (const { workflow_status: status, ...rest } of DBOS.exportWorkflows({ workflowIDs: ['good'] })) {
      const spoilt = {
        ...status,
        workflow_uuid: 'imported',
        authenticated_roles: 'admin',
        workflow_timeout_ms: 2 ** 53 - 1,
      };
      await DBOS.importWorkflows([{ ...rest, workflow_status: spoilt }], { activeWorkflows: 'enqueue' });
    }

    await DBOS.resumeQueue('q');

    expect(await good.getResult()).toBe('good');
    expect(await failureOf(DBOS.retrieveWorkflow('imported').getResult())).toMatchObject({ code: 'UNREADABLE_VALUE' });
  });

  test('a fork with a timeout that cannot be stored is refused', async () => {
    const { DBOS, good } = await setup(dialect);
    await DBOS.resumeQueue('q');
    await good.getResult();

    const error = await failureOf(DBOS.forkWorkflow('good', 0, { timeoutMS: 2 ** 63 - 1024 }));

    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

onlyOn('postgres', (dialect) => {
  test.each([false, true])('a row that fails the claim fails alone (partitioned: %s)', async (isPartitioned) => {
    const { DBOS, bad, good, spoil } = await setup(dialect, { isPartitioned });
    await spoil('attempts', INT64_MAX);

    await DBOS.resumeQueue('q');

    expect(await good.getResult()).toBe('good');
    expect(await failureOf(bad.getResult())).toMatchObject({ code: 'DATABASE_STATEMENT' });
  });
});
