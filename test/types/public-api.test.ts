// What the compiler must accept and refuse. The functions given to `compiles` are never called.
/* eslint-disable @typescript-eslint/no-unsafe-call -- Some calls are wrong on purpose. */
import { describe, expectTypeOf, test } from 'vitest';
import {
  ConfiguredInstance,
  createDBOS,
  type DBOSClient,
  type DBOSConfig,
  type DBOSInstance,
  type StepConfig,
  type WaitResult,
  type WorkflowHandle,
  type WorkflowStatus,
} from '../../src/index.js';

const DBOS = createDBOS();

function compiles(_: (actor: DBOSInstance | DBOSClient) => unknown): void {}

test('verbs of an instance and of a client say what they have changed', () => {
  compiles((actor: DBOSInstance | DBOSClient) => {
    expectTypeOf(actor.cancelWorkflow('w')).resolves.toEqualTypeOf<string[]>();
    expectTypeOf(actor.deleteWorkflows(['w'])).resolves.toEqualTypeOf<string[]>();
    expectTypeOf(actor.pauseQueue('q')).resolves.toEqualTypeOf<boolean>();
    expectTypeOf(actor.pauseSchedule('s')).resolves.toEqualTypeOf<boolean>();
    expectTypeOf(actor.setWorkflowDelay('w', 1)).resolves.toEqualTypeOf<boolean>();
    expectTypeOf(actor.resumeWorkflow<number>('w')).resolves.toEqualTypeOf<WorkflowHandle<number>>();
  });
});

describe('registering', () => {
  test('keeps the arguments and the result of the function', () => {
    const workflow = DBOS.registerWorkflow(async (item: string, count?: number) => ({ item, count }), { name: 'a' });
    const step = DBOS.registerStep(async (x: number) => [x], { name: 'b', retriesAllowed: true });

    expectTypeOf(workflow).toBeCallableWith('tea');
    expectTypeOf(workflow).returns.resolves.toEqualTypeOf<{ item: string; count: number | undefined }>();
    expectTypeOf(step).parameters.toEqualTypeOf<[number]>();
    expectTypeOf(step).returns.resolves.toEqualTypeOf<number[]>();
    compiles(() => {
      // @ts-expect-error A number is no text.
      void workflow(5);
      // @ts-expect-error The item is missing.
      void workflow();
      // @ts-expect-error One argument too many.
      void step(1, 2);
    });
  });

  test('takes async functions only', () => {
    compiles(() => {
      // @ts-expect-error A workflow is async.
      DBOS.registerWorkflow(() => 5);
      // @ts-expect-error A step is async.
      DBOS.registerStep((x: number) => x);
      // @ts-expect-error So is a step that is run directly.
      void DBOS.runStep(() => 5);
      // @ts-expect-error And it takes no arguments.
      void DBOS.runStep(async (x: number) => x);
    });
  });

  test('takes known settings only', () => {
    compiles(() => {
      DBOS.registerWorkflow(async () => {}, { inputSchema: { parse: (input) => input } });
      // @ts-expect-error There is no such setting.
      DBOS.registerWorkflow(async () => {}, { maxRecovery: 3 });
      // @ts-expect-error The number of attempts is no text.
      DBOS.registerStep(async () => {}, { maxAttempts: '3' });
      // @ts-expect-error A schema has to parse or to validate.
      DBOS.registerWorkflow(async () => {}, { inputSchema: {} });
    });
    expectTypeOf<StepConfig['shouldRetry']>().toEqualTypeOf<
      ((error: unknown) => boolean | Promise<boolean>) | undefined
    >();
  });
});

describe('starting', () => {
  const workflow = DBOS.registerWorkflow(async (x: number) => String(x), { name: 'c' });

  test('takes the arguments of the workflow and gives a handle of its result', () => {
    const start = () => DBOS.startWorkflow(workflow, { workflowID: 'w', timeoutMS: null })(5);

    expectTypeOf(start).returns.resolves.toEqualTypeOf<WorkflowHandle<string>>();
    compiles(() => {
      // @ts-expect-error A text is no number.
      void DBOS.startWorkflow(workflow)('5');
      // @ts-expect-error There is no such policy.
      void DBOS.startWorkflow(workflow, { workflowIDReusePolicy: 'maybe' })(5);
    });
  });

  test('takes classes and instances, and offers their async methods', () => {
    class Machine extends ConfiguredInstance {
      static async list(prefix: string): Promise<string[]> {
        return [prefix];
      }
      async brew(cups: number): Promise<boolean> {
        return cups > 0;
      }
      label(): string {
        return this.name;
      }
    }
    const list = () => DBOS.startWorkflow(Machine).list('a');
    const brew = (machine: Machine) => DBOS.startWorkflow(machine).brew(2);

    expectTypeOf(list).returns.resolves.toEqualTypeOf<WorkflowHandle<string[]>>();
    expectTypeOf(brew).returns.resolves.toEqualTypeOf<WorkflowHandle<boolean>>();
    compiles(() => {
      const machine = {} as Machine;
      // @ts-expect-error A text is no number.
      void DBOS.startWorkflow(machine).brew('two');
      // @ts-expect-error There is no such method.
      void DBOS.startWorkflow(machine).grind();
      // @ts-expect-error A method that is not async is no workflow.
      void DBOS.startWorkflow(machine).label();
    });
  });
});

test('handles and results have their types', () => {
  const retrieve = () => DBOS.retrieveWorkflow<Promise<number>>('w');
  const result = () => DBOS.getResult<number>('w', 5);
  const status = (handle: WorkflowHandle<number>) => handle.getStatus();
  const waitAll = (handles: WorkflowHandle<number>[]) => DBOS.waitAll(handles);

  expectTypeOf(retrieve).returns.toEqualTypeOf<WorkflowHandle<number>>();
  expectTypeOf(result).returns.resolves.toEqualTypeOf<number | null>();
  expectTypeOf(status).returns.resolves.toEqualTypeOf<WorkflowStatus | null>();
  expectTypeOf(waitAll).returns.resolves.toEqualTypeOf<WorkflowHandle<number>[]>();
  compiles(() => {
    // @ts-expect-error A handle of texts is no handle of numbers.
    void status({} as WorkflowHandle<string>);
  });
});

test('waiting for promises keeps their types', () => {
  const wait = (promises: Promise<number>[]) => DBOS.wait(promises, { returnWhen: 'first' });
  const race = () => DBOS.race([Promise.resolve(1), Promise.resolve('a')]);
  const all = () => DBOS.all([Promise.resolve(1), 'a' as const]);

  expectTypeOf(wait).returns.resolves.toEqualTypeOf<WaitResult<Promise<number>>>();
  expectTypeOf(race).returns.resolves.toEqualTypeOf<string | number>();
  expectTypeOf(all).returns.resolves.toEqualTypeOf<[number, 'a']>();
  compiles(() => {
    // @ts-expect-error There is no such time to return.
    void DBOS.wait([], { returnWhen: 'never' });
  });
});

test('a configuration has known fields only', () => {
  expectTypeOf({ name: 'app', executorID: 'one' }).toExtend<DBOSConfig>();
  compiles(() => {
    // @ts-expect-error There is no such field.
    DBOS.setConfig({ name: 'app', databse: 'x' });
    // @ts-expect-error A name is a text.
    DBOS.setConfig({ name: 5 });
  });
});

describe('messages, events, streams and requests', () => {
  type Add = (amount: number) => Promise<string>;

  test('give what the caller expects, or null when the time is up', () => {
    expectTypeOf(() => DBOS.recv<number>()).returns.resolves.toEqualTypeOf<number | null>();
    expectTypeOf(() => DBOS.getEvent<string>('w', 'k')).returns.resolves.toEqualTypeOf<string | null>();
    expectTypeOf(() => DBOS.readStreamOffset<Date>('w', 'k', 0)).returns.resolves.toEqualTypeOf<Date>();
    expectTypeOf(() => DBOS.readStream<Date>('w', 'k')).returns.toEqualTypeOf<AsyncGenerator<Date, void, unknown>>();
    expectTypeOf(() => DBOS.sendRequest<Add>('w', 'add', 1)).returns.resolves.toEqualTypeOf<string>();
    expectTypeOf(() => DBOS.handleRequests({})).returns.resolves.toEqualTypeOf<'stopped' | 'timeout'>();
  });

  test('hold both sides of a request to what they agreed on', () => {
    compiles(() => {
      void DBOS.sendRequest<Add>('w', 'add', 5, { timeoutMs: 10, idempotencyKey: 'k' });
      void DBOS.handleRequests<{ add: Add }>({ add: async (amount, request) => `${amount} ${request.requestID}` });
      void DBOS.handleRequests<{ add: Add }>({ add: { schema: { parse: Number }, handle: async () => 'x' } });
      void DBOS.handleRequests({ any: (payload: { a: number }) => payload.a, other: () => undefined });
      // @ts-expect-error The amount is a number.
      void DBOS.sendRequest<Add>('w', 'add', 'five');
      // @ts-expect-error The answer is a text.
      void DBOS.handleRequests<{ add: Add }>({ add: async () => 5 });
      // @ts-expect-error The amount is a number.
      void DBOS.handleRequests<{ add: Add }>({ add: async (amount: string) => amount });
      // @ts-expect-error Every request has to be handled.
      void DBOS.handleRequests<{ add: Add }>({});
    });
  });

  test('take known formats only', () => {
    compiles(() => {
      void DBOS.send('w', 1, 'topic', 'key', { serializationType: 'portable' });
      // @ts-expect-error There is no such format.
      void DBOS.setEvent('k', 1, { serializationType: 'xml' });
      // @ts-expect-error A message needs a destination.
      void DBOS.sendBulk([{ message: 1 }]);
    });
  });
});
