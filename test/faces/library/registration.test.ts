import { DBOSAlreadyLaunchedError } from '../../../src/kernel/errors/errors.js';
import { describe, expect, test } from 'vitest';
import { createDBOS, DBOS as defaultDBOS, type DLogger } from '../../../src/index.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { createGenerations, failureOf, newHalt } from '../../run/succession.js';

const conflicting = { code: 'CONFLICTING_REGISTRATION', dbosErrorCode: 25 };

function failureOfCall(call: () => unknown): Promise<Error & Record<string, unknown>> {
  return failureOf((async () => call())());
}

forEachDialect((dialect) => {
  test("an anonymous workflow runs under the name '', from queues as well, and is warned of", async () => {
    const warnings: unknown[] = [];
    const logger: DLogger = { ...silentLogger, warn: (entry) => void warnings.push(entry) };
    const { DBOS } = await createEngine(dialect, { logger });
    const double = DBOS.registerWorkflow(async (x: number) => x * 2);
    const parent = DBOS.registerWorkflow(async () => double(4), { name: 'parent' });
    await DBOS.launch();
    await DBOS.registerQueue('q');

    expect(await double(2)).toBe(4);
    const queued = await DBOS.startWorkflow(double, { queueName: 'q' })(3);
    expect(await queued.getResult()).toBe(6);
    expect((await queued.getStatus())?.workflowName).toBe('');
    expect(await parent()).toBe(8);
    expect(warnings).toEqual([expect.stringContaining("under the name ''")]);
  });

  test('a crashed anonymous workflow is recovered', async () => {
    const { first, second } = await createGenerations(dialect);
    const halt = newHalt();
    const workflow = first.registerWorkflow(async (): Promise<string> => {
      await halt.here();
      return 'first';
    });
    second.registerWorkflow(async () => 'second');
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    await first.shutdown();

    await second.launch();

    expect(await second.retrieveWorkflow('w').getResult()).toBe('second');
  });
});

describe('names', () => {
  test('are those of the functions unless given, and are kept by the wrappers', () => {
    const DBOS = createDBOS();
    async function order() {}
    async function pay() {}

    const wrappers = [
      DBOS.registerWorkflow(order),
      DBOS.registerWorkflow(async () => {}, { name: 'given' }),
      DBOS.registerStep(pay),
      DBOS.registerStep(async () => {}, { name: 'given step' }),
    ];

    expect(wrappers.map((wrapper) => wrapper.name)).toEqual(['order', 'given', 'pay', 'given step']);
  });

  test('of workflows may be used once', async () => {
    const DBOS = createDBOS();
    function registerFirst() {
      DBOS.registerWorkflow(async () => {}, { name: 'order' });
    }
    registerFirst();

    const error = await failureOfCall(() => DBOS.registerWorkflow(async () => 2, { name: 'order' }));

    expect(error).toMatchObject(conflicting);
    expect(error.message).toContain('Operation (Name: order) is already registered.');
    expect(error.message).toContain('registerFirst');
  });

  test('of steps need not be unique, nor differ from those of workflows', () => {
    const DBOS = createDBOS();

    DBOS.registerWorkflow(async () => {}, { name: 'order' });
    DBOS.registerStep(async () => {}, { name: 'order' });
    DBOS.registerStep(async () => {}, { name: 'order' });
    DBOS.registerStep(async () => {});
    DBOS.registerStep(async () => {});
  });

  test('may be used once in each class', async () => {
    const DBOS = createDBOS();
    class Shop {}
    DBOS.registerWorkflow(async () => {}, { name: 'order' });
    DBOS.registerWorkflow(async () => {}, { name: 'order', className: 'Bank' });
    DBOS.registerWorkflow(async () => {}, { name: 'order', ctorOrProto: Shop });

    const error = await failureOfCall(() => DBOS.registerWorkflow(async () => 2, { name: 'order', className: 'Shop' }));

    expect(error.message).toContain('Operation (Name: Shop.order) is already registered.');
  });
});

test('a function cannot be both a workflow and a step', async () => {
  const DBOS = createDBOS();
  const both = async () => {};
  DBOS.registerWorkflow(both, { name: 'workflow' });

  const error = await failureOfCall(() => DBOS.registerStep(both, { name: 'step' }));

  expect(error).toMatchObject(conflicting);
  expect(error.message).toContain('conflicting function type');
});

test('a class has one alias', async () => {
  const DBOS = createDBOS();
  class Shop {}
  DBOS.className('Store')(Shop);

  const error = await failureOfCall(() => DBOS.className('Market')(Shop));

  expect(error).toMatchObject(conflicting);
  expect(error.message).toContain('already has the name "Store"');
});

test('the default instance is there and not launched', () => {
  expect(defaultDBOS.isInitialized()).toBe(false);
  expect(defaultDBOS.logger).toBeDefined();
});

forEachDialect((dialect) => {
  describe('after the launch', () => {
    test('nothing can be registered', async () => {
      const { DBOS } = await createEngine(dialect);
      class Shop {}
      async function launchHere() {
        await DBOS.launch();
      }
      await launchHere();
      const attempts = [
        () => DBOS.registerWorkflow(async () => {}, { name: 'late' }),
        () => DBOS.registerStep(async () => {}, { name: 'late' }),
        () => DBOS.className('Store')(Shop),
        () => DBOS.registerMiddlewareInstaller({ installMiddleware() {} }),
      ];

      for (const attempt of attempts) {
        const error = await failureOfCall(attempt);
        expect(error).toMatchObject(conflicting);
        expect(error.message).toContain('DBOS code is being registered after DBOS.launch()');
        expect(error.message).toContain('launchHere');
      }
    });

    test('no type can be taught to the serializer', async () => {
      const { DBOS } = await createEngine(dialect);
      const recipe = {
        name: 'Date',
        isApplicable: (value: unknown): value is Date => value instanceof Date,
        serialize: (value: Date) => value.getTime(),
        deserialize: (value: number) => new Date(value),
      };
      await DBOS.launch();

      expect(() => DBOS.registerSerialization(recipe)).toThrow(DBOSAlreadyLaunchedError);
    });

    test('steps can still be run without having been registered', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(() => DBOS.runStep(async () => 1, { name: 'any' }), { name: 'workflow' });
      await DBOS.launch();

      expect(await workflow()).toBe(1);
    });
  });

  test('two classes of one name are refused at the launch, which can be repeated when one has another', async () => {
    const { DBOS } = await createEngine(dialect);
    const [one, two] = [class Shop {}, class Shop {}];
    DBOS.registerWorkflow(async () => {}, { name: 'order', ctorOrProto: one });
    const deliver = DBOS.registerWorkflow(async () => 'delivered', { name: 'deliver', ctorOrProto: two });
    const error = await failureOf(DBOS.launch());
    expect(error).toMatchObject(conflicting);
    expect(error.message).toContain('Two classes are named "Shop"');
    DBOS.className('Market')(two);

    await DBOS.launch();

    expect(await DBOS.withNextWorkflowID('w', () => deliver())).toBe('delivered');
    expect((await DBOS.getWorkflowStatus('w'))?.workflowClassName).toBe('Market');
  });

  test('two classes of errors of one name are refused', async () => {
    const { DBOS } = await createEngine(dialect);
    const [one, two] = [class NotFound extends Error {}, class NotFound extends Error {}];
    DBOS.registerErrors(one);

    const error = await failureOfCall(() => DBOS.registerErrors(two));

    expect(error).toMatchObject(conflicting);
    expect(error.message).toMatch(/"NotFound": it is registered at .*registration\.test\.ts:\d+:\d+/);
    expect(() => DBOS.registerErrors(one, two)).toThrow(
      'classes must be classes of errors, each under a name of its own',
    );
    DBOS.registerErrors(one, { 'orders.NotFound': two });
  });

  test('types of the application can be taught to the serializer', async () => {
    const { DBOS } = await createEngine(dialect);
    class Money {
      constructor(readonly cents: number) {}
    }
    DBOS.registerSerialization<Money, number>({
      name: 'Money',
      isApplicable: (value): value is Money => value instanceof Money,
      serialize: ({ cents }) => cents,
      deserialize: (cents) => new Money(cents),
    });
    const double = DBOS.registerWorkflow(async (money: Money) => new Money(money.cents * 2), { name: 'double' });
    await DBOS.launch();

    const doubled = await double(new Money(5));

    expect(doubled).toBeInstanceOf(Money);
    expect(doubled.cents).toBe(10);
  });

  describe('two instances in one process', () => {
    /** Two isolated applications with the same names on databases of their own. */
    async function setup() {
      const { DBOS: one } = await createEngine(dialect, { name: 'one' });
      const { DBOS: two } = await createEngine(dialect, { name: 'two' });
      const [workflowOne, workflowTwo] = [
        one.registerWorkflow(async () => `one ${one.workflowID}`, { name: 'workflow' }),
        two.registerWorkflow(async () => `two ${two.workflowID}`, { name: 'workflow' }),
      ];
      return { one, two, workflowOne, workflowTwo };
    }

    test('share neither functions nor workflows', async () => {
      const { one, two, workflowOne, workflowTwo } = await setup();
      await one.launch();
      await two.launch();

      const results = [
        await one.withNextWorkflowID('w', () => workflowOne()),
        await two.withNextWorkflowID('w', () => workflowTwo()),
      ];

      expect(results).toEqual(['one w', 'two w']);
      expect((await one.getWorkflowStatus('w'))?.applicationName).toBe('one');
      expect((await two.getWorkflowStatus('w'))?.applicationName).toBe('two');
    });

    test('are launched and shut down apart', async () => {
      const { one, two, workflowOne, workflowTwo } = await setup();
      await one.launch();
      await expect((async () => workflowTwo())()).rejects.toThrow('must be called before running workflows');
      await two.launch();

      await one.shutdown();

      await expect((async () => workflowOne())()).rejects.toThrow('must be called before running workflows');
      expect(await workflowTwo()).toMatch(/^two /);
    });

    test('do not start the functions of each other within a workflow', async () => {
      const { one, two, workflowTwo } = await setup();
      const mixed = one.registerWorkflow(
        async (how: 'call' | 'start') => (how === 'call' ? workflowTwo() : two.startWorkflow(workflowTwo)()),
        { name: 'mixed' },
      );
      await one.launch();
      await two.launch();

      await expect(mixed('call')).rejects.toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      await expect(mixed('start')).rejects.toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
    });

    test('do not take settings of each other for their own engine', async () => {
      const { one, two, workflowTwo } = await setup();
      await one.launch();
      await two.launch();

      const handle = await one.withAuthedContext('ann', [], () =>
        two.startWorkflow(workflowTwo, { workflowID: 'w' })(),
      );
      await one.withAuthedContext('ann', [], () => two.withNextWorkflowID('v', () => workflowTwo()));

      expect(await handle.getResult()).toBe('two w');
      expect(await one.getWorkflowStatus('w')).toBeNull();
      expect((await two.getWorkflowStatus('w'))?.applicationName).toBe('two');
      expect((await two.getWorkflowStatus('v'))?.applicationName).toBe('two');
    });
  });

  describe('roles', () => {
    async function setup() {
      const { DBOS } = await createEngine(dialect);
      class Vault {
        static async open(this: void) {
          return [DBOS.authenticatedUser, DBOS.assumedRole];
        }
        static async look(this: void) {
          return DBOS.assumedRole;
        }
        static async count(this: void) {
          return DBOS.assumedRole;
        }
        static async inspect(this: void) {
          return Vault.count();
        }
      }
      const describeProperty = (name: 'open' | 'look' | 'count') =>
        Object.getOwnPropertyDescriptor(Vault, name) as PropertyDescriptor;
      Vault.open = DBOS.registerWorkflow(Vault.open, { name: 'open', ctorOrProto: Vault });
      Vault.look = DBOS.registerWorkflow(Vault.look, { name: 'look', ctorOrProto: Vault });
      Vault.count = DBOS.registerStep(Vault.count, { name: 'count', ctorOrProto: Vault });
      Vault.inspect = DBOS.registerWorkflow(Vault.inspect, { name: 'inspect', ctorOrProto: Vault });
      const require = (anyOf: string[], name: 'open' | 'look' | 'count') =>
        DBOS.requiredRole(anyOf)(Vault, name, describeProperty(name));
      require(['owner', 'guard'], 'open');
      require([], 'look');
      require(['auditor'], 'count');
      DBOS.defaultRequiredRole(['guard'])(Vault);
      await DBOS.launch();
      return { DBOS, Vault };
    }

    test('let those in who have one of them, who act in that role', async () => {
      const { DBOS, Vault } = await setup();

      const seen = await DBOS.withAuthedContext('ann', ['cook', 'guard'], () => Vault.open());

      expect(seen).toEqual(['ann', 'guard']);
    });

    test('keep others out, before anything is stored', async () => {
      const { DBOS, Vault } = await setup();

      const error = await failureOf(
        DBOS.withAuthedContext('bob', ['cook'], () => DBOS.startWorkflow(Vault, { workflowID: 'w' }).open()),
      );

      expect(error).toMatchObject({ code: 'NOT_AUTHORIZED', dbosErrorCode: 12, status: 403 });
      expect(error.message).toContain('owner, guard');
      expect(await DBOS.getWorkflowStatus('w')).toBeNull();
      await expect((async () => Vault.open())()).rejects.toMatchObject({ code: 'NOT_AUTHORIZED' });
    });

    test('given with the start count', async () => {
      const { DBOS, Vault } = await setup();

      const handle = await DBOS.startWorkflow(Vault, {
        authenticatedUser: 'ann',
        authenticatedRoles: ['owner'],
      }).open();

      expect(await handle.getResult()).toEqual(['ann', 'owner']);
      expect(await handle.getStatus()).toMatchObject({ assumedRole: 'owner', authenticatedRoles: ['owner'] });
    });

    test('of the class are for the functions that name none', async () => {
      const { DBOS, Vault } = await setup();

      await expect((async () => Vault.inspect())()).rejects.toMatchObject({ code: 'NOT_AUTHORIZED' });
      expect(await DBOS.withAuthedContext('ann', ['guard', 'auditor'], () => Vault.inspect())).toBe('auditor');
      expect(await Vault.look()).toBe('');
    });

    test('of a step are checked where it is called', async () => {
      const { DBOS, Vault } = await setup();

      const refused = DBOS.withAuthedContext('ann', ['guard'], () => Vault.inspect());

      await expect(refused).rejects.toMatchObject({ code: 'NOT_AUTHORIZED' });
    });
  });

  describe('middleware', () => {
    test('sees every function, and its interceptors run in their order and may replace the arguments', async () => {
      const { DBOS } = await createEngine(dialect);
      const seen: string[] = [];
      const calls: unknown[] = [];
      const workflow = DBOS.registerWorkflow(async (x: number) => x, { name: 'workflow', className: 'Shop' });
      DBOS.registerStep(async () => {}, { name: 'step' });
      DBOS.registerMiddlewareInstaller({
        installMiddleware(registration) {
          seen.push(`${registration.className}.${registration.name}`);
          const note = (label: string, change: (x: number) => number) => (_: unknown, args: unknown[]) => {
            calls.push([label, ...args]);
            return args.map((arg) => change(arg as number));
          };
          registration.addEntryInterceptor(
            note('last', (x) => x + 1),
            90,
          );
          registration.addEntryInterceptor(note('middle', (x) => x * 10));
          registration.addEntryInterceptor(
            note('first', (x) => x + 5),
            10,
          );
        },
      });
      await DBOS.launch();

      const result = await workflow(1);

      expect(seen).toEqual(['Shop.workflow', '.step']);
      expect(result).toBe(61);
      expect(calls).toEqual([
        ['first', 1],
        ['middle', 6],
        ['last', 60],
      ]);
    });

    test('that throws fails the workflow', async () => {
      const { DBOS } = await createEngine(dialect);
      let calls = 0;
      const workflow = DBOS.registerWorkflow(async () => ++calls, { name: 'workflow' });
      DBOS.registerMiddlewareInstaller({
        installMiddleware: (registration) =>
          registration.addEntryInterceptor(async () => Promise.reject(new Error('stopped at the door'))),
      });
      await DBOS.launch();

      await expect(DBOS.withNextWorkflowID('w', () => workflow())).rejects.toThrow('stopped at the door');
      expect((await DBOS.getWorkflowStatus('w'))?.status).toBe('ERROR');
      expect(calls).toBe(0);
    });

    test('runs once a call, also after a second launch', async () => {
      const { DBOS } = await createEngine(dialect);
      let calls = 0;
      const workflow = DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
      DBOS.registerMiddlewareInstaller({
        installMiddleware: (registration) =>
          registration.addEntryInterceptor((_, args) => {
            calls += 1;
            return args;
          }),
      });
      await DBOS.launch();
      await DBOS.shutdown();
      await DBOS.launch();

      await workflow();

      expect(calls).toBe(1);
    });

    test('runs before a step as well', async () => {
      const { DBOS } = await createEngine(dialect);
      const step = DBOS.registerStep(async (x: number) => x, { name: 'step' });
      const workflow = DBOS.registerWorkflow(() => step(1), { name: 'workflow' });
      DBOS.registerMiddlewareInstaller({
        installMiddleware(registration) {
          if (registration.name !== 'step') return;
          registration.addEntryInterceptor((_, args) => args.map((arg) => (arg as number) + 1));
        },
      });
      await DBOS.launch();

      expect(await workflow()).toBe(2);
    });
  });

  describe('an input schema', () => {
    const parsing = {
      parse(input: unknown): unknown {
        const [text, ...rest] = input as unknown[];
        if (typeof text !== 'string') throw new RangeError('a text is needed');
        return [text.trim(), ...rest];
      },
    };
    const standard = {
      '~standard': {
        version: 1,
        vendor: 'by hand',
        async validate(input: unknown) {
          const [text, ...rest] = input as unknown[];
          if (typeof text === 'string') return { value: [text.trim(), ...rest] };
          return { issues: [{ message: 'a text is needed', path: [0, { key: 'text' }] }, { message: 'and more' }] };
        },
      },
    } as const;

    async function setup(inputSchema: typeof parsing | typeof standard | { parse(input: unknown): unknown }) {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async (text: string, x: number) => [text, x], {
        name: 'workflow',
        inputSchema,
      });
      await DBOS.launch();
      return { DBOS, workflow };
    }

    test.each([
      ['parse', parsing],
      ['a Standard Schema', standard],
    ])('with %s transforms the arguments, which are stored as given', async (_, schema) => {
      const { DBOS, workflow } = await setup(schema);

      const handle = await DBOS.startWorkflow(workflow)('  tea ', 2);

      expect(await handle.getResult()).toEqual(['tea', 2]);
      expect(await handle.getWorkflowInputs()).toEqual(['  tea ', 2]);
    });

    test('whose parse throws fails the workflow with that error', async () => {
      const { DBOS, workflow } = await setup(parsing);

      const handle = await DBOS.startWorkflow(workflow)(5 as never, 2);

      await expect(handle.getResult()).rejects.toMatchObject({ name: 'RangeError', message: 'a text is needed' });
      expect((await handle.getStatus())?.status).toBe('ERROR');
    });

    test('of the standard kind that finds issues fails the workflow with all of them', async () => {
      const { workflow } = await setup(standard);

      const error = await failureOf(workflow(5 as never, 2));

      expect(error).toMatchObject({ code: 'DATA_VALIDATION', dbosErrorCode: 9 });
      expect(error.message).toContain('0.text: a text is needed; and more');
    });

    test('that gives no array fails the workflow', async () => {
      const { workflow } = await setup({ parse: () => 'no array' });

      await expect(workflow('tea', 2)).rejects.toMatchObject({ code: 'DATA_VALIDATION' });
    });

    test('is applied after a recovery as well', async () => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const inputSchema = { parse: (input: unknown) => (input as number[]).map((x) => x + 1) };
      const workflow = first.registerWorkflow(
        async (_: number) => {
          await halt.here();
          return 0;
        },
        { name: 'workflow', inputSchema },
      );
      second.registerWorkflow(async (x: number) => x, { name: 'workflow', inputSchema });
      await first.launch();
      await first.startWorkflow(workflow, { workflowID: 'w' })(1);
      await halt.reached;
      await first.shutdown();

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toBe(2);
    });
  });

  test('what a workflow logs goes to the logger of its engine', async () => {
    const entries: unknown[] = [];
    const logger: DLogger = { ...silentLogger, info: (entry) => void entries.push(entry) };
    const { DBOS } = await createEngine(dialect, { logger });
    const workflow = DBOS.registerWorkflow(async () => defaultDBOS.logger.info('hello'), { name: 'workflow' });
    await DBOS.launch();

    await workflow();

    expect(entries).toContain('hello');
  });
});
