// A run that is stopped rejects what its code waits for. Code that does not await a promise yet must not cost the process.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import { registerDataSource, registerTransaction } from '../../src/plugins/transaction/datasource.js';
import { bundled } from '../rig/bundle.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { newHalt } from './succession.js';

type Begin = (DBOS: DBOSInstance) => Promise<unknown>;

const never = (): Promise<never> => new Promise(() => {});

/** What a workflow may begin and await later. */
const OPERATIONS: Record<string, Begin> = {
  sleep: (DBOS) => DBOS.sleep(60_000),
  recv: (DBOS) => DBOS.recv('topic', 60),
  getEvent: (DBOS) => DBOS.getEvent('other', 'key', 60),
  getResult: (DBOS) => DBOS.getResult('other', 60),
  'the result of a handle': (DBOS) => DBOS.retrieveWorkflow('other').getResult(),
  'a wait for the first': (DBOS) => DBOS.waitFirst([DBOS.retrieveWorkflow('other')]),
  'a race': (DBOS) => DBOS.race([never()]),
  'all of several': (DBOS) => DBOS.all([DBOS.sleep(60_000), DBOS.recv('topic', 60)]),
  'a preemptible step': (DBOS) => DBOS.runStep(never, { name: 'step', preemptible: true }),
  'a step that retries': (DBOS) =>
    DBOS.runStep(() => Promise.reject(new Error('again')), { name: 'step', retriesAllowed: true, intervalSeconds: 60 }),
  requests: (DBOS) => DBOS.handleRequests({}),
};

/** The unhandled rejections of this process until the test ends. */
function noteUnhandled(): unknown[] {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  return unhandled;
}

forEachDialect((dialect) => {
  /** A workflow that begins an operation, runs a step for as long as the test wants, and then awaits the operation. */
  async function setup(begin: Begin) {
    const { DBOS } = await createEngine(dialect);
    const unhandled = noteUnhandled();
    const halt = newHalt();
    const workflow = DBOS.registerWorkflow(
      async () => {
        const begun = begin(DBOS);
        await DBOS.runStep(() => halt.here(), { name: 'work' });
        await begun;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    handle.getResult().catch(() => {});
    await halt.reached;
    return { DBOS, unhandled, halt };
  }

  /** Unhandled rejections are reported after the turn in which they happen. */
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  test.each(Object.entries(OPERATIONS))(
    'a cancel does not leave an unhandled rejection behind: %s',
    async (_, begin) => {
      const { DBOS, unhandled, halt } = await setup(begin);

      await DBOS.cancelWorkflow('w');

      await turns();
      halt.release();
      await turns();
      expect(unhandled).toEqual([]);
    },
  );

  test.each(Object.entries(OPERATIONS))(
    'a shutdown does not leave an unhandled rejection behind: %s',
    async (_, begin) => {
      const { DBOS, unhandled, halt } = await setup(begin);

      await DBOS.shutdown();

      await turns();
      halt.release();
      await turns();
      expect(unhandled).toEqual([]);
    },
  );

  test('a child that cannot be started because of a cancel leaves no unhandled rejection', async () => {
    const { DBOS } = await createEngine(dialect);
    const unhandled = noteUnhandled();
    const halt = newHalt();
    const child = DBOS.registerWorkflow(() => Promise.resolve(1), { name: 'child' });
    const parent = DBOS.registerWorkflow(
      async () => {
        const work = DBOS.runStep(() => halt.here(), { name: 'work' });
        await DBOS.runStep(() => DBOS.cancelWorkflow('w'), { name: 'cancel' }).catch(() => {});
        void DBOS.startWorkflow(child)();
        void child();
        await work;
      },
      { name: 'parent' },
    );
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(parent, { workflowID: 'w' })();

    const result = handle.getResult().catch(() => 'cancelled');
    await halt.reached;
    await turns();
    halt.release();
    expect(await result).toBe('cancelled');
    expect(unhandled).toEqual([]);
  });

  test('a transaction that ends after a cancel leaves no unhandled rejection', async () => {
    const { DBOS } = await createEngine(dialect);
    const unhandled = noteUnhandled();
    const [work, transaction] = [newHalt(), newHalt()];
    const handler = {
      name: 'source',
      dsType: 'test',
      initialize: () => Promise.resolve(),
      destroy: () => Promise.resolve(),
      invokeTransactionFunction: <This, Args extends unknown[], Return>(
        _: unknown,
        target: This,
        func: (this: This, ...args: Args) => Promise<Return>,
        ...args: Args
      ) => func.apply(target, args),
    };
    registerDataSource(handler, DBOS);
    const transact = registerTransaction('source', () => transaction.here(), { name: 'transact' }, DBOS);
    const workflow = DBOS.registerWorkflow(
      async () => {
        const begun = transact();
        await DBOS.runStep(() => work.here(), { name: 'work' });
        await begun;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    const result = handle.getResult().catch(() => 'cancelled');
    await Promise.all([work.reached, transaction.reached]);

    await DBOS.cancelWorkflow('w');

    transaction.release();
    await turns();
    work.release();
    expect(await result).toBe('cancelled');
    expect(unhandled).toEqual([]);
  });

  test('an error of a step that is not awaited is unhandled as before', async () => {
    const { unhandled } = await setup((DBOS) => DBOS.runStep(() => Promise.reject(new Error('mine')), { name: 's' }));

    await turns();

    expect(unhandled).toEqual([expect.objectContaining({ message: 'mine' })]);
  });
});

onlyOn('sqlite', (dialect) => {
  /** Runs a process in which a workflow is cancelled; see unhandled-process.ts. */
  async function run(scenario: string) {
    const program = await bundled(new URL('./unhandled-process.ts', import.meta.url));
    const args = [...program, await dialect.createURL(), scenario];
    return promisify(execFile)(process.execPath, args).catch((error: unknown) => error as { stderr: string });
  }

  test('a cancel does not end a process that holds a Promise.all of operations', async () => {
    expect(await run('derived')).toMatchObject({ stdout: 'alive\n' });
  });

  test('a rejection of the application ends the process after a cancel as it would without', async () => {
    const failed = await run('foreign');

    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toContain('Error: mine');
  });
});

forEachDialect((dialect) => {
  /** Runs a process with a workflow that does not await a failing operation; see unawaited-process.ts. */
  async function run(scenario: string, url: string) {
    const program = await bundled(new URL('./unawaited-process.ts', import.meta.url));
    return promisify(execFile)(process.execPath, [...program, url, scenario]).catch(
      (error: unknown) => error as object,
    );
  }

  test.each(['running', 'wrapped'])(
    'an operation that fails without being awaited fails its workflow, not the process: %s',
    async (scenario) => {
      const { stdout = '{}' } = (await run(scenario, await dialect.createURL())) as { stdout?: string };

      expect(JSON.parse(stdout)).toEqual({
        outcome: 'UNAWAITED_OPERATION',
        logged: [
          `Workflow "w" (${scenario}) fails because of an operation that it does not await. Await or catch every operation. Error: no funds`,
        ],
      });
    },
  );

  test('an operation in progress at the end of its workflow is named, and may fail', async () => {
    const { stdout = '{}' } = (await run('ended', await dialect.createURL())) as { stdout?: string };

    expect(JSON.parse(stdout)).toEqual({
      outcome: 'done',
      logged: [
        'Workflow "w" (ended) has ended while operations of it were in progress: "late" (0). Their outcomes are lost. Await every operation, or pass those of which only the first matters to DBOS.race.',
        'An operation of workflow "w" (ended) failed after the end. Await or catch every operation. Error: late',
      ],
    });
  });

  test('a workflow that fails outside of workflows without being awaited is up to the application', async () => {
    expect(await run('outside', await dialect.createURL())).toMatchObject({ code: 1, stdout: '' });
  });
});
