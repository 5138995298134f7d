// What transactions of `pg` cost, and what a failure at each of their messages does.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { ServerTimes } from '../../../src/plugins/transaction/server-times.js';
import { until } from '../../crash/processes.js';
import { postgres, wantsDialect } from '../../rig/dialects.js';
import { hasPgBouncer, startPgBouncer } from '../../rig/pgbouncer.js';
import { type Proxy, startProxy } from '../../rig/proxy.js';
import { startWiretap, type Wiretap } from '../../rig/wiretap.js';
import { effectsIn, type EngineUnderTest, setScene } from './scene.js';

const note = (text: string): string => `INSERT INTO effects (workflow_id, note) VALUES ('w', '${text}')`;

/** A workflow with one transaction. It may run more often than expected: one that waits too long is begun again. */
function noting({ DBOS, source, run }: EngineUnderTest, inBody?: (text: string) => void) {
  return DBOS.registerWorkflow(
    (text: string) =>
      source.runTransaction(
        async () => {
          inBody?.(text);
          await run(note(text));
        },
        { name: 'note' },
      ),
    { name: 'workflow' },
  );
}

async function setup(isShared: boolean, through: (url: string) => Promise<string> = async (url) => url) {
  const scene = await setScene('node-postgres', { isShared });
  return { scene, engine: await scene.engine({}, await through(scene.url)) };
}

describe.skipIf(!wantsDialect('postgres')).each([
  ['in a database of the application', false],
  ['in the system database', true],
])('a transaction %s', (_, isShared) => {
  test('of one statement takes two round trips', async () => {
    let wiretap: Wiretap | undefined;
    const { scene, engine } = await setup(isShared, async (url) => (wiretap = await startWiretap(url)).url);
    const workflow = noting(engine);
    await engine.DBOS.launch();

    // The first one asks what database it is. Old records may be looked for and deleted at any time.
    await until('nothing else is sent meanwhile', async () => {
      wiretap?.take();
      await workflow('one');
      return wiretap?.take().length === 2;
    });

    expect(new Set(await effectsIn(scene))).toEqual(new Set(['one']));
  });

  test.each([
    ['the request with BEGIN', 'request', /INSERT INTO effects/],
    ['the answer to BEGIN', 'answer', /INSERT INTO effects/],
    ['the request with COMMIT', 'request', /COMMIT/],
    ['the answer to COMMIT', 'answer', /COMMIT/],
  ] as const)('whose connection breaks at %s happens once', async (_at, part, pattern) => {
    let proxy: Proxy | undefined;
    let isArmed = false;
    const { scene, engine } = await setup(isShared, async (url) => (proxy = await startProxy(url)).url);
    const workflow = noting(engine, (text) => {
      if (text !== 'two' || isArmed) return;
      isArmed = true;
      if (part === 'request') proxy?.loseNextRequest(pattern);
      else proxy?.loseNextAnswer(pattern);
    });
    await engine.DBOS.launch();
    await workflow('one');

    await workflow('two');

    expect(proxy?.hasStruck).toBe(true);
    expect(await effectsIn(scene)).toEqual(['one', 'two']);
  });

  test('without a statement is recorded', async () => {
    const { engine } = await setup(isShared);
    const { DBOS, source } = engine;
    const workflow = DBOS.registerWorkflow(() => source.runTransaction(async () => 'done', { name: 'nothing' }), {
      name: 'workflow',
    });
    await DBOS.launch();

    for (const workflowID of ['first', 'second']) {
      const handle = await DBOS.startWorkflow(workflow, { workflowID })();
      expect(await handle.getResult()).toBe('done');
      expect(await DBOS.listWorkflowSteps(workflowID)).toMatchObject([{ name: 'nothing', output: 'done' }]);
    }
  });

  test('whose first statement fails is rolled back, although the function goes on', async () => {
    const { scene, engine } = await setup(isShared);
    const { DBOS, source, run } = engine;
    const workflow = DBOS.registerWorkflow(
      (first: string) =>
        source.runTransaction(
          async () => {
            await run(first).catch(() => {});
            await run(note('undone')).catch(() => {});
          },
          { name: 'failing' },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();

    for (const first of ['SELECT FROM WHERE', 'SELECT 1; SELECT FROM WHERE', 'SELECT 1 / (SELECT 0)']) {
      await expect(workflow(first)).rejects.toThrow(/aborted/);
    }

    expect(await effectsIn(scene)).toEqual([]);
  });

  test('of a former owner, begun after the workflow has ended, commits nothing', async () => {
    const scene = await setScene('node-postgres', { isShared });
    // With one slot, the former owner does not claim its workflow again.
    const [first, second] = [await scene.engine({ maxConcurrentWorkflows: 1 }), await scene.engine()];
    const started = deferred<void>();
    const gate = deferred<void>();
    const workflow = first.DBOS.registerWorkflow(
      (text: string) =>
        first.source.runTransaction(
          async () => {
            if (text === 'of the zombie') {
              started.resolve();
              await gate.promise;
            }
            await first.run(note(text));
          },
          { name: 'note' },
        ),
      { name: 'workflow' },
    );
    second.DBOS.registerWorkflow(
      () => second.source.runTransaction(() => second.run(note('of the heir')).then(() => {}), { name: 'note' }),
      { name: 'workflow' },
    );
    await first.DBOS.launch();
    // From here on, its connection knows the server's time, and BEGIN goes with the first statement.
    await workflow('before');
    await first.DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: '_dbos_internal_queue' })('of the zombie');
    await started.promise;
    // It has the executor ID of the first, and so recovers its workflows.
    await second.DBOS.launch();
    await second.DBOS.retrieveWorkflow('w').getResult();

    gate.resolve();
    await first.DBOS.shutdown({ workflowCompletionTimeoutMS: 5_000 });

    expect(await effectsIn(scene)).toEqual(['before', 'of the heir']);
  });

  test.runIf(hasPgBouncer)('goes through PgBouncer in transaction mode', async () => {
    const { scene, engine } = await setup(isShared, async (url) => {
      const bouncer = await startPgBouncer(url, 'transaction', { default_pool_size: 2 });
      onTestFinished(() => bouncer.stop());
      return bouncer.through(url);
    });
    const workflow = noting(engine);
    await engine.DBOS.launch();
    const texts = Array.from({ length: 30 }, (_value, index) => String(index + 10));

    await Promise.all(texts.map((text) => workflow(text)));

    expect(await effectsIn(scene)).toEqual(texts);
  });
});

test.skipIf(!wantsDialect('postgres'))(
  'a workflow of one transaction takes two round trips to the system database',
  async () => {
    const scene = await setScene('node-postgres');
    const wiretap = await startWiretap(await postgres.createURL());
    const engine = await scene.engine({ systemDatabaseUrl: wiretap.url });
    const workflow = noting(engine);
    await engine.DBOS.launch();

    await until('nothing else is sent meanwhile', async () => {
      wiretap.take();
      await workflow('one');
      return wiretap.take().length === 2;
    });

    expect(new Set(await effectsIn(scene))).toEqual(new Set(['one']));
  },
);

test.skipIf(!wantsDialect('postgres'))(
  'a record that comes too late after the check of ownership is refused, and its transaction runs again',
  async () => {
    const { scene, engine } = await setup(false);
    // So transactions believe that the server has answered just now, when 21 seconds have passed.
    const original = Object.getOwnPropertyDescriptor(ServerTimes.prototype, 'note')
      ?.value as ServerTimes<unknown>['note'];
    const spy = vi.spyOn(ServerTimes.prototype, 'note').mockImplementation(function (this: unknown, client, answer) {
      const shifted = answer && { ...answer, server_seconds: Number(answer['server_seconds']) - 21 };
      original.call(this as ServerTimes<unknown>, client, shifted);
    });
    onTestFinished(() => spy.mockRestore());
    let calls = 0;
    const workflow = noting(engine, () => (calls += 1));
    await engine.DBOS.launch();
    const texts: string[] = [];

    await until('a record is refused', async () => {
      const before = calls;
      texts.push(String(texts.length + 1000));
      await workflow(texts.at(-1) ?? '');
      return calls > before + 1;
    });

    expect(await effectsIn(scene)).toEqual(texts);
  },
);
