import { describe, expect, test } from 'vitest';
import { parameterNames } from '../../../src/run/registration/parameter-names.js';
import type { UserFunction } from '../../../src/run/registration/registry.js';
import { registerTransaction } from '../../../src/plugins/transaction/datasource.js';
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

class Plugin {}

describe('what plugins say of functions', () => {
  test('the object of a function, class or parameter is the same each time, and one for each plugin', () => {
    const DBOS = createDBOS();
    const plugin = new Plugin();
    const work = async (first: string, second = 2) => `${first}${second}`;
    class Handlers {}

    const info = DBOS.associateFunctionWithInfo(plugin, work, { name: 'work' });
    const parameter = DBOS.associateParamWithInfo(plugin, work, { name: 'work', param: 'second' });
    const ofClass = DBOS.associateClassWithInfo(Plugin, Handlers);

    expect(DBOS.associateFunctionWithInfo(plugin, work, { name: 'other' })).toBe(info);
    expect(DBOS.associateFunctionWithInfo('plugin', work, {})).not.toBe(info);
    expect(DBOS.associateParamWithInfo(plugin, work, { param: 1 })).toBe(parameter);
    expect(DBOS.associateParamWithInfo(plugin, work, { param: 2 })).toBeUndefined();
    expect(DBOS.associateParamWithInfo(plugin, work, { param: 'third' })).toBeUndefined();
    expect(DBOS.associateClassWithInfo(Plugin, 'Handlers')).toBe(ofClass);
  });

  test('all of it is found by the key of the plugin, whatever was registered first', () => {
    const DBOS = createDBOS();
    const work = async (first: string) => first;
    const info = DBOS.associateFunctionWithInfo('plugin', work, { name: 'work', className: 'Handlers' });
    Object.assign(info, { topic: 'orders' });
    Object.assign(DBOS.associateParamWithInfo('plugin', work, { param: 0 }) ?? {}, { source: 'body' });
    Object.assign(DBOS.associateClassWithInfo('plugin', 'Handlers'), { prefix: '/' });
    const registered = DBOS.registerWorkflow(work, { name: 'work', className: 'Handlers' });
    DBOS.registerStep(async () => {}, { name: 'stranger' });

    const [found, ...others] = DBOS.getAssociatedInfo('plugin');

    expect(others).toEqual([]);
    expect(found).toMatchObject({
      classConfig: { prefix: '/' },
      methodConfig: { topic: 'orders' },
      paramConfig: [{ name: 'first', index: 0, paramConfig: { source: 'body' } }],
      methodReg: { name: 'work', className: 'Handlers', isInstance: false, workflowConfig: {} },
    });
    expect(found?.methodConfig).toBe(info);
    expect(found?.methodReg.registeredFunction).toBe(registered);
    expect(DBOS.getAssociatedInfo('plugin', 'Handlers', 'work')).toHaveLength(1);
    expect(DBOS.getAssociatedInfo('plugin', 'Handlers', 'other')).toEqual([]);
    expect(DBOS.getAssociatedInfo('plugin', 'Others')).toEqual([]);
    expect(DBOS.getAssociatedInfo('other plugin')).toEqual([]);
  });

  test('parameters of transaction functions have one too', () => {
    const DBOS = createDBOS();
    const work = async (first: string) => first;
    const registered = registerTransaction('app', work, { name: 'work' }, DBOS);

    const parameter = DBOS.associateParamWithInfo('plugin', registered, { param: 'first' });

    expect(parameter).toBeDefined();
    expect(DBOS.associateParamWithInfo('plugin', work, { param: 0 })).toBe(parameter);
    const [found] = DBOS.getAssociatedInfo('plugin');
    expect(found?.paramConfig).toEqual([{ name: 'first', index: 0, paramConfig: parameter }]);
  });

  test('a class is found by itself and by an instance, with all its functions', () => {
    const DBOS = createDBOS();
    class Handlers {
      static async one(this: void) {}
      static async two(this: void) {}
    }
    for (const name of ['one', 'two'] as const) DBOS.registerStep(Handlers[name], { name, ctorOrProto: Handlers });
    DBOS.associateClassWithInfo('plugin', Handlers);

    expect(DBOS.getAssociatedInfo('plugin', Handlers).map(({ methodReg }) => methodReg.name)).toEqual(['one', 'two']);
    expect(DBOS.getAssociatedInfo('plugin', new Handlers(), 'two')).toHaveLength(1);
    expect(DBOS.getAssociatedInfo('plugin', Plugin)).toEqual([]);
  });

  test('plugins that take the answer apart find their object and the function in it', () => {
    const DBOS = createDBOS();
    const work = async () => {};

    const { regInfo, registration } = DBOS.associateFunctionWithInfo('plugin', work, { name: 'work' });

    const [found] = DBOS.getAssociatedInfo('plugin');
    expect(regInfo).toBe(found?.methodConfig);
    expect(registration).toBe(found?.methodReg);
    expect(Object.keys(regInfo)).toEqual([]);
    expect(registration.wrappedFunction).toBeUndefined();
  });

  test.each<[string, UserFunction, string[]]>([
    ['none', async () => {}, []],
    ['one without brackets', eval('async order => run(order)') as UserFunction, ['order']],
    ['defaults with brackets and commas', async (a = [1, 2].at(0), b = ')') => void [a, b], ['a', 'b']],
    ['patterns and a rest', async ({ a, b }: { a: 1; b: 2 }, ...rest: 1[]) => void [a, b, rest], ['', 'rest']],
    ['comments', eval('(async function work(a /* , b) */, c) {})') as UserFunction, ['a', 'c']],
  ])('the names of parameters are read from the source: %s', (_, fn, names) => {
    expect(parameterNames(fn)).toEqual(names);
  });

  forEachDialect((dialect) => {
    test('invoke runs a workflow as a workflow, and a plain function behind its interceptors', async () => {
      const { DBOS } = await createEngine(dialect);
      const plain = async (n: number) => n + 1;
      const workflow = DBOS.registerWorkflow(async (n: number) => [n, DBOS.workflowID !== undefined], { name: 'w' });
      DBOS.associateFunctionWithInfo('plugin', plain, { name: 'plain' });
      DBOS.associateFunctionWithInfo('plugin', workflow, {});
      DBOS.registerMiddlewareInstaller({
        installMiddleware: (method) => {
          if (method.name === 'plain') method.addEntryInterceptor((_, [n]) => [(n as number) * 10]);
        },
      });
      await DBOS.launch();

      const [ofWorkflow] = DBOS.getAssociatedInfo('plugin', undefined, 'w');
      const [ofPlain] = DBOS.getAssociatedInfo('plugin', undefined, 'plain');

      expect(await ofWorkflow?.methodReg.invoke(undefined, [1])).toEqual([1, true]);
      expect(await ofPlain?.methodReg.invoke(undefined, [1])).toBe(11);
      const handle = await DBOS.startWorkflow(ofWorkflow?.methodReg.registeredFunction as unknown as typeof workflow, {
        workflowID: 'given',
      })(2);
      expect(await handle.getResult()).toEqual([2, true]);
    });

    test('a plugin keeps a value, and a late one does not replace a recent one', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();
      const name = { service: 'plugin', workflowFnName: 'Class.work', key: 'last' } as const;
      expect(await DBOS.getEventDispatchState('plugin', 'Class.work', 'last')).toBeUndefined();

      const first = await DBOS.upsertEventDispatchState({ ...name, value: 'a', updateSeq: 5n });
      const late = await DBOS.upsertEventDispatchState({ ...name, value: 'b', updateSeq: 4n });

      expect(first).toEqual({ ...name, value: 'a', updateSeq: 5n });
      expect(late).toEqual(first);
      expect(await DBOS.getEventDispatchState('plugin', 'Class.work', 'last')).toEqual(first);
    });

    test('what a launch has begun is ended when a plugin cannot begin', async () => {
      const { DBOS } = await createEngine(dialect);
      const calls: string[] = [];
      DBOS.registerLifecycleCallback({
        initialize: async () => void calls.push('begun'),
        destroy: async () => void calls.push('ended'),
      });
      DBOS.registerLifecycleCallback({
        initialize: () => Promise.reject(new Error('no broker')),
        destroy: async () => void calls.push('ended too'),
      });
      DBOS.registerLifecycleCallback({ destroy: async () => void calls.push('never begun') });

      await expect(DBOS.launch()).rejects.toThrow('no broker');

      expect(calls).toEqual(['begun', 'ended', 'ended too']);
      expect(DBOS.isInitialized()).toBe(false);
    });

    test('a plugin may hand over what it has while it ends', async () => {
      const { DBOS } = await createEngine(dialect);
      const ran: string[] = [];
      const work = DBOS.registerWorkflow(async (what: string) => void ran.push(what), { name: 'work' });
      DBOS.registerLifecycleCallback({ destroy: async () => void (await DBOS.startWorkflow(work)('last message')) });
      await DBOS.launch();

      await DBOS.shutdown({ workflowCompletionTimeoutMS: 5000 });

      expect(ran).toEqual(['last message']);
    });
  });
});
