// Branches of several operations that run side by side, and what a recovery makes of them.
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import type { DBOSInstance } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

forEachDialect((dialect) => {
  test.each([
    ['Promise.all', 1],
    ['DBOS.parallel', 0],
  ] as const)('a recovery warns of branches that may get the results of each other: %s', async (kind, warnings) => {
    const clock = new ManualClock();
    const warned: unknown[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warned.push(entry) };
    const { first, second } = await createGenerations(dialect, { logger }, clock.settings);
    const slow = newHalt();
    const register = (DBOS: DBOSInstance) => {
      const step = async (name: string, who: string) => {
        if (who === 'alice' && name === 'quote') await slow.here();
        else clock.advance(1);
      };
      return DBOS.registerWorkflow(
        async () => {
          const branches = ['alice', 'bob'].map((who) => async () => {
            for (const name of ['quote', 'pay']) await DBOS.runStep(() => step(name, who), { name });
          });
          if (kind === 'Promise.all') await Promise.all(branches.map((branch) => branch()));
          else await DBOS.parallel(branches);
          await DBOS.runStep(() => (DBOS === first ? new Promise<void>(() => {}) : Promise.resolve()), { name: 'end' });
        },
        { name: 'buy' },
      );
    };
    const buy = register(first);
    register(second);
    await first.launch();
    await first.startWorkflow(buy, { workflowID: 'w' })();
    const steps = async () => (await first.listWorkflowSteps('w')) ?? [];
    await until(async () => (await steps()).length === 2);
    clock.advance(10);
    slow.release();
    await until(async () => (await steps()).length === 4);
    await first.shutdown();
    warned.length = 0;

    await second.launch();

    await second.retrieveWorkflow('w').getResult();
    expect(warned.filter((entry) => String(entry).includes('DBOS.parallel'))).toHaveLength(warnings);
  });

  describe('DBOS.parallel', () => {
    test('branches of several steps keep their own results after a recovery', async () => {
      const { first, second } = await createGenerations(dialect);
      const slow = newHalt();
      const register = (DBOS: DBOSInstance, isFirst: boolean) => {
        const quote = DBOS.registerStep(
          async (who: string) => {
            if (isFirst && who === 'alice') await slow.here();
            return `quote for ${who}`;
          },
          { name: 'quote' },
        );
        const pay = DBOS.registerStep(async (what: string) => `paid ${what}`, { name: 'pay' });
        return DBOS.registerWorkflow(
          async () => {
            const branches = ['alice', 'bob'].map((who) => async () => `${who}: ${await pay(await quote(who))}`);
            const paid = await DBOS.parallel(branches);
            await DBOS.runStep(() => (isFirst ? new Promise<void>(() => {}) : Promise.resolve()), { name: 'after' });
            return paid;
          },
          { name: 'buy' },
        );
      };
      const buy = register(first, true);
      register(second, false);
      await first.launch();
      await first.startWorkflow(buy, { workflowID: 'w' })();
      const steps = async () => (await first.listWorkflowSteps('w')) ?? [];
      // Bob is done with both before Alice has her first.
      await until(async () => (await steps()).length === 2);
      slow.release();
      await until(async () => (await steps()).length === 4);
      await first.shutdown();

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toEqual([
        'alice: paid quote for alice',
        'bob: paid quote for bob',
      ]);
    });

    test('each branch has a block of numbers, and so have branches inside it', async () => {
      const { DBOS } = await createEngine(dialect);
      const step = DBOS.registerStep((name: string) => Promise.resolve(name), { name: 'step' });
      const workflow = DBOS.registerWorkflow(
        async () => {
          await step('before');
          const results = await DBOS.parallel(
            [
              async () => [await step('a1'), await step('a2')],
              () => DBOS.parallel([() => step('b1'), () => step('b2')], { stepsPerBranch: 3 }),
            ],
            { stepsPerBranch: 10 },
          );
          await step('after');
          return results;
        },
        { name: 'workflow' },
      );
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

      expect(await handle.getResult()).toEqual([
        ['a1', 'a2'],
        ['b1', 'b2'],
      ]);
      const steps = (await DBOS.listWorkflowSteps('w')) ?? [];
      expect(steps.map(({ functionID, output }) => [functionID, output])).toEqual([
        [0, 'before'],
        [1, 'a1'],
        [2, 'a2'],
        [11, 'b1'],
        [14, 'b2'],
        [21, 'after'],
      ]);
    });

    test('throws the error of the first failed branch in the list, once all have settled', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const ended: string[] = [];
      const workflow = DBOS.registerWorkflow(
        () =>
          DBOS.parallel([
            async () => {
              await DBOS.runStep(() => halt.here(), { name: 'slow' });
              ended.push('slow');
              throw new Error('slow');
            },
            async () => {
              ended.push('fast');
              halt.release();
              throw new Error('fast');
            },
          ]),
        { name: 'workflow' },
      );
      await DBOS.launch();

      expect(await failureOf(workflow())).toMatchObject({ message: 'slow' });
      expect(ended).toEqual(['fast', 'slow']);
    });

    test('a branch with more operations than it has numbers fails', async () => {
      const { DBOS } = await createEngine(dialect);
      const step = DBOS.registerStep(() => Promise.resolve(), { name: 'step' });
      const workflow = DBOS.registerWorkflow(
        () => DBOS.parallel([async () => [await step(), await step(), await step()]], { stepsPerBranch: 2 }),
        { name: 'workflow' },
      );
      await DBOS.launch();

      expect(await failureOf(workflow())).toMatchObject({ message: expect.stringContaining('stepsPerBranch') });
    });

    test('a child that is started in a branch has numbers of its own', async () => {
      const { DBOS } = await createEngine(dialect);
      const step = DBOS.registerStep(() => Promise.resolve(1), { name: 'step' });
      const child = DBOS.registerWorkflow(() => step(), { name: 'child' });
      const workflow = DBOS.registerWorkflow(() => DBOS.parallel([() => child()], { stepsPerBranch: 2 }), {
        name: 'workflow',
      });
      await DBOS.launch();

      await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

      expect(await DBOS.listWorkflowSteps('w-0')).toMatchObject([{ functionID: 0, name: 'step' }]);
    });

    test('runs the functions outside of workflows too', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();

      expect(await DBOS.parallel([() => Promise.resolve(1), () => Promise.resolve('b')])).toEqual([1, 'b']);
    });
  });
});
