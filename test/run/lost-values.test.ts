// A value that would not come back fails the operation that brings it, which names the place. Nothing of it is stored.
import { describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient, Debouncer, DebouncerClient } from '../../src/index.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { registerDataSource, registerTransaction } from '../../src/plugins/transaction/datasource.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { failureOf } from './succession.js';

const withFunction = (): unknown => ({ a: { cb: () => 1 } });

forEachDialect((dialect) => {
  async function setup() {
    const { DBOS, url } = await createEngine(dialect);
    let body: () => Promise<unknown> = () => Promise.resolve();
    const run = DBOS.registerWorkflow(() => body(), { name: 'run' });
    const take = DBOS.registerWorkflow((value: unknown) => Promise.resolve(typeof value), { name: 'take' });
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
    const transact = registerTransaction('source', () => Promise.resolve(withFunction()), { name: 'transact' }, DBOS);
    await DBOS.launch();
    await DBOS.registerQueue('q');
    const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
    onTestFinished(() => client.destroy());
    /** Runs the code as the workflow "w". */
    const inWorkflow = async (code: () => Promise<unknown>): Promise<unknown> => {
      body = code;
      return (await DBOS.startWorkflow(run, { workflowID: 'w' })()).getResult();
    };
    return { DBOS, client, take, transact, inWorkflow };
  }

  type Scene = Awaited<ReturnType<typeof setup>>;

  describe.each<[string, (scene: Scene) => Promise<unknown>, string]>([
    ['a call', ({ take }) => take(withFunction()), 'take.<arguments>.0.a.cb'],
    [
      'a start',
      ({ DBOS, take }) => DBOS.startWorkflow(take, { queueName: 'q' })(withFunction()),
      'take.<arguments>.0.a.cb',
    ],
    [
      'a start by name',
      ({ DBOS }) => DBOS.enqueueWorkflowWithOptions({ workflowName: 'take', queueName: 'q' }, withFunction()),
      '0.a.cb',
    ],
    [
      'several starts',
      ({ DBOS, take }) => DBOS.startWorkflows(take, [{ args: [1] }, { args: [withFunction()] }], { queueName: 'q' }),
      'a.cb',
    ],
    ['a client', ({ client }) => client.enqueue({ workflowName: 'take', queueName: 'q' }, withFunction()), '0.a.cb'],
    [
      'a debouncer',
      ({ take, DBOS }) => new Debouncer({ workflow: take }, DBOS).debounce('k', 1000, withFunction()),
      '0.a.cb',
    ],
    [
      'a debouncer of a client',
      ({ client }) => new DebouncerClient(client, { workflowName: 'take' }).debounce('k', 1000, withFunction()),
      '0.a.cb',
    ],
  ])('as an argument of %s', (_, start, path) => {
    test('it is refused, and nothing is started', async () => {
      const scene = await setup();

      const error = await failureOf(start(scene));

      expect(error).toMatchObject({
        code: expect.stringMatching(/SERIALIZATION_FAILED|INVALID_WORKFLOW_INPUT/) as string,
      });
      expect(error.message).toContain(`${path} is a function (cb), which cannot be stored`);
      expect(await scene.DBOS.listWorkflows({})).toEqual([]);
    });
  });

  test.each<[string, (scene: Scene) => Promise<unknown>, string]>([
    ['a step', ({ DBOS }) => DBOS.runStep(() => Promise.resolve(withFunction()), { name: 'fetch' }), 'fetch.a.cb'],
    ['a transaction', ({ transact }) => transact(), 'transact.a.cb'],
  ])('as the result of %s it is the error of that, live and at replay', async (_, call, path) => {
    const scene = await setup();
    const { DBOS, inWorkflow } = scene;

    const looks = [await inWorkflow(() => failureOf(call(scene)).then(({ code, message }) => [code, message]))];

    looks.push(await (await DBOS.forkWorkflow('w', 1)).getResult());
    expect(looks[0]).toEqual([
      'SERIALIZATION_FAILED',
      expect.stringContaining(`The value at ${path} is a function (cb), which cannot be stored`),
    ]);
    expect(looks[1]).toEqual(looks[0]);
    expect(await DBOS.listWorkflowSteps('w')).toMatchObject([{ error: { code: 'SERIALIZATION_FAILED' } }]);
  });

  test('as the result of a workflow it is the error of that', async () => {
    const { DBOS, inWorkflow } = await setup();

    const error = await failureOf(inWorkflow(() => Promise.resolve(new Response('x'))));

    expect(error.message).toContain('The value at run is of the type Response, which cannot be stored');
    expect(await DBOS.getWorkflowStatus('w')).toMatchObject({
      status: 'ERROR',
      error: { code: 'SERIALIZATION_FAILED' },
    });
  });

  test.each<[string, (scene: Scene) => Promise<unknown>]>([
    ['a message', ({ DBOS }) => DBOS.send('w', withFunction(), 'topic')],
    ['an event', ({ DBOS }) => DBOS.setEvent('key', withFunction())],
    ['a value of a stream', ({ DBOS }) => DBOS.writeStream('key', withFunction())],
  ])('as %s it is refused, and nothing is recorded', async (_, call) => {
    const scene = await setup();

    const message = await scene.inWorkflow(() => failureOf(call(scene)).then((error) => error.message));

    expect(message).toContain('The value at a.cb is a function (cb), which cannot be stored');
    expect(await scene.DBOS.listWorkflowSteps('w')).toEqual([]);
  });

  test.each<[string, (scene: Scene) => Promise<unknown>]>([
    ['of a start', ({ DBOS, take }) => DBOS.startWorkflow(take, { workflowAttributes: { a: { cb: () => 1 } } })(1)],
    [
      'by name',
      ({ client }) => client.enqueue({ workflowName: 'take', queueName: 'q', attributes: { a: { cb: () => 1 } } }),
    ],
    ['that change', ({ DBOS }) => DBOS.updateWorkflowAttributes('w', { a: { cb: () => 1 } })],
    ['that are set', ({ DBOS }) => DBOS.setWorkflowAttributes('w', { a: { cb: () => 1 } })],
  ])('in attributes %s it is refused', async (_, call) => {
    const scene = await setup();

    await expect(call(scene)).rejects.toThrow('attributes.a.cb must be a JSON value, but is a function.');
    expect(await scene.DBOS.listWorkflows({})).toEqual([]);
  });

  test('with lostValues "ignore" it is stored without, as in DBOS', async () => {
    const { DBOS } = await createEngine(dialect, { lostValues: 'ignore' });
    const keys = DBOS.registerWorkflow((value: object) => Promise.resolve(JSON.stringify(value)), { name: 'keys' });
    await DBOS.launch();

    expect(await keys({ a: { cb: () => 1, b: 2 }, m: new WeakMap() })).toBe('{"a":{"b":2},"m":{}}');
  });
});
