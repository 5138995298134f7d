// Workflow code that branches on the class of an error takes the same branch when it is replayed.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient } from '../../src/faces/client/client.js';
import { registerDataSource, registerTransaction } from '../../src/plugins/transaction/datasource.js';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { bundled } from '../rig/bundle.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { createScene, HOUR, untilParked } from '../features/parking/parking-scene.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

class PaymentError extends Error {}

class CardDeclined extends PaymentError {
  override readonly name = 'CardDeclined';
  readonly #digits: string;

  constructor(
    readonly code: string,
    digits: string,
    options?: ErrorOptions,
  ) {
    super('no money', options);
    this.#digits = digits;
  }

  get digits(): string {
    return this.#digits;
  }
}

const decline = (): Promise<never> =>
  Promise.reject(new CardDeclined('E_MONEY', '4711', { cause: new PaymentError('limit') }));

/** What workflow code can see of an error. */
function seen(error: unknown): unknown {
  const { name, message, code, digits, cause, stack } = error as CardDeclined;
  const { constructor } = error as object;
  return {
    is: [CardDeclined, PaymentError, TypeError, Error].map((type) => error instanceof type),
    cause: [cause instanceof PaymentError, cause instanceof CardDeclined],
    fields: { name, message, code, digits, stack, keys: Object.keys(error as object) },
    madeBy: constructor.name,
  };
}

type Fail = (DBOS: DBOSInstance) => Promise<unknown>;

/** How an error comes to workflow code. */
const SOURCES: Record<string, Fail> = {
  'a step': (DBOS) => DBOS.runStep(decline, { name: 'charge' }),
  'a step that gives up': (DBOS) =>
    DBOS.runStep(decline, { name: 'charge', retriesAllowed: true, maxAttempts: 1 }).catch((error: unknown) => {
      throw (error as { errors: unknown[] }).errors[0];
    }),
  'a step that does not retry it': (DBOS) =>
    DBOS.runStep(decline, {
      name: 'charge',
      retriesAllowed: true,
      shouldRetry: (error) => !(error instanceof CardDeclined),
    }),
  'a child': (DBOS) => of(DBOS).child(),
  'a handle of a child': async (DBOS) => (await DBOS.startWorkflow(of(DBOS).child)()).getResult(),
  'DBOS.getResult': async (DBOS) => DBOS.getResult((await DBOS.startWorkflow(of(DBOS).child)()).workflowID),
  'a transaction': (DBOS) => of(DBOS).transaction(),
};

/** Functions of an engine, which its workflows call. */
interface Registered {
  readonly child: () => Promise<never>;
  readonly transaction: () => Promise<never>;
}

const registered = new WeakMap<DBOSInstance, Registered>();

function of(DBOS: DBOSInstance): Registered {
  const known = registered.get(DBOS);
  if (!known) throw new Error('Register the functions first.');
  return known;
}

/** A workflow that fails, looks at the error, and does `then`; a fork or a recovery of it looks again. */
function register(DBOS: DBOSInstance, fail: Fail, then: () => Promise<unknown>): () => Promise<unknown[]> {
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
  registered.set(DBOS, {
    child: DBOS.registerWorkflow(() => DBOS.runStep(decline, { name: 'charge' }), { name: 'child' }),
    transaction: registerTransaction('source', decline, { name: 'transaction' }, DBOS),
  });
  return DBOS.registerWorkflow(
    async () => {
      const looks: unknown[] = [];
      for (let look = 0; look < 2; look += 1) {
        await fail(DBOS).catch((error: unknown) => looks.push(seen(error)));
        if (look === 0) await then();
      }
      return looks;
    },
    { name: 'pay' },
  );
}

forEachDialect((dialect) => {
  describe.each(Object.entries(SOURCES))('an error of %s', (_, fail) => {
    test('is the same after its workflow was parked, also if its class is not registered', async () => {
      const scene = await createScene(dialect);
      const { clock, DBOS } = scene;
      const pay = register(DBOS, fail, () => DBOS.sleep(HOUR));
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(pay, { workflowID: 'w' })();
      await untilParked(scene, 'w');

      clock.advance(HOUR);

      const [replayed, live] = withoutStacks(await handle.getResult());
      expect(replayed).toEqual(live);
      expect(live).toMatchObject({ is: [true, true, false, true], cause: [true, false], madeBy: 'CardDeclined' });
    });

    test.each([
      ['is not registered', []],
      ['is registered', [CardDeclined, { 'payments.PaymentError': PaymentError }]],
    ] as const)('is the same in another process, if its class %s', async (_title, classes) => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const looks: unknown[] = [];
      const pay = register(
        first,
        (DBOS) => fail(DBOS).catch((error: unknown) => Promise.reject(noted(looks, error))),
        () => halt.here(),
      );
      register(second, fail, () => Promise.resolve());
      for (const DBOS of [first, second]) DBOS.registerErrors(...classes);
      await first.launch();
      await first.startWorkflow(pay, { workflowID: 'w' })();
      await halt.reached;
      await first.shutdown();

      await second.launch();

      const [replayed] = await second.retrieveWorkflow<unknown[]>('w').getResult();
      expect([replayed]).toEqual(looks);
    });

    test('is the same in a fork', async () => {
      const { DBOS } = await createEngine(dialect);
      const pay = register(DBOS, fail, () => Promise.resolve());
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(pay)();
      const looks = await handle.getResult();
      const steps = (await DBOS.listWorkflowSteps(handle.workflowID))!;

      const fork = await DBOS.forkWorkflow<unknown[]>(handle.workflowID, steps.length / 2);

      expect((await fork.getResult())[0]).toEqual(looks[0]);
    });
  });

  test('the error of a workflow is the same for those who await it here, elsewhere and later', async () => {
    const { first, second, url } = await createGenerations(dialect, { executorID: 'one' });
    const fail = first.registerWorkflow(decline, { name: 'fail' });
    second.registerWorkflow(decline, { name: 'fail' });
    await first.launch();
    const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
    onTestFinished(() => client.destroy());
    const handle = await first.startWorkflow(fail, { workflowID: 'w' })();

    const here = await failureOf(handle.getResult());
    const found = await failureOf(first.retrieveWorkflow('w').getResult());
    const byClient = await failureOf(client.retrieveWorkflow('w').getResult());
    const listed = (await client.getWorkflow('w'))?.error;

    for (const error of [found, byClient, listed]) expect(seen(error)).toEqual(seen(here));
    expect(seen(here)).toMatchObject({ is: [true, true, false, true] });
  });

  test('a client that has registered the class gets its methods', async () => {
    class Refusal extends Error {
      says(): string {
        return `No: ${this.message}`;
      }
    }
    const { DBOS, url } = await createEngine(dialect);
    const fail = DBOS.registerWorkflow(() => Promise.reject(new Refusal('never')), { name: 'fail' });
    await DBOS.launch();
    await DBOS.startWorkflow(fail, { workflowID: 'w' })();
    const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
    onTestFinished(() => client.destroy());

    client.registerErrors(Refusal);

    const error = await failureOf(client.retrieveWorkflow('w').getResult());
    expect((error as unknown as Refusal).says()).toBe('No: never');
    expect(() => client.registerErrors({ Refusal: CardDeclined })).toThrow('Another class of errors has the name');
  });

  test('a step that gives up in another process has the errors of all attempts, with their classes', async () => {
    const scene = await createScene(dialect);
    const { clock } = scene;
    const attempts: string[] = [];
    const retrying = (DBOS: DBOSInstance) =>
      DBOS.registerWorkflow(
        () =>
          DBOS.runStep(
            async () => {
              attempts.push('attempt');
              await decline();
            },
            { name: 'charge', retriesAllowed: true, maxAttempts: 2, intervalSeconds: 3600, errors: [CardDeclined] },
          ).catch((error: unknown) =>
            (error as { errors: Error[] }).errors.map(({ constructor }) => constructor === CardDeclined),
          ),
        { name: 'retrying' },
      );
    const workflow = retrying(scene.DBOS);
    await scene.DBOS.launch();
    await scene.DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await untilParked(scene, 'w');
    await scene.DBOS.shutdown();
    const { DBOS: second } = await createScene(dialect, { systemDatabaseUrl: scene.url }, clock);
    retrying(second);
    await second.launch();

    clock.advance(HOUR);

    expect(await second.retrieveWorkflow('w').getResult()).toEqual([true, true]);
    expect(attempts).toHaveLength(2);
  });

  test('a class that the workflow defines is recognised by each of its runs', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const workflow = DBOS.registerWorkflow(
      async () => {
        class Declined extends Error {}
        try {
          return await DBOS.runStep(() => Promise.reject(new Declined()), { name: 'charge' });
        } catch (error) {
          if (!(error instanceof Declined)) throw error;
          await DBOS.sleep(HOUR);
          return DBOS.runStep(() => Promise.resolve('mailed'), { name: 'mail' });
        }
      },
      { name: 'pay' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    clock.advance(HOUR);

    expect(await handle.getResult()).toBe('mailed');
  });

  test('an error that a recipe makes is one at replay, too', async () => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    DBOS.registerSerialization<CardDeclined, { code: string; digits: string }>({
      name: 'CardDeclined',
      isApplicable: (value): value is CardDeclined => value instanceof CardDeclined,
      serialize: ({ code, digits }) => ({ code, digits }),
      deserialize: ({ code, digits }) => new CardDeclined(code, digits),
    });
    const pay = register(DBOS, SOURCES['a step']!, () => DBOS.sleep(HOUR));
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(pay, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    clock.advance(HOUR);

    const [replayed, live] = withoutStacks(await handle.getResult());
    expect(replayed).toEqual(live);
    expect(live).toMatchObject({ is: [true, true, false, true], fields: { digits: '4711' } });
  });

  test('the error of a portable workflow is portable for everybody', async () => {
    const { DBOS } = await createEngine(dialect);
    const child = DBOS.registerWorkflow(decline, { name: 'child', serialization: 'portable' });
    const parent = DBOS.registerWorkflow(async () => seen(await child().catch((error: unknown) => error)), {
      name: 'parent',
    });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(parent)();
    const live = await handle.getResult();

    const fork = await DBOS.forkWorkflow(handle.workflowID, 2);

    expect(await fork.getResult()).toEqual(live);
    expect(live).toMatchObject({ is: [false, false, false, true], madeBy: 'PortableWorkflowError' });
  });

  test.each([false, true].flatMap((minify) => ['unregistered', 'registered', 'step'].map((how) => ({ minify, how }))))(
    'after kill -9 the branch is the same: $how, minified: $minify',
    async ({ minify, how }) => {
      const url = await dialect.createURL();
      const program = await bundled(new URL('./error-classes-process.ts', import.meta.url), { minify });
      const run = (life: string) => promisify(execFile)(process.execPath, [...program, url, how, life]);
      await expect(run('once')).rejects.toMatchObject({ signal: 'SIGKILL' });

      const { stdout } = await run('again');

      const [branch, isLarge, name = ''] = stdout.trim().split(' ');
      expect([branch, isLarge]).toEqual(['mail', 'true']);
      expect(name.length < 3).toBe(minify);
    },
  );

  test('in development the log says once which classes to register', async () => {
    const warnings: unknown[] = [];
    const logger = { ...silentLogger, warn: (message: unknown) => void warnings.push(message) };
    const { DBOS } = await createEngine(dialect, { logger });
    const fail = DBOS.registerWorkflow(decline, { name: 'fail' });
    await DBOS.launch();

    for (let count = 0; count < 2; count += 1) await failureOf(fail());

    expect(warnings).toEqual([
      expect.stringContaining('Add: DBOS.registerErrors(CardDeclined)'),
      expect.stringContaining('Add: DBOS.registerErrors(PaymentError)'),
    ]);
  });
});

/** Looks at the error that workflow code gets, and passes it on. */
function noted(looks: unknown[], error: unknown): Error {
  if (looks.length === 0) looks.push(seen(error));
  return error as Error;
}

/** Two errors of one function differ in nothing else. */
function withoutStacks(looks: unknown[]): unknown[] {
  return looks.map((look) => {
    const { fields, ...rest } = look as { fields: object };
    return { ...rest, fields: { ...fields, stack: undefined } };
  });
}
