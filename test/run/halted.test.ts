// A run that has lost its workflow, or whose engine stops, ends without a word: its code is not to undo what the next run
// goes on with.
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { registerDataSource, registerTransaction } from '../../src/plugins/transaction/datasource.js';
import type { DBOSInstance } from '../../src/index.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { failureOf, newHalt } from './succession.js';

interface Scene {
  readonly DBOS: DBOSInstance;
  /** What code has heard, or seen. */
  readonly heard: string[];
}

/** Everything that a workflow may wait for. None of it ends before the run is halted. */
const WAITS: Record<string, (scene: Scene) => Promise<unknown>> = {
  'a step': ({ DBOS, heard }) => DBOS.runStep(() => untilAborted(DBOS, heard), { name: 'step' }),
  'a preemptible step': ({ DBOS }) => DBOS.runStep(never, { name: 'step', preemptible: true }),
  'a step between attempts': ({ DBOS }) =>
    DBOS.runStep(() => Promise.reject(new Error('no')), { name: 'step', retriesAllowed: true, intervalSeconds: 60 }),
  'a transaction': ({ DBOS, heard }) => transactionOf(DBOS)(heard),
  'a child': ({ DBOS }) => childOf(DBOS)(),
  'a handle': async ({ DBOS }) => (await DBOS.startWorkflow(childOf(DBOS))()).getResult(),
  'the first of several': async ({ DBOS }) => DBOS.waitFirst([await DBOS.startWorkflow(childOf(DBOS))()]),
  'a sleep': ({ DBOS }) => DBOS.sleep(60_000),
  'a message': ({ DBOS }) => DBOS.recv('topic', 60),
  'an event': ({ DBOS }) => DBOS.getEvent('other', 'key', 60),
  'a result': ({ DBOS }) => DBOS.getResult('other', 60),
  'a stream': async ({ DBOS }) => {
    for await (const value of DBOS.readStream('w', 'key')) return value;
    return undefined;
  },
  requests: ({ DBOS }) => DBOS.handleRequests({}),
  'an answer': ({ DBOS }) => DBOS.sendRequest('w', 'question', null),
  branches: ({ DBOS }) => DBOS.parallel([() => DBOS.sleep(60_000), () => DBOS.recv('topic', 60)]),
  'a race': ({ DBOS }) => DBOS.race([DBOS.sleep(60_000), DBOS.recv('topic', 60)]),
};

/** How a run loses its workflow. */
const LOSSES: Record<string, (DBOS: DBOSInstance) => Promise<unknown>> = {
  shutdown: (DBOS) => DBOS.shutdown(),
  'a new owner': async (DBOS) => {
    const { ownership, runtime } = engineOf(DBOS);
    await runtime.database.run(
      sql`UPDATE ${table('workflow_status')} SET owner_xid = 'other' WHERE workflow_uuid = 'w'`,
    );
    await ownership.verify();
  },
  deletion: (DBOS) => DBOS.deleteWorkflow('w'),
};

const children = new WeakMap<DBOSInstance, () => Promise<unknown>>();
function childOf(DBOS: DBOSInstance): () => Promise<unknown> {
  return children.get(DBOS) as () => Promise<unknown>;
}

const transactions = new WeakMap<DBOSInstance, (heard: string[]) => Promise<unknown>>();
function transactionOf(DBOS: DBOSInstance): (heard: string[]) => Promise<unknown> {
  return transactions.get(DBOS) as (heard: string[]) => Promise<unknown>;
}

const never = (): Promise<never> => new Promise(() => {});

/** A step that observes its signal. */
function untilAborted(DBOS: DBOSInstance, heard: string[]): Promise<never> {
  const signal = DBOS.stepStatus?.cancelSignal;
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => {
      heard.push('step aborted');
      reject(signal.reason as Error);
    });
  });
}

/** A data source whose transactions end when they are let go. */
function sourceOf(DBOS: DBOSInstance, name: string) {
  const handler = {
    name,
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
}

/** What has been begun goes on for a while. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

forEachDialect((dialect) => {
  /** A workflow that waits, and would undo something if it heard why it stops. */
  async function setup(wait: (scene: Scene) => Promise<unknown>) {
    const { DBOS } = await createEngine(dialect);
    const heard: string[] = [];
    let isWaiting = false;
    sourceOf(DBOS, 'source');
    transactions.set(
      DBOS,
      registerTransaction('source', () => never(), { name: 'transaction' }, DBOS),
    );
    children.set(
      DBOS,
      DBOS.registerWorkflow(() => never(), { name: 'child' }),
    );
    const workflow = DBOS.registerWorkflow(
      async () => {
        try {
          const waiting = wait({ DBOS, heard });
          isWaiting = true;
          await waiting;
          heard.push('went on');
        } catch (error) {
          heard.push(`caught ${String(error)}`);
        } finally {
          heard.push('finally');
        }
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q');
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();
    await until(() => isWaiting);
    await engineOf(DBOS).runtime.store.writer.idle();
    await turns();
    const { runs } = engineOf(DBOS);
    return { DBOS, heard, handle, runs };
  }

  test.each(Object.entries(WAITS).flatMap(([name, wait]) => Object.keys(LOSSES).map((loss) => ({ name, wait, loss }))))(
    'code that waits for $name hears nothing of $loss',
    async ({ name, wait, loss }) => {
      const { DBOS, heard, runs } = await setup(wait);

      await LOSSES[loss]?.(DBOS);

      await turns();
      expect(heard).toEqual(name === 'a step' ? ['step aborted'] : []);
      expect(runs.all.filter(({ workflowID }) => workflowID === 'w')).toEqual([]);
    },
  );

  test('code hears nothing, whatever it does with a promise', async () => {
    const storage = new AsyncLocalStorage<string>();
    const { DBOS, heard } = await setup(({ DBOS }) => {
      const sleeps = [DBOS.sleep(60_000), DBOS.sleep(60_000)];
      const noted = (promise: Promise<unknown>, what: string) =>
        promise.then(
          () => heard.push(what),
          () => heard.push(what),
        );
      return Promise.any([
        noted(Promise.race(sleeps), 'race'),
        noted(Promise.allSettled(sleeps), 'allSettled'),
        noted(
          storage.run('inner', async () => DBOS.sleep(60_000)),
          'storage',
        ),
        noted(
          DBOS.sleep(60_000).finally(() => heard.push('inner finally')),
          'chain',
        ),
      ]);
    });

    await DBOS.shutdown();

    await turns();
    expect(heard).toEqual([]);
  });

  test('code that goes on after something of its own begins nothing more, and its outcome is not recorded', async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const { DBOS, heard, handle } = await setup(async ({ DBOS, heard }) => {
      await released;
      heard.push('released');
      await DBOS.runStep(async () => heard.push('step'), { name: 'step' });
    });
    await LOSSES['a new owner']?.(DBOS);

    release();

    await turns();
    expect(heard).toEqual(['released']);
    expect(await handle.getStatus()).toMatchObject({ status: 'PENDING' });
    expect(await DBOS.listWorkflowSteps('w')).toEqual([]);
  });

  test('the handle of a deleted workflow gets the error that its code does not', async () => {
    const { DBOS } = await createEngine(dialect);
    const heard: string[] = [];
    const workflow = DBOS.registerWorkflow(() => DBOS.sleep(60_000).finally(() => heard.push('finally')), {
      name: 'workflow',
    });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await until(async () => (await DBOS.listWorkflowSteps('w'))?.length === 1);

    const failure = failureOf(handle.getResult());
    await DBOS.deleteWorkflow('w');

    expect(await failure).toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
    expect(heard).toEqual([]);
  });

  test('the slot of a halted run is free, although its code never returns', async () => {
    const { DBOS, runs } = await setup(({ DBOS }) => DBOS.sleep(60_000));

    await LOSSES['a new owner']?.(DBOS);

    expect(runs.slots.count('q')).toBe(0);
  });

  test('what code has begun and does not await goes no further than its end', async () => {
    const { DBOS } = await createEngine(dialect);
    const heard: string[] = [];
    const inFlight = newHalt();
    const workflow = DBOS.registerWorkflow(
      async () => {
        const losing = async (): Promise<void> => {
          await DBOS.runStep(() => inFlight.here(), { name: 'in flight' });
          heard.push('went on');
          await DBOS.runStep(async () => heard.push('next'), { name: 'next' });
        };
        // The sleep would keep the process alive.
        return DBOS.race([
          losing(),
          DBOS.sleep(3_600_000),
          DBOS.runStep(() => inFlight.reached.then(() => 'won'), { name: 'winner' }),
        ]);
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult()).toBe('won');

    inFlight.release();
    await turns();
    expect(heard).toEqual([]);
  });

  test('code still hears of a cancellation', async () => {
    const { DBOS, heard } = await setup(({ DBOS }) => DBOS.sleep(60_000));

    await DBOS.cancelWorkflow('w');

    await until(() => heard.length === 2);
    expect(heard).toEqual([expect.stringContaining('DBOSWorkflowCancelledError'), 'finally']);
  });
});
