import { describe, expect, test } from 'vitest';
import type { WorkflowHandle } from '../../src/index.js';
import { forEachDialect, hasPush } from '../rig/dialects.js';
import { connect } from '../faces/client/scene.js';
import { createEngine } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

forEachDialect((dialect) => {
  /** A launched engine with a workflow that ends as its argument says, or only when it is let go. */
  async function setup(clock?: ManualClock) {
    const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1' }, clock?.settings);
    const halt = newHalt();
    const begun: (string | undefined)[] = [];
    const end = DBOS.registerWorkflow(
      async (how: 'well' | 'badly' | 'late') => {
        begun.push(DBOS.workflowID);
        if (how === 'late') await halt.here();
        if (how === 'badly') throw Object.assign(new RangeError('ended badly'), { code: 'E_BAD' });
        return `ended ${how}`;
      },
      { name: 'end' },
    );
    const observe = DBOS.registerWorkflow((look: string) => looks[look]?.() ?? Promise.reject(new Error(look)), {
      name: 'observe',
    });
    const looks: Record<string, () => Promise<unknown>> = {};
    await DBOS.launch();
    /** Runs the code as a workflow with the ID "o". */
    const inWorkflow = async <R>(body: () => Promise<R>): Promise<R> => {
      looks['now'] = body;
      return (await DBOS.startWorkflow(observe, { workflowID: 'o' })('now')).getResult() as Promise<R>;
    };
    const start = (workflowID: string, how: 'well' | 'badly' | 'late') => DBOS.startWorkflow(end, { workflowID })(how);
    const stepNames = async () => (await DBOS.listWorkflowSteps('o'))!.map(({ name }) => name);
    return { DBOS, url, halt, begun, start, inWorkflow, stepNames };
  }

  describe('a handle', () => {
    test('gives the result as often as it is asked', async () => {
      const { start } = await setup();
      const handle = await start('w', 'well');

      expect(await Promise.all([handle.getResult(), handle.getResult()])).toEqual(['ended well', 'ended well']);
      expect(await handle.getResult({ pollingIntervalMs: 5 })).toBe('ended well');
    });

    test('that was retrieved gives the result and the error as the first one does', async () => {
      const { DBOS, start } = await setup();
      await start('good', 'well');
      await start('bad', 'badly');

      expect(await DBOS.retrieveWorkflow('good').getResult()).toBe('ended well');
      await expect(DBOS.retrieveWorkflow('bad').getResult()).rejects.toMatchObject({
        name: 'RangeError',
        message: 'ended badly',
        code: 'E_BAD',
      });
    });

    test('of a workflow that does not exist yet waits for it', async () => {
      const { DBOS, start } = await setup();
      const handle = DBOS.retrieveWorkflow('later');
      const result = handle.getResult();
      expect(await handle.getStatus()).toBeNull();

      await start('later', 'well');

      expect(await result).toBe('ended well');
    });

    test('gives the arguments', async () => {
      const { DBOS, start } = await setup();
      await start('w', 'well');

      expect(await DBOS.retrieveWorkflow('w').getWorkflowInputs()).toEqual(['well']);
    });

    test('can be an argument and a result of workflows', async () => {
      const { DBOS } = await createEngine(dialect);
      const source = DBOS.registerWorkflow(async () => 'water', { name: 'source' });
      const relay = DBOS.registerWorkflow(
        async (given: WorkflowHandle<string>) => ({ given, text: await given.getResult() }),
        { name: 'relay' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(source, { workflowID: 's' })();

      const { given, text } = await relay(handle);

      expect(text).toBe('water');
      expect([given.workflowID, await given.getResult(), (await given.getStatus())?.status]).toEqual([
        's',
        'water',
        'SUCCESS',
      ]);
    });

    test.each([0, -1, NaN, Infinity])('refuses to look every %d ms', async (pollingIntervalMs) => {
      const { DBOS, start } = await setup();
      const handle = await start('w', 'well');
      const message = 'pollingIntervalMs must be a positive finite number';

      await expect(handle.getResult({ pollingIntervalMs })).rejects.toThrow(message);
      await expect(DBOS.getResult('w', { pollingIntervalMs })).rejects.toThrow(message);
      await expect(DBOS.waitFirst([handle], { pollingIntervalMs })).rejects.toThrow(message);
      await expect(DBOS.waitAll([handle], { pollingIntervalMs })).rejects.toThrow(message);
    });
  });

  describe('DBOS.getResult', () => {
    test('gives the result and the error of a workflow', async () => {
      const { DBOS, start } = await setup();
      await start('good', 'well');
      await start('bad', 'badly');

      expect(await DBOS.getResult('good')).toBe('ended well');
      await expect(DBOS.getResult('bad', 3600)).rejects.toMatchObject({ code: 'E_BAD' });
    });

    test('gives null when the timeout in seconds is over', async () => {
      const clock = new ManualClock();
      const { DBOS, start } = await setup(clock);
      await start('w', 'late');
      const results: unknown[] = [];
      const waiting = [DBOS.getResult('w', 12.345), DBOS.getResult('w', { timeoutSeconds: 12.345 })];
      for (const result of waiting) void result.then((value) => results.push(value));
      await clock.untilArmed(12_345);
      clock.advance(12_344);
      await new Promise((resolve) => setImmediate(resolve));
      expect(results).toEqual([]);

      clock.advance(1);

      await Promise.all(waiting);
      expect(results).toEqual([null, null]);
    });

    test('takes a point in time, which wins over a timeout', async () => {
      const clock = new ManualClock();
      const { DBOS, start } = await setup(clock);
      await start('w', 'late');
      const result = DBOS.getResult('w', { timeoutSeconds: 1, deadlineEpochMS: clock.now() + 54_321 });
      await clock.untilArmed(54_321);

      clock.advance(54_321);

      expect(await result).toBeNull();
    });

    test('leaves no timer behind when the result is there in time', async () => {
      const clock = new ManualClock();
      const { DBOS, start } = await setup(clock);
      await start('w', 'well');

      expect(await DBOS.getResult('w', 12.345)).toBe('ended well');
      expect(clock.isArmed(12_345)).toBe(false);
    });

    test('gives the result of a workflow that has ended, however short the timeout', async () => {
      const { DBOS, start } = await setup();
      await (await start('w', 'well')).getResult();

      expect(await DBOS.getResult('w', 0)).toBe('ended well');
      expect(await DBOS.getResult('w', { deadlineEpochMS: 1 })).toBe('ended well');
      expect(await DBOS.getResult('nobody', 0)).toBeNull();
    });

    test('in a workflow takes one number, and two with a timeout: the timer first', async () => {
      const { DBOS, start, inWorkflow, stepNames } = await setup();
      await start('w', 'well');

      const results = await inWorkflow(async () => [await DBOS.getResult('w'), await DBOS.getResult('w', 3600)]);

      expect(results).toEqual(['ended well', 'ended well']);
      expect(await stepNames()).toEqual(['DBOS.getResult', 'DBOS.sleep', 'DBOS.getResult']);
      expect(await DBOS.listWorkflowSteps('o')).toMatchObject([
        { childWorkflowID: 'w', output: 'ended well' },
        { childWorkflowID: null },
        { childWorkflowID: 'w', output: 'ended well' },
      ]);
    });

    test('in a workflow records that the time was up', async () => {
      const clock = new ManualClock();
      const { DBOS, start, inWorkflow } = await setup(clock);
      await start('w', 'late');
      const result = inWorkflow(() => DBOS.getResult('w', 12.345));
      await clock.untilArmed(12_345);

      clock.advance(12_345);

      expect(await result).toBeNull();
      expect(await DBOS.listWorkflowSteps('o')).toMatchObject([
        { name: 'DBOS.sleep', output: clock.now() },
        { name: 'DBOS.getResult', output: null, error: null },
      ]);
    });
  });

  describe('an error', () => {
    test('is revived for another process with its name, code, fields and cause', async () => {
      const { first, second } = await createGenerations(dialect);
      class OutOfStock extends Error {
        override readonly name = 'OutOfStock';
        readonly code = 'OUT_OF_STOCK';
        constructor(readonly item: string) {
          super(`no ${item} left`, { cause: new TypeError('empty shelf') });
        }
      }
      const buy = first.registerWorkflow(async () => Promise.reject(new OutOfStock('tea')), { name: 'buy' });
      await first.launch();
      await second.launch();
      await first.startWorkflow(buy, { workflowID: 'w' })();

      const error = await failureOf(second.retrieveWorkflow('w').getResult());

      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({ name: 'OutOfStock', code: 'OUT_OF_STOCK', message: 'no tea left', item: 'tea' });
      expect(error.cause).toMatchObject({ name: 'TypeError', message: 'empty shelf' });
    });

    test('that is no Error is given as it was thrown', async () => {
      const { DBOS } = await createEngine(dialect);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- What users do.
      const fail = DBOS.registerWorkflow(async () => Promise.reject({ reason: 7 }), { name: 'fail' });
      await DBOS.launch();

      await failureOf(DBOS.withNextWorkflowID('w', () => fail()));

      await expect(DBOS.retrieveWorkflow('w').getResult()).rejects.toEqual({ reason: 7 });
    });

    test('of a workflow is seen by a workflow that asks for its status', async () => {
      const { DBOS, start, inWorkflow } = await setup();
      await failureOf((await start('w', 'badly')).getResult());

      const status = await inWorkflow(() => DBOS.getWorkflowStatus('w'));

      expect(status).toMatchObject({
        status: 'ERROR',
        workflowName: 'end',
        input: ['badly'],
        error: { name: 'RangeError', message: 'ended badly' },
      });
    });
  });

  test('a status that is read in a workflow keeps the types of its values', async () => {
    const { DBOS } = await createEngine(dialect);
    const give = DBOS.registerWorkflow(async (at: Date) => new Map([[1n, at]]), { name: 'give' });
    const look = DBOS.registerWorkflow(() => DBOS.getWorkflowStatus('w'), { name: 'look' });
    await DBOS.launch();
    await DBOS.withNextWorkflowID('w', () => give(new Date(5)));

    const status = await look();

    expect(status?.input).toEqual([new Date(5)]);
    expect(status?.output).toEqual(new Map([[1n, new Date(5)]]));
  });

  describe('waitFirst', () => {
    test('gives the handle of the first workflow to end', async () => {
      const { DBOS, start, halt } = await setup();
      const handles = [await start('slow', 'late'), await start('quick', 'well')];

      const first = await DBOS.waitFirst(handles);

      expect(first).toBe(handles[1]);
      halt.release();
    });

    test('counts one that fails or is cancelled as ended', async () => {
      const { DBOS, start, halt } = await setup();
      const slow = await start('slow', 'late');
      const failing = await start('failing', 'badly');
      expect((await DBOS.waitFirst([slow, failing])).workflowID).toBe('failing');
      const cancelled = await start('cancelled', 'late');
      await DBOS.cancelWorkflow('cancelled');

      expect((await DBOS.waitFirst([slow, cancelled])).workflowID).toBe('cancelled');
      halt.release();
    });

    test('gives the one that ended first, wherever it is in the list', async () => {
      const clock = new ManualClock();
      const { DBOS, url, start, inWorkflow } = await setup(clock);
      const ended: WorkflowHandle<unknown>[] = [];
      for (const workflowID of ['first', 'second', 'third']) {
        ended.unshift(await start(workflowID, 'well'));
        await ended[0]?.getResult();
        clock.advance(1000);
      }
      const client = await connect(url);

      expect((await DBOS.waitFirst(ended)).workflowID).toBe('first');
      expect((await client.waitFirst(ended)).workflowID).toBe('first');
      expect(await inWorkflow(async () => (await DBOS.waitFirst(ended.slice(0, 2))).workflowID)).toBe('second');
    });

    test('in a workflow takes one number and records the winner', async () => {
      const { DBOS, start, halt, inWorkflow } = await setup();
      await start('slow', 'late');
      await start('quick', 'well');

      const winner = await inWorkflow(async () => {
        const first = await DBOS.waitFirst([DBOS.retrieveWorkflow('slow'), DBOS.retrieveWorkflow('quick')]);
        return first.workflowID;
      });

      expect(winner).toBe('quick');
      expect(await DBOS.listWorkflowSteps('o')).toMatchObject([{ name: 'DBOS.waitFirst', output: 'quick' }]);
      halt.release();
    });

    test('refuses no handles and the same workflow twice', async () => {
      const { DBOS, start } = await setup();
      const handle = await start('w', 'well');

      await expect(DBOS.waitFirst([])).rejects.toThrow('handles must not be empty');
      await expect(DBOS.waitFirst([handle, DBOS.retrieveWorkflow('w')])).rejects.toThrow(
        'Duplicate workflow ID in waitFirst: w',
      );
    });
  });

  describe('waitAll', () => {
    test('gives the same handles when all have ended, however they have', async () => {
      const { DBOS, start, halt } = await setup();
      const handles = [await start('slow', 'late'), await start('failing', 'badly'), await start('quick', 'well')];
      let isOver = false;
      const all = DBOS.waitAll(handles).finally(() => (isOver = true));
      await DBOS.waitAll(handles.slice(1));
      expect(isOver).toBe(false);

      halt.release();

      expect(await all).toEqual(handles);
    });

    test('in a workflow takes one number, or none without handles', async () => {
      const { DBOS, start, inWorkflow, stepNames } = await setup();
      await start('a', 'well');
      await start('b', 'badly');

      const ids = await inWorkflow(async () => {
        await DBOS.waitAll([]);
        const handles = await DBOS.waitAll([DBOS.retrieveWorkflow('a'), DBOS.retrieveWorkflow('b')]);
        return handles.map((handle) => handle.workflowID);
      });

      expect(ids).toEqual(['a', 'b']);
      expect(await stepNames()).toEqual(['DBOS.waitAll']);
    });
  });

  describe('across two engines', () => {
    test.skipIf(!hasPush)('a waiter hears of the end at once, without looking again by itself', async () => {
      const { DBOS, url, start, halt, begun } = await setup();
      await start('w', 'late');
      await start('signal', 'late');
      await DBOS.cancelWorkflow('signal');
      // The waiter's clock hardly moves, so that its own time to look never comes.
      const clock = new ManualClock(Date.now());
      const config = { systemDatabaseUrl: url, applicationVersion: 'v1' };
      const { DBOS: waiter } = await createEngine(dialect, config, { clock });
      await waiter.launch();
      const waiting = [
        waiter.retrieveWorkflow('w').getResult(),
        waiter.getResult('w'),
        waiter.waitFirst([waiter.retrieveWorkflow('w')]).then(({ workflowID }) => workflowID),
      ];
      // Messages arrive in their order: when this one has, so has the word that somebody waits.
      await waiter.resumeWorkflow('signal');
      await until(() => {
        // The pause between two rounds of notifications.
        clock.advance(clock.isArmed(2) ? 2 : 0);
        return begun.filter((id) => id === 'signal').length === 2;
      });

      halt.release();
      await until(async () => (await DBOS.getWorkflowStatus('w'))?.status === 'SUCCESS');
      if (dialect.name === 'sqlite') clock.advance(20);

      expect(await Promise.all(waiting)).toEqual(['ended late', 'ended late', 'w']);
    });
  });
});
