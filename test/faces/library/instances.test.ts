import { describe, expect, test } from 'vitest';
import { ConfiguredInstance, createDBOS, type DBOSInstance } from '../../../src/index.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { createGenerations, failureOf, newHalt } from '../../run/succession.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

/** A class of greeters, whose workflow calls its step. */
function defineGreeter(DBOS: DBOSInstance, halt: () => Promise<void> = async () => {}) {
  const calls: string[] = [];
  class Greeter extends ConfiguredInstance {
    constructor(name: string) {
      super(name, DBOS);
    }
    override async initialize(): Promise<void> {
      calls.push(`initialize ${this.name}`);
    }
    async address(who: string): Promise<string> {
      return `dear ${who}`;
    }
    async greet(who: string): Promise<string> {
      calls.push(`greet ${this.name}`);
      const addressed = await this.address(who);
      await halt();
      return `${this.name}: ${addressed}`;
    }
  }
  const ctorOrProto = Greeter.prototype;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  Greeter.prototype.address = DBOS.registerStep(Greeter.prototype.address, { ctorOrProto });
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  Greeter.prototype.greet = DBOS.registerWorkflow(Greeter.prototype.greet, { ctorOrProto });
  return { Greeter, calls };
}

test('the name of an instance is unique within its class', async () => {
  const DBOS = createDBOS();
  const { Greeter } = defineGreeter(DBOS);
  class Other extends ConfiguredInstance {}
  new Greeter('one');
  new Other('one', DBOS);

  const error = await failureOf((async () => new Greeter('one'))());

  expect(error).toMatchObject({ code: 'CONFLICTING_REGISTRATION' });
  expect(error.message).toContain('"Greeter"');
  expect(error.message).toContain('"one"');
});

forEachDialect((dialect) => {
  async function setup() {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
    const { DBOS } = await createEngine(dialect, { logger });
    return { DBOS, warnings, ...defineGreeter(DBOS) };
  }

  test('instances are initialized at the launch, before anything runs', async () => {
    const { DBOS, Greeter, calls } = await setup();
    const greeter = new Greeter('one');
    await DBOS.launch();

    expect(await greeter.greet('ann')).toBe('one: dear ann');
    expect(calls).toEqual(['initialize one', 'greet one']);
  });

  test('an instance that fails to initialize fails the launch', async () => {
    const { DBOS } = await setup();
    class Broken extends ConfiguredInstance {
      override async initialize(): Promise<void> {
        throw new Error('not ready');
      }
    }
    new Broken('one', DBOS);

    await expect(DBOS.launch()).rejects.toThrow('not ready');
    expect(DBOS.isInitialized()).toBe(false);
  });

  test('an instance that is created after the launch works, and is warned of', async () => {
    const { DBOS, Greeter, warnings } = await setup();
    await DBOS.launch();

    const greeter = new Greeter('late');

    expect(await greeter.greet('ann')).toBe('late: dear ann');
    expect(warnings.join()).toContain('"late"');
  });

  describe('a method that is called on another object', () => {
    test('is refused', async () => {
      const { DBOS, Greeter } = await setup();
      const greeter = new Greeter('one');
      await DBOS.launch();
      const attempts = [
        () => greeter.greet.call({ name: 'stranger' } as InstanceType<typeof Greeter>, 'ann'),
        // eslint-disable-next-line @typescript-eslint/unbound-method -- That is what is tested.
        () => DBOS.startWorkflow(greeter.greet)('ann'),
        () => greeter.greet.call(undefined as never, 'ann'),
      ];

      for (const attempt of attempts) {
        const error = await failureOf((async () => attempt())());
        expect(error).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
        expect(error.message).toContain('"greet"');
      }
    });

    test('is refused for a step as well', async () => {
      const { DBOS, Greeter } = await setup();
      const greeter = new Greeter('one');
      await DBOS.launch();

      const error = await failureOf((async () => greeter.address.call({} as InstanceType<typeof Greeter>, 'ann'))());

      expect(error).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
    });
  });

  test('an ID belongs to the workflow of one instance', async () => {
    const { DBOS, Greeter } = await setup();
    const [one, two] = [new Greeter('one'), new Greeter('two')];
    await DBOS.launch();
    await DBOS.withNextWorkflowID('w', () => one.greet('ann'));

    const error = await failureOf(DBOS.withNextWorkflowID('w', () => two.greet('ann')));

    expect(error).toMatchObject({ code: 'CONFLICTING_WORKFLOW' });
    expect(error.message).toContain('it belongs to instance "one", not "two"');
  });

  test('a workflow whose instance is not there is left to an executor that has it, and can be explained', async () => {
    const { first, second, url } = await createGenerations(dialect);
    const halt = newHalt();
    const { Greeter } = defineGreeter(first, () => halt.here());
    const greeter = new Greeter('one');
    defineGreeter(second);
    await first.launch();
    await first.startWorkflow(greeter, { workflowID: 'w' }).greet('ann');
    await halt.reached;
    await first.shutdown();
    await second.launch();
    expect(await second.explainWorkflow('w')).toMatchObject({
      status: 'ENQUEUED',
      reason: 'function-not-registered',
      message: expect.stringContaining('instance "one" of class "Greeter"') as string,
    });
    const { DBOS: third } = await createEngine(dialect, { applicationVersion: 'v1', systemDatabaseUrl: url });
    const { Greeter: Successor } = defineGreeter(third);
    new Successor('one');

    await third.launch();

    expect(await second.retrieveWorkflow('w').getResult()).toBe('one: dear ann');
  });
});
