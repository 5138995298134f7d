import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { describe, expect, inject, test } from 'vitest';
import { ConfiguredInstance, createDBOS, type DBOSInstance } from '../../../src/index.js';
import { createGenerations, failureOf, newHalt } from '../../run/succession.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import type * as decorated from './decorated.js';

/** The application, compiled for one kind of decorators. */
async function compile(kind: 'standard' | 'legacy'): Promise<typeof decorated> {
  const source = readFileSync(new URL('./decorated.ts', import.meta.url), 'utf8');
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: kind === 'legacy',
    },
  });
  const path = join(inject('folder'), `decorated-${kind}.mjs`);
  writeFileSync(path, outputText);
  return (await import(pathToFileURL(path).href)) as typeof decorated;
}

describe.each(['standard', 'legacy'] as const)('with %s decorators', (kind) => {
  test('two workflows of one class cannot have one name', async () => {
    const { defineDuplicate } = await compile(kind);

    const error = await failureOf((async () => defineDuplicate(createDBOS()))());

    expect(error).toMatchObject({ code: 'CONFLICTING_REGISTRATION' });
    expect(error.message).toContain('Operation (Name: Twice.same) is already registered.');
  });

  forEachDialect((dialect) => {
    async function setup() {
      const { DBOS } = await createEngine(dialect);
      const { defineApplication } = await compile(kind);
      DBOS.registerWorkflow(async () => 'free', { name: 'order' });
      const application = defineApplication(DBOS, ConfiguredInstance);
      return { DBOS, ...application };
    }

    test('static workflows and steps are called like any method', async () => {
      const { DBOS, Shop, calls } = await setup();
      await DBOS.launch();

      const result = await DBOS.withNextWorkflowID('w', () => Shop.order('tea'));

      expect(result).toBe('packed tea in Ulm');
      expect(calls).toEqual(['pack tea']);
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({
        workflowName: 'order',
        workflowClassName: 'CornerShop',
        workflowConfigName: '',
      });
      expect(await DBOS.listWorkflowSteps('w')).toMatchObject([{ name: 'pack', output: 'packed tea' }]);
    });

    test('static workflows can be started, and have the names that were given', async () => {
      const { DBOS, Shop } = await setup();
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(Shop).sell('tea');

      expect(await handle.getResult()).toBe('sold tea');
      expect(await handle.getStatus()).toMatchObject({ workflowName: 'vend', workflowClassName: 'CornerShop' });
      expect(Shop.sell.name).toBe('vend');
    });

    test('roles of methods and classes are required', async () => {
      const { DBOS, Bank } = await setup();
      await DBOS.launch();

      expect(await Bank.look()).toBe('looked');
      await expect((async () => Bank.open())()).rejects.toMatchObject({ code: 'NOT_AUTHORIZED' });
      await expect((async () => Bank.order())()).rejects.toMatchObject({ code: 'NOT_AUTHORIZED' });
      await DBOS.withAuthedContext('ann', ['clerk', 'owner'], async () => {
        expect(await Bank.open()).toBe('opened by owner');
        expect(await Bank.order()).toBe('ordered by clerk');
      });
    });

    test('instance workflows run on their instance', async () => {
      const { DBOS, Machine, calls } = await setup();
      const [one, two] = [new Machine('one'), new Machine('two')];
      await DBOS.launch();

      const result = await one.brew(2);
      const handle = await DBOS.startWorkflow(two).brew(3);

      expect(result).toBe('2 cups, one is hot');
      expect(await handle.getResult()).toBe('3 cups, two is hot');
      expect(await handle.getStatus()).toMatchObject({
        workflowName: 'brew',
        workflowClassName: 'Machine',
        workflowConfigName: 'two',
      });
      expect(calls).toEqual(['initialize one', 'initialize two', 'heat one', 'heat two']);
    });

    test('a recovery finds the instance by its class and name', async () => {
      const { first, second } = await createGenerations(dialect);
      const { defineApplication } = await compile(kind);
      const halt = newHalt();
      const define = (DBOS: DBOSInstance, stop?: () => Promise<void>) => {
        const { Machine, calls } = defineApplication(DBOS, ConfiguredInstance, stop);
        return { machines: [new Machine('one'), new Machine('two')] as const, calls };
      };
      const { machines } = define(first, () => halt.here());
      const { calls } = define(second);
      await first.launch();
      await first.startWorkflow(machines[1], { workflowID: 'w' }).brew(4);
      await halt.reached;
      await first.shutdown();

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toBe('4 cups, two is hot');
      expect(calls).toEqual(['initialize one', 'initialize two']);
    });

    test('an instance that is created after the launch can be used, and its workflows resumed', async () => {
      const { DBOS, Machine } = await setup();
      await DBOS.launch();

      const machine = new Machine('late');

      expect(await machine.brew(1)).toBe('1 cups, late is hot');
      await DBOS.startWorkflow(machine, { workflowID: 'w', queueName: 'nobody serves' }).brew(2);
      const resumed = await DBOS.resumeWorkflow('w');
      expect(await resumed.getResult()).toBe('2 cups, late is hot');
    });
  });
});
