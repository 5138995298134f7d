import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

interface Family {
  readonly child: (x: number) => Promise<number>;
  readonly other: () => Promise<string>;
}

forEachDialect((dialect) => {
  /** A launched engine with a parent that runs `body` under the ID "p", and a child that doubles. */
  async function setup<R>(body: (DBOS: DBOSInstance, child: (x: number) => Promise<number>) => Promise<R>) {
    const { DBOS } = await createEngine(dialect);
    const child = DBOS.registerWorkflow(async (x: number) => x * 2, { name: 'child' });
    const parent = DBOS.registerWorkflow(() => body(DBOS, child), { name: 'parent' });
    await DBOS.launch();
    const run = async (): Promise<R> => (await DBOS.startWorkflow(parent, { workflowID: 'p' })()).getResult();
    const steps = async () =>
      (await DBOS.listWorkflowSteps('p'))!.map((step) => [step.functionID, step.name, step.childWorkflowID]);
    return { DBOS, parent, run, steps };
  }

  describe('a child that is called', () => {
    test('takes two numbers: its start and its result', async () => {
      const { DBOS, run, steps } = await setup(async (DBOS, child) => {
        const doubled = await child(4);
        await DBOS.runStep(async () => 0, { name: 'after' });
        return doubled;
      });

      const result = await run();

      expect(result).toBe(8);
      expect(await steps()).toEqual([
        [0, 'child', 'p-0'],
        [1, 'DBOS.getResult', 'p-0'],
        [2, 'after', null],
      ]);
      expect(await DBOS.listWorkflowSteps('p')).toMatchObject([{ output: null }, { output: 8 }, {}]);
    });

    test('knows its parent', async () => {
      const { DBOS, run } = await setup((_, child) => child(1));

      await run();

      expect(await DBOS.getWorkflowStatus('p-0')).toMatchObject({ parentWorkflowID: 'p', status: 'SUCCESS' });
      expect((await DBOS.getWorkflowStatus('p'))?.parentWorkflowID).toBeUndefined();
    });

    test('throws its error into the parent, which may catch it', async () => {
      const { DBOS } = await createEngine(dialect);
      const child = DBOS.registerWorkflow(
        async () => Promise.reject(Object.assign(new Error('child failed'), { code: 'E_CHILD' })),
        { name: 'child' },
      );
      const parent = DBOS.registerWorkflow(
        async () => {
          const caught = await failureOf(child());
          return [caught.message, caught.code];
        },
        { name: 'parent' },
      );
      await DBOS.launch();

      const result = await DBOS.withNextWorkflowID('p', () => parent());

      expect(result).toEqual(['child failed', 'E_CHILD']);
      expect((await DBOS.listWorkflowSteps('p'))![1]).toMatchObject({
        name: 'DBOS.getResult',
        error: { message: 'child failed', code: 'E_CHILD' },
      });
    });

    test('of children called at the same time each gets its numbers in the order of the code', async () => {
      const { run, steps } = await setup((_, child) => Promise.all([child(1), child(2)]));

      expect(await run()).toEqual([2, 4]);
      expect(await steps()).toEqual([
        [0, 'child', 'p-0'],
        [1, 'DBOS.getResult', 'p-0'],
        [2, 'child', 'p-2'],
        [3, 'DBOS.getResult', 'p-2'],
      ]);
    });
  });

  describe('a child that is started', () => {
    test('takes one number, and another when its result is asked for', async () => {
      const { run, steps } = await setup(async (DBOS, child) => {
        const handle = await DBOS.startWorkflow(child)(5);
        await DBOS.runStep(async () => 0, { name: 'between' });
        return [handle.workflowID, await handle.getResult()];
      });

      expect(await run()).toEqual(['p-0', 10]);
      expect(await steps()).toEqual([
        [0, 'child', 'p-0'],
        [1, 'between', null],
        [2, 'DBOS.getResult', 'p-0'],
      ]);
    });

    test('has its status recorded under a number of its own', async () => {
      const { run, steps } = await setup(async (DBOS, child) => {
        const handle = await DBOS.startWorkflow(child)(5);
        await handle.getResult();
        return [(await handle.getStatus())?.status, (await DBOS.getWorkflowStatus('nobody')) === null];
      });

      expect(await run()).toEqual(['SUCCESS', true]);
      expect((await steps()).map(([, name]) => name)).toEqual(['child', 'DBOS.getResult', 'getStatus', 'getStatus']);
    });

    test('is created in one commit with the record of its parent', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const seen: unknown[] = [];
      const child = DBOS.registerWorkflow(
        async () => {
          seen.push((await DBOS.runStep(() => DBOS.listWorkflowSteps('p')))?.map((step) => step.childWorkflowID));
        },
        { name: 'child' },
      );
      const parent = DBOS.registerWorkflow(
        async () => {
          await DBOS.startWorkflow(child)();
          await halt.here();
        },
        { name: 'parent' },
      );
      await DBOS.launch();
      await DBOS.startWorkflow(parent, { workflowID: 'p' })();

      await until(() => seen.length > 0);

      expect(seen).toEqual([['p-0']]);
      halt.release();
    });

    test('lives on when its parent has ended', async () => {
      const halt = newHalt();
      const { DBOS } = await createEngine(dialect);
      const child = DBOS.registerWorkflow(
        async () => {
          await halt.here();
          return 'late';
        },
        { name: 'child' },
      );
      const parent = DBOS.registerWorkflow(() => DBOS.startWorkflow(child)(), { name: 'parent' });
      await DBOS.launch();
      const handle = await parent();

      halt.release();

      expect(await handle.getResult()).toBe('late');
    });
  });

  describe('an ID for a child', () => {
    test('can be given', async () => {
      const { run, steps } = await setup(async (DBOS, child) => [
        await DBOS.withNextWorkflowID('mine', () => child(1)),
        (await DBOS.startWorkflow(child, { workflowID: 'yours' })(1)).workflowID,
      ]);

      expect(await run()).toEqual([2, 'yours']);
      expect(await steps()).toEqual([
        [0, 'child', 'mine'],
        [1, 'DBOS.getResult', 'mine'],
        [2, 'child', 'yours'],
      ]);
    });

    test('of a workflow that exists gives that workflow', async () => {
      const { DBOS, run, steps } = await setup((DBOS, child) => DBOS.withNextWorkflowID('shared', () => child(1)));
      const other = DBOS.retrieveWorkflow('shared');

      expect(await run()).toBe(2);
      expect(await DBOS.getWorkflowStatus(other.workflowID)).toMatchObject({ parentWorkflowID: 'p' });
      expect(await steps()).toEqual([
        [0, 'child', 'shared'],
        [1, 'DBOS.getResult', 'shared'],
      ]);
    });
  });

  describe('after a recovery', () => {
    /** Two generations of a parent that runs `body`; the first halts after it. */
    async function setupReplay<R>(
      body: (DBOS: DBOSInstance, child: (x: number) => Promise<number>) => Promise<R>,
      prepare: (DBOS: DBOSInstance, family: Family) => Promise<unknown> = async () => {},
    ) {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const calls: string[] = [];
      const register = (DBOS: DBOSInstance) => {
        const child = DBOS.registerWorkflow(
          async (x: number) => {
            calls.push(DBOS.workflowID ?? '');
            return x * 2;
          },
          { name: 'child' },
        );
        const other = DBOS.registerWorkflow(async () => 'other', { name: 'other' });
        const parent = DBOS.registerWorkflow(
          async () => {
            const result = await body(DBOS, child);
            if (DBOS === first) await halt.here();
            return result;
          },
          { name: 'parent' },
        );
        return { child, other, parent };
      };
      const family = register(first);
      register(second);
      await first.launch();
      await prepare(first, family);
      await first.startWorkflow(family.parent, { workflowID: 'p' })();
      await halt.reached;
      await first.shutdown();
      await second.launch();
      return { DBOS: second, calls, result: second.retrieveWorkflow<R>('p').getResult() };
    }

    test('the start of a child gives the same child', async () => {
      const { calls, result } = await setupReplay(async (DBOS, child) => {
        const handle = await DBOS.startWorkflow(child)(3);
        return [handle.workflowID, await handle.getResult()];
      });

      expect(await result).toEqual(['p-0', 6]);
      expect(calls).toEqual(['p-0']);
    });

    test('the result of a called child is not computed again', async () => {
      const { calls, result } = await setupReplay((_, child) => child(3));

      expect(await result).toBe(6);
      expect(calls).toEqual(['p-0']);
    });

    test('a child under an ID of its own is found again', async () => {
      const { calls, result } = await setupReplay((DBOS, child) => DBOS.withNextWorkflowID('mine', () => child(3)));

      expect(await result).toBe(6);
      expect(calls).toEqual(['mine']);
    });

    test('a child that was refused because its ID is in use is refused again', async () => {
      const { DBOS, result } = await setupReplay(
        async (DBOS, child) => {
          const params = { workflowID: 'taken', workflowIDReusePolicy: 'reject' } as const;
          const refused = await failureOf(DBOS.startWorkflow(child, params)(1));
          return [refused.code, await DBOS.runStep(async () => 'after', { name: 'after' })];
        },
        async (DBOS, { child }) => (await DBOS.startWorkflow(child, { workflowID: 'taken' })(9)).getResult(),
      );

      expect(await result).toEqual(['WORKFLOW_ID_IN_USE', 'after']);
      expect(await DBOS.listWorkflowSteps('p')).toMatchObject([
        { name: 'child', error: { code: 'WORKFLOW_ID_IN_USE' }, childWorkflowID: null },
        { name: 'after' },
      ]);
    });

    test('a child that was created under the reject policy is not refused', async () => {
      const { result } = await setupReplay(async (DBOS, child) => {
        const params = { workflowID: 'mine', workflowIDReusePolicy: 'reject' } as const;
        return (await DBOS.startWorkflow(child, params)(1)).getResult();
      });

      expect(await result).toBe(2);
    });

    test('a child that was refused because its ID is one of another function is refused again', async () => {
      const { result } = await setupReplay(
        async (DBOS, child) => {
          const refused = await failureOf(DBOS.startWorkflow(child, { workflowID: 'taken' })(1));
          return [refused.code, await DBOS.runStep(async () => 'after', { name: 'after' })];
        },
        async (DBOS, { other }) => (await DBOS.startWorkflow(other, { workflowID: 'taken' })()).getResult(),
      );

      expect(await result).toEqual(['CONFLICTING_WORKFLOW', 'after']);
    });
  });

  describe('when the parent is cancelled', () => {
    async function setupFamily() {
      const { DBOS } = await createEngine(dialect);
      const halts = { child: newHalt(), grandchild: newHalt() };
      const grandchild = DBOS.registerWorkflow(
        async () => {
          await DBOS.runStep(() => halts.grandchild.here());
          return 'grandchild';
        },
        { name: 'grandchild' },
      );
      const child = DBOS.registerWorkflow(
        async () => {
          await DBOS.startWorkflow(grandchild)();
          await DBOS.runStep(() => halts.child.here());
          return 'child';
        },
        { name: 'child' },
      );
      const parent = DBOS.registerWorkflow(() => child(), { name: 'parent' });
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(parent, { workflowID: 'p' })();
      await Promise.all([halts.child.reached, halts.grandchild.reached]);
      const statuses = () =>
        Promise.all(['p', 'p-0', 'p-0-0'].map(async (id) => (await DBOS.getWorkflowStatus(id))?.status));
      const release = () => {
        halts.child.release();
        halts.grandchild.release();
      };
      return { DBOS, handle, statuses, release };
    }

    test('the children go on', async () => {
      const { DBOS, handle, statuses, release } = await setupFamily();

      await DBOS.cancelWorkflow('p');

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(await statuses()).toEqual(['CANCELLED', 'PENDING', 'PENDING']);
      release();
      expect(await DBOS.retrieveWorkflow('p-0').getResult()).toBe('child');
    });

    test('the children are cancelled as well if wanted, at all levels', async () => {
      const { DBOS, statuses, release } = await setupFamily();

      await DBOS.cancelWorkflow('p', { cancelChildren: true });

      expect(await statuses()).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED']);
      release();
      await expect(DBOS.retrieveWorkflow('p-0-0').getResult()).rejects.toMatchObject({
        code: 'AWAITED_WORKFLOW_CANCELLED',
      });
    });
  });

  test('a cancelled child is an error of the parent that waits for it', async () => {
    const { DBOS } = await createEngine(dialect);
    const halt = newHalt();
    const child = DBOS.registerWorkflow(() => DBOS.runStep(() => halt.here()), { name: 'child' });
    const parent = DBOS.registerWorkflow(() => child(), { name: 'parent' });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(parent, { workflowID: 'p' })();
    await halt.reached;
    await DBOS.cancelWorkflow('p-0');

    halt.release();

    await expect(handle.getResult()).rejects.toMatchObject({ code: 'AWAITED_WORKFLOW_CANCELLED', workflowID: 'p-0' });
    expect(await DBOS.getWorkflowStatus('p')).toMatchObject({
      status: 'ERROR',
      error: { code: 'AWAITED_WORKFLOW_CANCELLED', workflowID: 'p-0' },
    });
  });

  test('a cancelled parent starts no child', async () => {
    const halt = newHalt();
    const { DBOS, parent } = await setup(async (_, child) => {
      await halt.here();
      return child(1);
    });
    const handle = await DBOS.startWorkflow(parent, { workflowID: 'p' })();
    await halt.reached;
    await DBOS.cancelWorkflow('p');

    halt.release();

    await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    expect(await DBOS.getWorkflowStatus('p-0')).toBeNull();
  });
});
