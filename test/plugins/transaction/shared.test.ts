// The application's database is the system database: a step's checkpoint is part of its transaction.
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { PGIsolationLevel } from '../../../src/plugins/transaction/driver.js';
import { Writer } from '../../../src/run/writer/writer.js';
import { wantsDialect } from '../../rig/dialects.js';
import { startProxy } from '../../rig/proxy.js';
import type { AdapterName } from './adapters.js';
import { effectsIn, type EngineUnderTest, recordsIn, type Scene, setScene } from './scene.js';

const note = (text: string): string => `INSERT INTO effects (workflow_id, note) VALUES ('w', '${text}')`;

const WRITTEN_TOGETHER = `SELECT e.note FROM effects AS e JOIN dbos.operation_outputs AS o ON o.xmin = e.xmin`;

/** A workflow that adds notes in transactions, one after the other, and gives the records that it finds then. */
function noting({ DBOS, source, run }: EngineUnderTest, scene: Scene): (...notes: string[]) => Promise<unknown> {
  return DBOS.registerWorkflow(
    async (...notes: string[]) => {
      const values: string[] = [];
      for (const text of notes) {
        values.push(await source.runTransaction(() => run(note(text)).then(() => text), { name: `note ${text}` }));
      }
      return [values, await DBOS.runStep(() => recordsIn(scene), { name: 'look' })];
    },
    { name: 'noting' },
  );
}

const cases = [
  ['node-postgres', 'postgres'],
  ['better-sqlite3', 'sqlite'],
] as const;

describe.each(cases.filter(([, dialect]) => wantsDialect(dialect)))(
  'the system database through %s',
  (name, dialect) => {
    test('a step and its checkpoint are one commit', async () => {
      const scene = await setScene(name, { isShared: true });
      const engine = await scene.engine();
      const workflow = noting(engine, scene);
      await engine.DBOS.launch();

      const handle = await engine.DBOS.startWorkflow(workflow)('one', 'two');

      expect(await handle.getResult()).toEqual([['one', 'two'], []]);
      expect(await effectsIn(scene)).toEqual(['one', 'two']);
      if (dialect === 'postgres') expect(await scene.query(WRITTEN_TOGETHER)).toHaveLength(2);
      const steps = await engine.DBOS.listWorkflowSteps(handle.workflowID);
      expect(steps?.map((step) => [step.name, step.output])).toEqual([
        ['note one', 'one'],
        ['note two', 'two'],
        ['look', []],
      ]);
    });

    test.runIf(dialect === 'postgres')('the workflow of a checkpoint is not looked up twice', async () => {
      const scene = await setScene(name, { isShared: true });
      const engine = await scene.engine();
      const workflow = noting(engine, scene);
      await engine.DBOS.launch();
      await scene.query(`
        CREATE OR REPLACE FUNCTION dbos.everstep_check_step() RETURNS TRIGGER LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'looked up'; END $$`);

      await workflow('one', 'two');

      expect(await effectsIn(scene)).toEqual(['one', 'two']);
      const another = `
        INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name)
        SELECT w.workflow_uuid, 9, 'another program' FROM dbos.workflow_status AS w`;
      await expect(scene.query(another)).rejects.toThrow('looked up');
    });

    test('steps that run at the same time keep their checkpoints apart', async () => {
      const scene = await setScene(name, { isShared: true });
      const { DBOS, source, run } = await scene.engine();
      const workflow = DBOS.registerWorkflow(
        () =>
          Promise.all(
            ['a', 'b', 'c', 'd'].map((text) =>
              text === 'c'
                ? DBOS.runStep(async () => text, { name: text })
                : source.runTransaction(() => run(note(text)).then(() => text), { name: text }),
            ),
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();

      expect(await workflow()).toEqual(['a', 'b', 'c', 'd']);
      expect(await effectsIn(scene)).toEqual(['a', 'b', 'd']);
    });

    test('an error of the function is the checkpoint, and nothing else is written', async () => {
      const scene = await setScene(name, { isShared: true });
      const { DBOS, source, run } = await scene.engine();
      const workflow = DBOS.registerWorkflow(
        () =>
          source.runTransaction(
            async () => {
              await run(note('undone'));
              throw new RangeError('no');
            },
            { name: 'failing' },
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow)();

      await expect(handle.getResult()).rejects.toThrow('no');
      expect(await effectsIn(scene)).toEqual([]);
      expect((await DBOS.listWorkflowSteps(handle.workflowID))?.[0]?.error).toMatchObject({ name: 'RangeError' });
    });

    test.runIf(dialect === 'postgres')('the function does not wait for the row of its workflow', async () => {
      const scene = await setScene(name, { isShared: true });
      const { DBOS, source, run } = await scene.engine();
      const begun = deferred<void>();
      const workflow = DBOS.registerWorkflow(
        (text: string) =>
          source.runTransaction(
            async () => {
              await run(note(text));
              begun.resolve();
              return text;
            },
            { name: 'note' },
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();
      // The first transaction finds out that the database is shared.
      await workflow('first');
      const blocker = new pg.Client(scene.url);
      await blocker.connect();
      await blocker.query('BEGIN; LOCK TABLE dbos.workflow_status IN SHARE MODE');

      const result = workflow('second');
      await begun.promise;

      await blocker.query('COMMIT');
      await blocker.end();
      expect(await result).toBe('second');
      expect(await effectsIn(scene)).toEqual(['first', 'second']);
    });

    test.runIf(dialect === 'postgres').each([PGIsolationLevel.RepeatableRead, PGIsolationLevel.Serializable])(
      'a function under %s runs once',
      async (isolationLevel) => {
        const scene = await setScene(name, { isShared: true });
        const { DBOS, source, run } = await scene.engine();
        let calls = 0;
        const workflow = DBOS.registerWorkflow(
          () =>
            source.runTransaction(
              async () => {
                calls += 1;
                await run(note('once'));
              },
              { name: 'note', isolationLevel },
            ),
          { name: 'workflow' },
        );
        await DBOS.launch();

        await workflow();

        expect(calls).toBe(1);
        expect(await effectsIn(scene)).toEqual(['once']);
      },
    );

    // On SQLite the cancellation waits for the transaction, which is older.
    test.runIf(dialect === 'postgres')('a step of a workflow that was cancelled meanwhile is rolled back', async () => {
      const scene = await setScene(name, { isShared: true });
      const { DBOS, source, run } = await scene.engine();
      const started = deferred<void>();
      const gate = deferred<void>();
      const workflow = DBOS.registerWorkflow(
        () =>
          source.runTransaction(
            async () => {
              started.resolve();
              await gate.promise;
              await run(note('undone'));
            },
            { name: 'held' },
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow)();
      await started.promise;

      await DBOS.cancelWorkflow(handle.workflowID);
      gate.resolve();

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(await effectsIn(scene)).toEqual([]);
    });

    test('four writers of one row all succeed under the strictest isolation', async () => {
      const scene = await setScene(name, { isShared: true });
      const { DBOS, source, run } = await scene.engine();
      const add = source.registerTransaction(
        async () => {
          const [row] = await run('SELECT value FROM counters WHERE id = 1');
          await run(`UPDATE counters SET value = ${Number(row?.['value']) + 1} WHERE id = 1`);
        },
        { name: 'add', isolationLevel: PGIsolationLevel.Serializable },
      );
      const workflow = DBOS.registerWorkflow(async () => [await add(), await add()], { name: 'workflow' });
      await DBOS.launch();

      await Promise.all(Array.from({ length: 4 }, () => workflow()));

      expect(await scene.query('SELECT value FROM counters')).toEqual([{ value: 8 }]);
    });
  },
);

describe.skipIf(!wantsDialect('postgres'))('the system database on Postgres', () => {
  const name: AdapterName = 'node-postgres';

  test.each(['answer', 'request'] as const)('a COMMIT whose %s is lost happens once', async (part) => {
    const scene = await setScene(name, { isShared: true });
    const proxy = await startProxy(scene.url);
    const { DBOS, source, run } = await scene.engine({}, proxy.url);
    let bodies = 0;
    const workflow = DBOS.registerWorkflow(
      () =>
        source.runTransaction(
          async () => {
            bodies += 1;
            await run(note('once'));
            if (bodies === 1 && part === 'answer') proxy.loseNextAnswer(/commit/i);
            if (bodies === 1 && part === 'request') proxy.loseNextRequest(/commit/i);
            return bodies;
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toBe(part === 'answer' ? 1 : 2);
    expect(proxy.hasStruck).toBe(true);
    expect(await effectsIn(scene)).toEqual(['once']);
    expect(await scene.query(WRITTEN_TOGETHER)).toHaveLength(1);
  });

  test('a former owner that wakes up after the workflow has ended commits nothing', async () => {
    const scene = await setScene(name, { isShared: true });
    const [first, second] = [await scene.engine({ maxConcurrentWorkflows: 1 }), await scene.engine()];
    const started = deferred<void>();
    const gate = deferred<void>();
    first.DBOS.registerWorkflow(
      () =>
        first.source.runTransaction(
          async () => {
            started.resolve();
            await gate.promise;
            await first.run(note('of the zombie'));
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    second.DBOS.registerWorkflow(
      () => second.source.runTransaction(() => second.run(note('of the heir')).then(() => {}), { name: 'step' }),
      { name: 'workflow' },
    );
    await first.DBOS.launch();
    await first.DBOS.enqueueWorkflowWithOptions({
      workflowName: 'workflow',
      queueName: '_dbos_internal_queue',
      workflowID: 'w',
    });
    await started.promise;
    await second.DBOS.launch();
    await second.DBOS.retrieveWorkflow('w').getResult();

    gate.resolve();
    await first.DBOS.shutdown({ workflowCompletionTimeoutMS: 5_000 });

    expect(await effectsIn(scene)).toEqual(['of the heir']);
  });

  test('a role that may not write checkpoints keeps its own records', async () => {
    const scene = await setScene(name, { isShared: true });
    const role = `role_${new URL(scene.url).pathname.slice(-12)}`;
    for (const statement of [
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`,
      `GRANT CREATE, USAGE ON SCHEMA public TO ${role}`,
      `GRANT ALL ON effects, counters TO ${role}`,
      `CREATE SCHEMA own AUTHORIZATION ${role}`,
      `GRANT CREATE ON DATABASE ${new URL(scene.url).pathname.slice(1)} TO ${role}`,
    ]) {
      await scene.query(statement);
    }
    const url = new URL(scene.url);
    url.username = role;
    url.password = 'secret';
    const { DBOS } = await scene.engine({ name: 'other' });
    const { NodePostgresDataSource } = await import('../../../src/plugins/transaction/adapters/node-postgres.js');
    const source = new NodePostgresDataSource(
      'poor',
      { connectionString: url.toString() },
      { owner: DBOS, schemaName: 'own' },
    );
    const find = `SELECT function_num FROM own.transaction_completion`;
    const workflow = DBOS.registerWorkflow(
      async () => {
        await source.runTransaction(() => source.client.query(note('kept')).then(() => {}), { name: 'step' });
        return DBOS.runStep(() => scene.query(find), { name: 'look' });
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toEqual([{ function_num: 0 }]);
    expect(await effectsIn(scene)).toEqual(['kept']);
    await DBOS.shutdown();
    await scene.query(`DROP OWNED BY ${role} CASCADE`);
    await scene.query(`DROP ROLE ${role}`);
  });

  test('a record of an earlier run that kept its own is found', async () => {
    const scene = await setScene(name, { isShared: true });
    const engine = await scene.engine();
    let bodies = 0;
    engine.DBOS.registerWorkflow(
      () =>
        engine.source.runTransaction(
          async () => {
            bodies += 1;
            return 'again';
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    await engine.DBOS.launch();
    await scene.query(
      `INSERT INTO dbos.transaction_completion (workflow_id, function_num, output) VALUES ('w', 0, '{"json":"before"}')`,
    );

    const handle = await engine.DBOS.enqueueWorkflowWithOptions({
      workflowName: 'workflow',
      queueName: '_dbos_internal_queue',
      workflowID: 'w',
    });

    expect(await handle.getResult()).toBe('before');
    expect(bodies).toBe(0);
  });

  test('the group writer is not asked for a checkpoint that was joined', async () => {
    const scene = await setScene(name, { isShared: true });
    const engine = await scene.engine();
    const workflow = noting(engine, scene);
    await engine.DBOS.launch();
    const prototype = Writer.prototype as { checkpoint: Writer['checkpoint'] };
    const original = Object.getOwnPropertyDescriptor(Writer.prototype, 'checkpoint')?.value as Writer['checkpoint'];
    const names: string[] = [];
    prototype.checkpoint = function (this: Writer, checkpoint) {
      names.push(checkpoint.step.name);
      return original.call(this, checkpoint);
    };
    try {
      await workflow('one');
    } finally {
      prototype.checkpoint = original;
    }

    expect(names).toEqual(['look']);
  });
});
