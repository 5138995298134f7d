// The parts of the kit that plugins use by themselves, and handlers that bring a protocol of their own.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { beginRequest } from '../../../src/faces/http/source.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { deleteWorkflows } from '../../../src/features/lifecycle/lifecycle.js';
import { rewindWorkflow } from '../../../src/features/lifecycle/rewind.js';
import type { Operator } from '../../../src/operator/operator.js';
import * as kit from '../../../src/datasource.js';
import { BetterSqlite3DataSource } from '../../../src/plugins/transaction/adapters/better-sqlite3.js';
import { NodePostgresDataSource } from '../../../src/plugins/transaction/adapters/node-postgres.js';
import {
  createDBOS,
  DBOS as defaultDBOS,
  type DBOSInstance,
  type TestSettings,
} from '../../../src/faces/library/dbos.js';
import { until } from '../../crash/processes.js';
import { onlyOn, sqlite, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { internals } from '../../../src/kernel/base/internals.js';

/** A data source that keeps a list instead of a database, with a protocol of its own. */
class ListSource implements kit.DataSourceTransactionHandler {
  readonly dsType = 'list';
  readonly events: string[] = [];
  failNext: Error | undefined;
  beforeDeletion: (() => Promise<void>) | undefined;

  constructor(readonly name: string) {}

  async initialize(): Promise<void> {
    this.events.push('initialize');
  }

  async destroy(): Promise<void> {
    this.events.push('destroy');
  }

  async deleteCheckpoints(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void> {
    await this.beforeDeletion?.();
    await beforeCommit?.();
    this.events.push(`delete ${workflowID} from ${startStep}`);
  }

  async invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return> {
    this.events.push(`invoke ${JSON.stringify(config)}`);
    const failure = this.failNext;
    this.failNext = undefined;
    if (failure) throw failure;
    return func.apply(target, args);
  }
}

async function setup(
  dialect: TestDialect,
  settings?: TestSettings,
): Promise<{ DBOS: DBOSInstance; source: ListSource }> {
  const { DBOS } = await createEngine(dialect, { leaseSeconds: 86_400 }, settings);
  const source = new ListSource('list');
  kit.registerDataSource(source, DBOS);
  return { DBOS, source };
}

describe('a handler with a protocol of its own', () => {
  test('keeps the checkpoints of a workflow that somebody else has rewound meanwhile', async () => {
    const { DBOS, source } = await setup(sqlite);
    const gate = deferred<void>();
    let runs = 0;
    const workflow = DBOS.registerWorkflow(async () => (++runs > 1 ? gate.promise : undefined), { name: 'workflow' });
    await DBOS.launch();
    await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();
    source.beforeDeletion = () => {
      source.beforeDeletion = undefined;
      return rewindWorkflow(engineOf(DBOS).runtime, 'w');
    };

    const failure = DBOS.rewindWorkflow('w');

    await expect(failure).rejects.toThrow('only a workflow that has ended can be rewound');
    // The other rewind has deleted them, once.
    expect(source.events.filter((event) => event === 'delete w from 0')).toHaveLength(1);
    gate.resolve();
    await DBOS.retrieveWorkflow('w').getResult();
    expect(runs).toBe(2);
  });

  test('is asked twice to delete the checkpoints of a deleted workflow: what ran in it may leave one', async () => {
    const clock = new ManualClock();
    const { DBOS, source } = await setup(sqlite, clock.settings);
    const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
    await DBOS.launch();
    await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

    await DBOS.deleteWorkflow('w');
    expect(source.events.filter((event) => event === 'delete w from 0')).toHaveLength(1);
    for (const passMs of [60_000, 60_000, 500]) clock.advance(passMs);

    await until('it is asked again', () => source.events.filter((event) => event === 'delete w from 0').length === 2);
  });

  test.each([
    [
      'garbage collection',
      (DBOS: DBOSInstance) => DBOS.garbageCollect({ cutoffEpochTimestampMs: Date.now() + 60_000 }),
    ],
    ['an HTTP request', (DBOS: DBOSInstance) => inRequest(DBOS, (operator) => deleteWorkflows(operator, ['w']))],
  ])('learns of the deletion of a workflow by %s', async (_, remove) => {
    const { DBOS, source } = await setup(sqlite);
    const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
    await DBOS.launch();
    await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

    await remove(DBOS);

    expect(source.events).toContain('delete w from 0');
  });

  test('is asked to delete the checkpoints of the steps that a rewound workflow is to run again', async () => {
    const { DBOS, source } = await setup(sqlite);
    const registered = kit.registerTransaction('list', async () => 'ran', { name: 'registered' }, DBOS);
    const workflow = DBOS.registerWorkflow(async () => [await registered(), await registered()], { name: 'workflow' });
    await DBOS.launch();
    await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();
    const invoked = source.events.filter((event) => event.startsWith('invoke')).length;

    const handle = await DBOS.rewindWorkflow<string[]>('w', { startStep: 1 });

    expect(await handle.getResult()).toEqual(['ran', 'ran']);
    expect(source.events).toContain('delete w from 1');
    expect(source.events.filter((event) => event.startsWith('invoke'))).toHaveLength(invoked + 1);
  });

  test('is initialized at launch, invoked, asked to delete its checkpoints, and destroyed at shutdown', async () => {
    const { DBOS, source } = await setup(sqlite);
    const registered = kit.registerTransaction(
      'list',
      async (text: string) => [text, DBOS.stepID, DBOS.workflowID, DBOS.isInTransaction()],
      { name: 'registered' },
      DBOS,
    );
    const workflow = DBOS.registerWorkflow(
      async () => [
        await registered('a'),
        await kit.runTransaction(async () => DBOS.stepID, 'run', { dsName: 'list', config: { level: 1 }, owner: DBOS }),
      ],
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

    expect(await handle.getResult()).toEqual([['a', 0, 'w', true], 1]);
    expect(await registered('b')).toEqual(['b', 0, undefined, true]);
    expect((await DBOS.listWorkflowSteps('w'))?.map(({ name }) => name)).toEqual(['registered', 'run']);
    await DBOS.shutdown();
    expect(source.events).toEqual([
      'initialize',
      'invoke {"name":"registered"}',
      'invoke {"level":1}',
      'invoke {"name":"registered"}',
      'delete w from 0',
      'destroy',
    ]);
  });

  test('is invoked again when a former owner was faster, and its error is no outcome', async () => {
    const { DBOS, source } = await setup(sqlite);
    const workflow = DBOS.registerWorkflow(
      () => kit.runTransaction(async () => 'done', 'step', { dsName: 'list', owner: DBOS }),
      { name: 'workflow' },
    );
    await DBOS.launch();
    source.failNext = new kit.DBOSWorkflowConflictError('w');

    expect(await workflow()).toBe('done');
    expect(source.events.filter((event) => event.startsWith('invoke'))).toHaveLength(2);
  });

  test('learns that its run still owns the workflow', async () => {
    const { DBOS } = await setup(sqlite);
    const workflow = DBOS.registerWorkflow(
      async () =>
        kit.runTransaction(
          async () => {
            await kit.assertStillOwnsWorkflow(DBOS.workflowID ?? '');
            await kit.assertStillOwnsWorkflow('another');
            return 'owned';
          },
          'step',
          { dsName: 'list', owner: DBOS },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toBe('owned');
  });
});

/** Acts as a request to the admin interface of an engine does. */
async function inRequest(DBOS: DBOSInstance, act: (operator: Operator) => Promise<unknown>): Promise<void> {
  const request = beginRequest(DBOS);
  await act(request.operator).finally(() => request.end());
}

describe('a data source of the kit', () => {
  async function noting() {
    const { DBOS, url } = await createEngine(sqlite, { leaseSeconds: 86_400 });
    const source = new BetterSqlite3DataSource('app', (await sqlite.createURL()).replace('sqlite:///', ''), {
      owner: DBOS,
    });
    const bodies: string[] = [];
    const note = (name: string) =>
      source.runTransaction(async () => (bodies.push(name), `${name} ${bodies.length}`), { name });
    const workflow = DBOS.registerWorkflow(async () => [await note('a'), await note('b')], { name: 'workflow' });
    await DBOS.launch();
    expect(await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult()).toEqual(['a 1', 'b 2']);
    return { DBOS, url, bodies };
  }

  test('runs the steps again that a client, which knows no data sources, has rewound', async () => {
    const { DBOS, url, bodies } = await noting();
    const client = await DBOSClient.create({ systemDatabaseUrl: url });
    onTestFinished(() => client.destroy());

    await client.rewindWorkflow('w', { startStep: 1 });

    expect(await DBOS.retrieveWorkflow('w').getResult()).toEqual(['a 1', 'b 3']);
    expect(bodies).toEqual(['a', 'b', 'b']);
  });
});

describe('registration', () => {
  test('a name is taken once, and nothing is registered after the launch', async () => {
    const { DBOS } = await setup(sqlite);

    expect(() => kit.registerDataSource(new ListSource('list'), DBOS)).toThrow(
      /Data source "list" is registered twice/,
    );
    await DBOS.launch();
    expect(() => kit.registerDataSource(new ListSource('late'), DBOS)).toThrow(/after DBOS.launch/);
  });

  test('two transactions may have one name; an unknown data source, and a call before the launch are refused', async () => {
    const { DBOS } = await setup(sqlite);
    const owner = DBOS;
    kit.registerTransaction('list', async () => 1, { name: 'twice' }, owner);
    kit.registerTransaction('list', async () => 2, { name: 'twice' }, owner);

    await expect(kit.runTransaction(async () => 1, 'early', { dsName: 'list', owner })).rejects.toThrow(/DBOS.launch/);
    await DBOS.launch();
    await expect(kit.runTransaction(async () => 1, 'x', { dsName: 'none', owner })).rejects.toThrow(
      /Data source "none" is not registered/,
    );
  });

  test('a data source of another engine is refused in a workflow', async () => {
    const { DBOS } = await setup(sqlite);
    const { DBOS: other } = await createEngine(sqlite);
    kit.registerDataSource(new ListSource('elsewhere'), other);
    const workflow = DBOS.registerWorkflow(
      () => kit.runTransaction(async () => 1, 'x', { dsName: 'elsewhere', owner: other }),
      { name: 'workflow' },
    );
    await DBOS.launch();
    await other.launch();

    await expect(workflow()).rejects.toThrow(/registered with another engine/);
  });

  test('without an owner a data source belongs to DBOS', async () => {
    const source = new ListSource('of the default');
    kit.registerDataSource(source);
    onTestFinished(() => void defaultDBOS[internals].registry.dataSources.clear());

    expect([...defaultDBOS[internals].registry.dataSources.keys()]).toEqual(['of the default']);
    expect([...createDBOS()[internals].registry.dataSources.keys()]).toEqual([]);
  });

  test('a transaction cannot be started as a workflow, and does not take the ID of the next workflow', async () => {
    const { DBOS } = await setup(sqlite);
    const transaction = kit.registerTransaction('list', async () => 1, { name: 'transaction' }, DBOS);
    await DBOS.launch();

    await expect(DBOS.startWorkflow(transaction)()).rejects.toThrow(/start or enqueue transaction "transaction"/);
    expect(await DBOS.withNextWorkflowID('x', () => transaction())).toBe(1);
  });

  test('a data source that cannot be reached, or lacks its table, is named at launch', async () => {
    const { DBOS } = await createEngine(sqlite);
    new NodePostgresDataSource('app', { connectionString: 'postgresql://nobody@127.0.0.1:1/none' }, { owner: DBOS });
    const { DBOS: second, url } = await createEngine(sqlite);
    new BetterSqlite3DataSource('app', url.replace('sqlite:///', ''), { owner: second, runMigrations: false });

    await expect(DBOS.launch()).rejects.toThrow(/NodePostgresDataSource "app" cannot reach its database/);
    await expect(second.launch()).rejects.toThrow(
      /BetterSqlite3DataSource "app" could neither find nor create its table transaction_completion/,
    );
  });
});

describe('errors of Postgres', () => {
  const wrap = (error: unknown): Error => Object.assign(new Error('wrapped', { cause: error }), { code: 'WRAPPER' });

  test('codes are found along the causes', () => {
    const coded = (code: string): Error => wrap(wrap(Object.assign(new Error('inner'), { code })));

    expect(kit.getPGErrorCode(coded('23505'))).toBe('23505');
    expect(kit.isPGRetriableTransactionError(coded('40001'))).toBe(true);
    expect(kit.isPGKeyConflictError(coded('23505'))).toBe(true);
    expect(kit.isPGFailedSqlTransactionError(coded('25P02'))).toBe(true);
    expect(kit.isPGRetriableTransactionError(coded('40P01'))).toBe(false);
    expect([kit.getPGErrorCode(coded('P2034')), kit.getPGErrorCode(coded('EPIPE'))]).toEqual([undefined, undefined]);
    expect([kit.getPGErrorCode('40001'), kit.getPGErrorCode(undefined)]).toEqual([undefined, undefined]);
  });

  test('a recorded step is replayed: its value returned, its error thrown', () => {
    const error = JSON.stringify({ json: { name: 'RangeError', message: 'no' }, meta: { values: ['Error'] } });

    expect(kit.replayRecordedStep({ output: '{"json":{"a":1}}', error: null })).toEqual({ a: 1 });
    expect(kit.replayRecordedStep({ output: null })).toBe(null);
    expect(() => kit.replayRecordedStep({ error })).toThrow('no');
  });
});

onlyOn('postgres', (postgres) => {
  async function connect(): Promise<{ client: pg.Client; exec: kit.DataSourceSQLExecutor }> {
    const client = new pg.Client(await postgres.createURL({ isMigrated: false }));
    await client.connect();
    onTestFinished(() => client.end());
    return { client, exec: async (text) => (await client.query<Record<string, unknown>>(text)).rows };
  }

  test('the completion table is created once, verified, and open to a role', async () => {
    const { client, exec } = await connect();
    const role = `reader_${process.pid}`;
    await client.query(`CREATE ROLE ${role}`);
    onTestFinished(async () => void (await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));

    await expect(kit.verifyDataSourcePG(exec, 'own', 'app')).rejects.toThrow(/Data source "app" needs version 1/);
    await client.query('BEGIN');
    await kit.initializeDataSourceSchemaPG(exec, 'own', role);
    await kit.migrateDataSourcePG(exec, 'own');
    await client.query('COMMIT');
    await kit.verifyDataSourcePG(exec, 'own');

    const [found] = await exec(kit.checkSchemaInstallationPG('own'));
    expect(found).toEqual({ schema_exists: true, table_exists: true });
    expect(await exec(`SELECT version FROM own.${kit.DATASOURCE_MIGRATIONS_TABLE}`)).toEqual([{ version: '1' }]);
    const right = `SELECT has_table_privilege('${role}', 'own.transaction_completion', 'INSERT') AS may`;
    expect(await exec(right)).toEqual([{ may: true }]);
    expect(kit.getDataSourceMigrationsPG('own')).toHaveLength(1);
  });

  test('the older way to create the table does the same', async () => {
    const { exec } = await connect();

    await exec(kit.createTransactionCompletionSchemaPG());
    await exec(kit.createTransactionCompletionTablePG());
    await exec(kit.createTransactionCompletionTablePG());

    expect(await exec(kit.checkSchemaInstallationPG())).toEqual([{ schema_exists: true, table_exists: true }]);
  });

  /** A data source of one connection, with a workflow that inserts a row. */
  async function oneConnection() {
    const url = await postgres.createURL({ isMigrated: false });
    const { DBOS } = await createEngine(sqlite);
    const source = new NodePostgresDataSource('app', { connectionString: url, max: 1 }, { owner: DBOS });
    const bodies: string[] = [];
    const workflow = DBOS.registerWorkflow(
      (statement: string) =>
        source.runTransaction(
          async () => {
            bodies.push(statement);
            await source.client.query(statement);
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();
    const records = async (): Promise<unknown[]> => {
      const text = 'SELECT workflow_id FROM dbos.transaction_completion ORDER BY 1';
      return (await source.runTransaction(() => source.client.query<{ workflow_id: string }>(text))).rows;
    };
    return { DBOS, source, bodies, workflow, records };
  }

  test('a server that has lost the prepared statement, as behind a pooler, is sent it without a name', async () => {
    const { workflow, bodies } = await oneConnection();

    for (const statement of ['SELECT 1', 'DEALLOCATE ALL', 'DEALLOCATE ALL']) await workflow(statement);

    expect(bodies).toEqual(['SELECT 1', 'DEALLOCATE ALL', 'DEALLOCATE ALL', 'DEALLOCATE ALL']);
  });

  test('two data sources on one pool do not mistake their statements', async () => {
    const pool = new pg.Pool({ connectionString: await postgres.createURL({ isMigrated: false }), max: 1 });
    onTestFinished(() => pool.end());
    const { DBOS } = await createEngine(sqlite);
    const gate = deferred<void>();
    const schemas = ['one', 'two'];
    const sources = schemas.map(
      (schemaName) => new NodePostgresDataSource(schemaName, pool, { schemaName, owner: DBOS }),
    );
    const workflow = DBOS.registerWorkflow(
      async () => {
        for (const source of [...sources, ...sources]) await source.runTransaction(async () => 1, { name: 'step' });
        await gate.promise;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow)();
    const stepsIn = async (schema: string): Promise<unknown[]> => {
      const text = `SELECT function_num AS step FROM ${schema}.transaction_completion ORDER BY 1`;
      return (await pool.query<{ step: number }>(text)).rows.map(({ step }) => step);
    };

    await until('all steps are recorded', async () => (await stepsIn('two')).length === 2);
    expect(await stepsIn('two')).toEqual([1, 3]);
    expect(await stepsIn('one')).toEqual([0, 2]);
    gate.resolve();
    await handle.getResult();
  });

  test('unmarked records of a deleted workflow are deleted with it, so that its ID can be used again', async () => {
    const { DBOS, source, workflow, bodies } = await oneConnection();
    await DBOS.startWorkflow(workflow, { workflowID: 'w' })('SELECT 1').then((handle) => handle.getResult());
    // As an earlier version or DBOS would have left it, and the record of a workflow that was not deleted.
    const query = (text: string) => source.runTransaction(() => source.client.query<{ workflow_id: string }>(text));
    await query(`
      INSERT INTO dbos.transaction_completion (workflow_id, function_num, output)
      VALUES ('w', 0, '{"json":null}'), ('other', 0, '{"json":null}')
      ON CONFLICT (workflow_id, function_num) DO UPDATE SET output = EXCLUDED.output`);

    await DBOS.deleteWorkflow('w');
    const left = await query('SELECT workflow_id FROM dbos.transaction_completion');
    expect(left.rows).toEqual([{ workflow_id: 'other' }]);
    await DBOS.startWorkflow(workflow, { workflowID: 'w' })('SELECT 2').then((handle) => handle.getResult());

    expect(bodies).toEqual(['SELECT 1', 'SELECT 2']);
  });

  test('checkpoints are deleted from a step on, unless the look before the commit refuses', async () => {
    const url = await postgres.createURL({ isMigrated: false });
    const { DBOS } = await createEngine(sqlite);
    const source = new NodePostgresDataSource('app', { connectionString: url }, { owner: DBOS });
    await DBOS.launch();
    const handler = DBOS[internals].registry.dataSources.get('app');
    const rows = (): Promise<unknown[]> =>
      source.runTransaction(
        async () =>
          (
            await source.client.query<{ function_num: number }>(
              'SELECT function_num FROM dbos.transaction_completion ORDER BY 1',
            )
          ).rows,
      );
    await source.runTransaction(async () => {
      const values = [0, 1, 2].map((step) => `('w', ${step})`).join();
      await source.client.query(`INSERT INTO dbos.transaction_completion (workflow_id, function_num) VALUES ${values}`);
    });

    const refused = handler?.deleteCheckpoints?.('w', 0, async () => {
      throw new Error('still owned');
    });
    await expect(refused).rejects.toThrow('still owned');
    expect(await rows()).toHaveLength(3);
    await handler?.deleteCheckpoints?.('w', 1);
    expect(await rows()).toEqual([{ function_num: 0 }]);
  });
});
