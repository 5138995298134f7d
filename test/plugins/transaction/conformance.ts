// What every adapter has to keep, on a real database.
import { afterAll, describe, expect, type MockInstance, onTestFinished, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { PGIsolationLevel } from '../../../src/plugins/transaction/driver.js';
import { getPGErrorCode } from '../../../src/plugins/transaction/failures.js';
import { OpenTransaction } from '../../../src/plugins/transaction/open-transaction.js';
import { until } from '../../crash/processes.js';
import { wantsDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import type { StepTransactionHandler } from '../../../src/run/plugin.js';
import type { OwnerLookup } from '../../../src/run/owner-lookup.js';
import { type AdapterName, ADAPTERS } from './adapters.js';
import { killTests } from './kill-tests.js';
import { networkTests } from './network-tests.js';
import { dropDatabase, effectsIn, type EngineUnderTest, recordsIn, setScene } from './scene.js';
import { internals } from '../../../src/kernel/base/internals.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';

const note = (text: string): string => `INSERT INTO effects (workflow_id, note) VALUES ('w', '${text}')`;

export function conformance(name: AdapterName): void {
  describe.skipIf(!wantsDialect(ADAPTERS[name].dialect))(name, () => {
    afterAll(dropDatabase);
    formTests(name);
    ruleTests(name);
    reuseTests(name);
    raceTests(name);
    if (ADAPTERS[name].dialect === 'postgres') networkTests(name);
    killTests(name);
  });
}

const SYSTEM_ID = '0123456789abcdef0123456789abcdef';

function listed(workflowID: string, systemID?: string) {
  return { workflowID, systemID };
}

function formTests(name: AdapterName): void {
  test('runTransaction, a registered function and decorated methods commit, and are steps of their names', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    const registered = source.registerTransaction(
      async (text: string) => {
        await run(note(text));
        return [DBOS.stepID, DBOS.isInTransaction(), DBOS.isInStep(), DBOS.isInWorkflow()];
      },
      { name: 'registered', isolationLevel: PGIsolationLevel.RepeatableRead },
    );
    class Shop {
      static readonly greeting = 'static';
      readonly greeting = 'instance';
      @source.transaction()
      static async decorated(): Promise<string> {
        await run(note('decorated'));
        return this.greeting;
      }
      @source.transaction({ name: 'renamed' })
      async own(): Promise<string> {
        await run(note('own'));
        return this.greeting;
      }
    }
    const workflow = DBOS.registerWorkflow(
      async () => {
        const first = await source.runTransaction(() => run(note('first')).then(() => 1), { name: 'first' });
        return [first, await registered('second'), await Shop.decorated(), await new Shop().own()];
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(workflow)();

    expect(await handle.getResult()).toEqual([1, [1, true, false, false], 'static', 'instance']);
    expect(await effectsIn(scene)).toEqual(['decorated', 'first', 'own', 'second']);
    const steps = await DBOS.listWorkflowSteps(handle.workflowID);
    expect(steps?.map((step) => step.name)).toEqual(['first', 'registered', 'decorated', 'renamed']);
    await until('the records are removed', async () => (await recordsIn(scene)).length === 0);
  });

  test('workflows with old records are listed in order, a page at a time', async () => {
    const scene = await setScene(name);
    const { DBOS } = await scene.engine();
    await DBOS.launch();
    const now = Date.now();
    const old = now - 200_000;
    const marked = `'{"__everstep_workflow":"${SYSTEM_ID}/creator","json":1}'`;
    const values = [
      `('a', 0, NULL, ${old}), ('a', 1, ${marked}, ${old}), ('b', 0, '{"json":1}', ${old})`,
      `('c', 0, ${marked}, ${now}), ('d', 0, NULL, ${old})`,
    ].join();
    const table = scene.adapter.dialect === 'postgres' ? 'dbos.transaction_completion' : 'transaction_completion';
    await scene.query(`INSERT INTO ${table} (workflow_id, function_num, output, created_at) VALUES ${values}`);
    const handler = DBOS[internals].registry.dataSources.get('app');

    expect(await handler?.listRecorded?.('', 2)).toEqual([listed('a', SYSTEM_ID), listed('b')]);
    expect(await handler?.listRecorded?.('b', 2)).toEqual([listed('d')]);
  });

  test('outside of a workflow a transaction just runs', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    await DBOS.launch();

    const seen = await source.runTransaction(async () => {
      await run(note('plain'));
      return [DBOS.workflowID, DBOS.isInTransaction()];
    });
    const failing = source.runTransaction(async () => {
      await run(note('undone'));
      throw new Error('no');
    });

    await expect(failing).rejects.toThrow('no');
    expect(seen).toEqual([undefined, true]);
    expect(await effectsIn(scene)).toEqual(['plain']);
    expect(await recordsIn(scene)).toEqual([]);
  });

  test('a read-only transaction reads, leaves no record, and cannot write', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    const read = (): Promise<unknown> => run('SELECT value FROM counters').then((rows) => rows[0]?.['value']);
    const records: unknown[] = [];
    const workflow = DBOS.registerWorkflow(
      async () => {
        const value = await source.runTransaction(read, { name: 'read', readOnly: true });
        records.push(...(await DBOS.runStep(() => recordsIn(scene), { name: 'look' })));
        const refused = await source
          .runTransaction(() => run(note('never')), { name: 'write', readOnly: true })
          .then(
            () => 'written',
            () => 'refused',
          );
        return [value, refused];
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toEqual([0, 'refused']);
    expect(records).toEqual([]);
    expect(await effectsIn(scene)).toEqual([]);
  });
}

function ruleTests(name: AdapterName): void {
  test('in the system database, the checkpoint is part of the transaction', async () => {
    const scene = await setScene(name, { isShared: true });
    const { DBOS, source, run } = await scene.engine();
    const workflow = DBOS.registerWorkflow(
      async () => {
        const value = await source.runTransaction(() => run(note('once')).then(() => ({ at: new Date(0) })), {
          name: 'step',
        });
        return [value, await DBOS.runStep(() => recordsIn(scene), { name: 'look' })];
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow)();

    expect(await handle.getResult()).toEqual([{ at: new Date(0) }, []]);
    expect(await effectsIn(scene)).toEqual(['once']);
    const [step] = (await DBOS.listWorkflowSteps(handle.workflowID)) ?? [];
    expect(step).toMatchObject({ name: 'step', output: { at: new Date(0) } });
  });

  test('an error of the function rolls back, is recorded, and can be caught', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    const failure = Object.assign(new RangeError('out of stock'), { code: 'STOCK', left: 3 });
    const workflow = DBOS.registerWorkflow(
      async () => {
        const caught = await source
          .runTransaction(
            async () => {
              await run(note('undone'));
              throw failure;
            },
            { name: 'failing' },
          )
          .catch((error: unknown) => error);
        await source.runTransaction(() => run(note('after')), { name: 'after' });
        return (caught as typeof failure).left;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow)();

    expect(await handle.getResult()).toBe(3);
    expect(await effectsIn(scene)).toEqual(['after']);
    const [failed] = (await DBOS.listWorkflowSteps(handle.workflowID)) ?? [];
    expect(failed?.error).toMatchObject({ name: 'RangeError', message: 'out of stock', code: 'STOCK', left: 3 });
  });

  test.each([false, true])(
    'an error of the function keeps its class in a fork and in another engine (shared: %s)',
    async (isShared) => {
      class OutOfStock extends Error {}
      const scene = await setScene(name, { isShared });
      const register = ({ DBOS, source, run }: EngineUnderTest) =>
        DBOS.registerWorkflow(
          async () => {
            const body = () => run(note('undone')).then(() => Promise.reject(new OutOfStock('none left')));
            const error = await source.runTransaction(body, { name: 'reserve' }).catch((error: unknown) => error);
            return error instanceof OutOfStock ? 'reorder' : 'give up';
          },
          { name: 'workflow' },
        );
      const first = await scene.engine();
      const workflow = register(first);
      await first.DBOS.launch();
      const live = await (await first.DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

      const fork = await first.DBOS.forkWorkflow<string>('w', 1);
      const forked = await fork.getResult();
      await first.DBOS.shutdown();
      const second = await scene.engine();
      register(second);
      await second.DBOS.launch();
      const later = await second.DBOS.forkWorkflow<string>('w', 1);

      expect([live, forked, await later.getResult()]).toEqual(['reorder', 'reorder', 'reorder']);
      expect(await effectsIn(scene)).toEqual([]);
    },
  );

  test.runIf(ADAPTERS[name].dialect === 'postgres').each([false, true])(
    'a deferred constraint that fails at COMMIT is an error of the function, not of its record (shared: %s)',
    async (isShared) => {
      const scene = await setScene(name, { isShared });
      await scene.query('CREATE TABLE places (id INT PRIMARY KEY, place INT UNIQUE DEFERRABLE INITIALLY DEFERRED)');
      await scene.query('INSERT INTO places VALUES (1, 1)');
      const { DBOS, source, run } = await scene.engine();
      let bodies = 0;
      const workflow = DBOS.registerWorkflow(
        () =>
          source.runTransaction(
            async () => {
              bodies += 1;
              if (bodies > 1) throw new Error('It runs again.');
              await run('INSERT INTO places VALUES (2, 1)');
            },
            { name: 'step' },
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();

      const failure = await workflow().catch((error: unknown) => error);

      expect(getPGErrorCode(failure)).toBe('23505');
      expect(bodies).toBe(1);
      expect(await scene.query('SELECT id FROM places')).toEqual([{ id: 1 }]);
    },
  );

  test('transactions are refused in steps and in each other, and operations in transactions', async () => {
    const scene = await setScene(name);
    const { DBOS, source } = await scene.engine();
    const inner = (): Promise<unknown> => source.runTransaction(async () => 1, { name: 'inner' });
    const refusals = async (calls: (() => Promise<unknown>)[]): Promise<unknown[]> => {
      const codes: unknown[] = [];
      for (const call of calls) {
        codes.push(await call().catch((error: { code?: unknown }) => error.code));
      }
      return codes;
    };
    const workflow = DBOS.registerWorkflow(
      async () => [
        ...(await DBOS.runStep(() => refusals([inner]), { name: 'step' })),
        ...(await source.runTransaction(
          () =>
            refusals([
              inner,
              async () => DBOS.runStep(async () => 1, { name: 'inner' }),
              async () => DBOS.setEvent('key', 1),
            ]),
          { name: 'outer' },
        )),
      ],
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toEqual(Array(4).fill('INVALID_WORKFLOW_TRANSITION'));
    await expect(source.runTransaction(inner)).rejects.toThrow(/inside a `step` or `transaction`/);
    expect(() => (source as unknown as { client: unknown }).client).toThrow(/outside of a transaction/);
  });

  test('a missing completion table is named at launch, if it may not be created', async () => {
    const scene = await setScene(name);
    const { DBOS } = await scene.engine({}, undefined);
    await DBOS.launch();
    await DBOS.shutdown();
    const table = scene.adapter.dialect === 'postgres' ? 'dbos.transaction_completion' : 'transaction_completion';
    await scene.query(`DROP TABLE ${table}`);
    const second = await scene.engine();
    const workflow = second.DBOS.registerWorkflow(
      () => second.source.runTransaction(() => second.run(note('undone')), { name: 'write' }),
      { name: 'workflow' },
    );
    await second.DBOS.launch();
    await scene.query(`DROP TABLE IF EXISTS ${table}`);

    await expect(workflow()).rejects.toThrow(/transaction_completion.* does not exist.*initializeDBOSSchema/);
    expect(await effectsIn(scene)).toEqual([]);
  });
}

function reuseTests(name: AdapterName): void {
  test('a new workflow under the ID of a deleted one runs its transaction: the old record is not taken for its own', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    const workflow = DBOS.registerWorkflow(
      async (text: string) => {
        const value = await source.runTransaction(() => run(note(text)).then(() => text), { name: 'step' });
        if (text === 'cancelled') await DBOS.sleep(600_000);
        return value;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const start = (text: string, queueName?: string) =>
      DBOS.startWorkflow(workflow, { workflowID: 'w', queueName })(text);
    const cancelled = await start('cancelled');
    await until('it has slept', async () => ((await DBOS.listWorkflowSteps('w')) ?? []).length === 2);
    await DBOS.cancelWorkflow('w');
    await expect(cancelled.getResult()).rejects.toThrow(/cancelled/);

    expect(await DBOS.garbageCollect({ cutoffEpochTimestampMs: Date.now() + 60_000 })).toMatchObject({ workflows: 1 });
    const collected = await (await start('collected')).getResult();
    // A client does not know the data source.
    const client = await DBOSClient.create({ systemDatabaseUrl: scene.systemURL });
    onTestFinished(() => client.destroy());
    await client.deleteWorkflow('w');
    const enqueued = await (await start('enqueued', '_dbos_internal_queue')).getResult();

    expect([collected, enqueued]).toEqual(['collected', 'enqueued']);
    expect(await effectsIn(scene)).toEqual(['cancelled', 'collected', 'enqueued']);
  });
}

/**
 * Makes a launched engine blind, as a stopped process is: it claims nothing and does not notice that it has lost a workflow.
 * Resolves when its open transaction has checked that it may commit.
 */
async function blind({ DBOS }: EngineUnderTest, checks: MockInstance<OwnerLookup['owns']>): Promise<void> {
  const { runs, queues } = engineOf(DBOS);
  vi.spyOn(runs, 'stopLost').mockImplementation(() => {});
  await queues.stop();
  await until('the ownership is checked', () => checks.mock.settledResults[0]?.type === 'fulfilled');
}

/** Stops an engine once more, between the commit of a transaction and its checkpoint. Returns how to wake it. */
function stopAfterCommit({ DBOS }: EngineUnderTest): () => void {
  const handler = DBOS[internals].registry.dataSources.get('app') as StepTransactionHandler;
  const perform = handler.performTransaction.bind(handler);
  const gate = deferred<void>();
  handler.performTransaction = async (...args) => {
    const kept = await perform(...args);
    await gate.promise;
    return kept;
  };
  return () => gate.resolve();
}

/** A workflow whose transaction waits in its body until it is let go. */
function held(engine: EngineUnderTest): {
  started: Promise<void>;
  letGo(): void;
  start(queueName?: string): Promise<unknown>;
} {
  const { DBOS, source, run } = engine;
  const started = deferred<void>();
  const gate = deferred<void>();
  const workflow = DBOS.registerWorkflow(
    () =>
      source.runTransaction(
        async () => {
          // Twins begin before either has written, so that neither waits for a lock of the other.
          started.resolve();
          await gate.promise;
          await run(note('once'));
          return 'done';
        },
        { name: 'held' },
      ),
    { name: 'workflow' },
  );
  return {
    started: started.promise,
    letGo: () => gate.resolve(),
    // From a queue, so that it takes up the engine's only place.
    start: (queueName = '_dbos_internal_queue') =>
      DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: queueName || undefined })(),
  };
}

/** Lets all transactions seem to have begun so long ago. Returns how to end that. */
function ageTransactions(ageMs: number): () => void {
  const spy = vi.spyOn(OpenTransaction.prototype, 'ageMs', 'get').mockReturnValue(ageMs);
  return () => spy.mockRestore();
}

/** A former owner with one place does not take its workflow back. */
const ONE_PLACE = { maxConcurrentWorkflows: 1 };

function raceTests(name: AdapterName): void {
  test('a transaction that is open when its run loses the workflow is rolled back, and frees its connection', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    const [began, released] = [deferred<void>(), deferred<void>()];
    const heard: unknown[] = [];
    const workflow = DBOS.registerWorkflow(
      async () => {
        const body = async (): Promise<void> => {
          await run(note('lost'));
          began.resolve();
          await released.promise;
        };
        await source.runTransaction(body, { name: 'held' }).finally(() => heard.push('finally'));
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const { ownership, runs, runtime } = engineOf(DBOS);
    await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await began.promise;

    await runtime.database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'other'`);
    await ownership.verify();
    released.resolve();

    await source.runTransaction(() => run(note('next')), { name: 'next' });
    expect(await effectsIn(scene)).toEqual(['next']);
    expect(await recordsIn(scene)).toEqual([]);
    expect(runs.all).toEqual([]);
    expect(heard).toEqual([]);
  });

  test('of two twins that run one step, one commits, and both give the same outcome', async () => {
    const scene = await setScene(name);
    const [first, second] = [await scene.engine(ONE_PLACE), await scene.engine()];
    const [zombie, heir] = [held(first), held(second)];
    await first.DBOS.launch();
    await zombie.start();
    await zombie.started;

    // It has the executor ID of the first, and so takes its workflows over.
    await second.DBOS.launch();
    // On SQLite the heir cannot begin before the zombie has ended: there is one lock for writing.
    if (scene.adapter.dialect === 'postgres') await heir.started;
    zombie.letGo();
    heir.letGo();

    expect(await second.DBOS.retrieveWorkflow('w').getResult()).toBe('done');
    expect(await first.DBOS.retrieveWorkflow('w').getResult()).toBe('done');
    expect(await effectsIn(scene)).toEqual(['once']);
  });

  test.runIf(ADAPTERS[name].dialect === 'postgres').each([
    ['soon, when the records are there', false],
    ['late, when they were removed', true],
  ] as const)('a former owner that wakes up after the workflow has ended commits nothing: %s', async (_, isLate) => {
    if (isLate) onTestFinished(ageTransactions(60_000));
    const scene = await setScene(name);
    const [first, second] = [await scene.engine(ONE_PLACE), await scene.engine()];
    const [zombie, heir] = [held(first), held(second)];
    await first.DBOS.launch();
    await zombie.start();
    await zombie.started;
    await second.DBOS.launch();
    heir.letGo();
    expect(await second.DBOS.retrieveWorkflow('w').getResult()).toBe('done');
    if (isLate) await scene.query('DELETE FROM dbos.transaction_completion');
    const records = await recordsIn(scene);

    zombie.letGo();
    await first.DBOS.shutdown();

    expect(await effectsIn(scene)).toEqual(['once']);
    expect(records).toHaveLength(isLate ? 0 : 1);
    expect(await recordsIn(scene)).toEqual(records);
  });

  test.runIf(ADAPTERS[name].dialect === 'postgres')(
    'of two stopped owners that wake up one after the other, the second commits nothing: the record outlives it',
    async () => {
      const scene = await setScene(name);
      const engines = [await scene.engine(), await scene.engine(), await scene.engine()] as const;
      const [first, second, third] = engines;
      const [a, b, c] = [held(first), held(second), held(third)];
      const wakeFirst = stopAfterCommit(first);
      await first.DBOS.launch();
      const firstChecks = vi.spyOn(engineOf(first.DBOS).runtime.owners, 'owns');
      await a.start('');
      await a.started;
      await blind(first, firstChecks);
      await second.DBOS.launch();
      const secondChecks = vi.spyOn(engineOf(second.DBOS).runtime.owners, 'owns');
      await b.started;
      await blind(second, secondChecks);
      a.letGo();
      await until('the first owner has committed', async () => (await recordsIn(scene)).length === 1);

      await third.DBOS.launch();
      c.letGo();
      expect(await third.DBOS.retrieveWorkflow('w').getResult()).toBe('done');
      wakeFirst();
      await first.DBOS.shutdown({ workflowCompletionTimeoutMS: 10_000 });
      b.letGo();
      await second.DBOS.shutdown({ workflowCompletionTimeoutMS: 10_000 });

      expect(await effectsIn(scene)).toEqual(['once']);
      expect(await recordsIn(scene)).toHaveLength(1);
    },
  );

  test('four writers of one row all succeed under the strictest isolation', async () => {
    const scene = await setScene(name);
    const { DBOS, source, run } = await scene.engine();
    const add = source.registerTransaction(
      async () => {
        const [row] = await run('SELECT value FROM counters WHERE id = 1');
        const value = Number(row?.['value']) + 1;
        await run(`UPDATE counters SET value = ${value} WHERE id = 1`);
        return value;
      },
      { name: 'add', isolationLevel: PGIsolationLevel.Serializable },
    );
    const workflow = DBOS.registerWorkflow(
      async () => {
        for (let round = 0; round < 3; round += 1) await add();
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    await Promise.all(Array.from({ length: 4 }, () => workflow()));

    expect(await scene.query('SELECT value FROM counters')).toEqual([{ value: 12 }]);
  });
}
