import { describe, expect, test } from 'vitest';
import { deferred } from '../../src/kernel/base/deferred.js';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import type { StepConfig, StepStatus } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

test.each<[string, StepConfig]>([
  ['timeoutMS', { timeoutMS: 0 }],
  ['timeoutMS', { timeoutMS: Infinity }],
  ['maxAttempts', { maxAttempts: 0 }],
  ['maxAttempts', { maxAttempts: 1.5 }],
  ['intervalSeconds', { intervalSeconds: -1 }],
  ['backoffRate', { backoffRate: 0.5 }],
  ['jitter', { jitter: 2 }],
])('a step whose %s cannot be meant is refused', async (field, config) => {
  const { createDBOS } = await import('../../src/index.js');
  const DBOS = createDBOS();

  expect(() => DBOS.registerStep(async () => 1, { name: 'step', ...config })).toThrow(field);
  await expect(DBOS.runStep(async () => 1, config)).rejects.toThrow(field);
});

forEachDialect((dialect) => {
  /** A launched engine with one workflow, which runs `body`. */
  async function setup<R>(body: (DBOS: DBOSInstance) => Promise<R>, clock?: ManualClock) {
    const { DBOS } = await createEngine(dialect, {}, clock?.settings);
    const workflow = DBOS.registerWorkflow(() => body(DBOS), { name: 'workflow' });
    await DBOS.launch();
    const start = () => DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    return { DBOS, workflow, start };
  }

  /** Two generations of a workflow. The first one halts at the end of `body`; the second one runs through. */
  async function setupReplay<R>(body: (DBOS: DBOSInstance) => Promise<R>) {
    const { first, second } = await createGenerations(dialect);
    const halt = newHalt();
    const workflow = first.registerWorkflow(
      async () => {
        await body(first).catch(() => {});
        return halt.here();
      },
      { name: 'workflow' },
    );
    second.registerWorkflow(() => body(second), { name: 'workflow' });
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    const replay = async (): Promise<R> => {
      await first.shutdown();
      await second.launch();
      return second.retrieveWorkflow<R>('w').getResult();
    };
    return { first, second, replay };
  }

  describe('an outcome', () => {
    test('is recorded and not computed again after a recovery', async () => {
      let calls = 0;
      const { replay } = await setupReplay((DBOS) =>
        DBOS.runStep(async () => ({ call: ++calls, at: new Date(5) }), { name: 'step' }),
      );

      const result = await replay();

      expect(result).toEqual({ call: 1, at: new Date(5) });
      expect(calls).toBe(1);
    });

    test('that is an error is replayed with its name, message and fields', async () => {
      let calls = 0;
      const { replay } = await setupReplay((DBOS) =>
        DBOS.runStep(
          async () => {
            calls += 1;
            throw Object.assign(new RangeError('too far'), { code: 'E_FAR', distance: 7 });
          },
          { name: 'step' },
        ),
      );

      const error = await failureOf(replay());

      expect(error).toMatchObject({ name: 'RangeError', message: 'too far', code: 'E_FAR', distance: 7 });
      expect(calls).toBe(1);
    });

    test('is listed with its number, name and times', async () => {
      const { DBOS, start } = await setup(async (DBOS) => {
        await DBOS.runStep(async () => 'good', { name: 'first' });
        await DBOS.runStep(async () => Promise.reject(new Error('bad')), { name: 'second' }).catch(() => {});
      });
      const before = Date.now();
      await (await start()).getResult();

      const steps = (await DBOS.listWorkflowSteps('w'))!;

      expect(steps).toMatchObject([
        { functionID: 0, name: 'first', output: 'good', error: null, childWorkflowID: null },
        { functionID: 1, name: 'second', output: null, error: { message: 'bad' }, childWorkflowID: null },
      ]);
      for (const { startedAtEpochMs = 0, completedAtEpochMs = 0 } of steps) {
        expect(startedAtEpochMs).toBeGreaterThanOrEqual(before);
        expect(completedAtEpochMs).toBeGreaterThanOrEqual(startedAtEpochMs);
      }
    });

    test('reaches the workflow as a copy', async () => {
      const original = { list: [1] };
      const { start } = await setup(async (DBOS) => {
        const copy = await DBOS.runStep(async () => original, { name: 'step' });
        copy.list.push(2);
        return copy !== original;
      });

      const isCopy = await (await start()).getResult();

      expect(isCopy).toBe(true);
      expect(original).toEqual({ list: [1] });
    });

    test('that cannot be stored becomes the error of the step', async () => {
      const unstorable = {
        get value(): string {
          throw new Error('cannot be read');
        },
      };
      const { DBOS, start } = await setup((DBOS) => DBOS.runStep(async () => unstorable, { name: 'step' }));

      const error = await failureOf((await start()).getResult());

      expect(error.message).toBe('cannot be read');
      const [step] = (await DBOS.listWorkflowSteps('w'))!;
      expect(step).toMatchObject({ name: 'step', output: null, error: { message: error.message } });
    });

    test('that is an instance has stand-ins for its methods that say what happened', async () => {
      class Plant {
        readonly size = 1;
        grow(): number {
          return 2;
        }
      }
      const { start } = await setup(async (DBOS) => {
        const value = await DBOS.runStep(async () => new Plant(), { name: 'step' });
        return [value.size, String(await failureOf((async () => value.grow())()))];
      });

      const [size, failure] = await (await start()).getResult();

      expect(size).toBe(1);
      expect(failure).toContain("Attempted to call 'grow' at path step.grow");
      expect(failure).toContain('DBOS.registerSerialization');
    });

    test('that is undefined stays so after a recovery', async () => {
      const { replay } = await setupReplay(async (DBOS) => ({
        value: await DBOS.runStep(async () => undefined, { name: 'step' }),
      }));

      expect(await replay()).toEqual({ value: undefined });
    });
  });

  describe('where it is called', () => {
    test('a step outside a workflow is a plain call', async () => {
      const { DBOS } = await createEngine(dialect);
      const calls: unknown[] = [];
      const step = DBOS.registerStep(
        async (x: number) => {
          calls.push(DBOS.stepStatus, DBOS.isInStep());
          throw new Error(`failed with ${x}`);
        },
        { name: 'step', retriesAllowed: true },
      );
      await DBOS.launch();

      await expect(step(3)).rejects.toThrow('failed with 3');
      await expect(DBOS.runStep(async () => 4)).resolves.toBe(4);
      expect(calls).toEqual([undefined, false]);
    });

    test('a step outside a workflow does not take the ID that is assigned to the next workflow', async () => {
      const { DBOS } = await createEngine(dialect);
      const step = DBOS.registerStep(async () => 1, { name: 'step' });
      const workflow = DBOS.registerWorkflow(async () => DBOS.workflowID, { name: 'workflow' });
      await DBOS.launch();

      const results = await DBOS.withNextWorkflowID('w', async () => [await step(), await workflow()]);

      expect(results).toEqual([1, 'w']);
    });

    test('a step in a step is a plain call and takes no number', async () => {
      const { DBOS, start } = await setup(async (DBOS) => {
        const inner = await DBOS.runStep(
          async () => {
            const [a, b] = [await DBOS.runStep(async () => 'a'), await DBOS.runStep(async () => DBOS.stepID)];
            return { a, b };
          },
          { name: 'outer' },
        );
        return { ...inner, next: await DBOS.runStep(async () => DBOS.stepID, { name: 'next' }) };
      });

      const result = await (await start()).getResult();

      expect(result).toEqual({ a: 'a', b: 0, next: 1 });
      expect((await DBOS.listWorkflowSteps('w'))!.map((step) => step.name)).toEqual(['outer', 'next']);
    });

    test('operations in a step run directly and take no number', async () => {
      const { DBOS, start } = await setup(async (DBOS) => {
        await DBOS.runStep(
          async () => {
            await DBOS.sleep(1);
            return [await DBOS.now(), await DBOS.randomUUID(), (await DBOS.getWorkflowStatus('w'))?.status];
          },
          { name: 'outer' },
        );
      });

      await (await start()).getResult();

      expect((await DBOS.listWorkflowSteps('w'))!.map((step) => step.name)).toEqual(['outer']);
    });

    test('a workflow cannot be started or retrieved from within a step', async () => {
      const { DBOS } = await createEngine(dialect);
      const child = DBOS.registerWorkflow(async () => 1, { name: 'child' });
      const codes: unknown[] = [];
      const parent = DBOS.registerWorkflow(
        () =>
          DBOS.runStep(async () => {
            for (const attempt of [
              () => child(),
              () => DBOS.startWorkflow(child)(),
              async () => DBOS.retrieveWorkflow('other'),
            ]) {
              codes.push((await failureOf((async () => attempt())())).code);
            }
          }),
        { name: 'parent' },
      );
      await DBOS.launch();

      await parent();

      expect(codes).toEqual(Array(3).fill('INVALID_WORKFLOW_TRANSITION'));
    });

    test('the places are told apart', async () => {
      const places = (DBOS: DBOSInstance) => [DBOS.isWithinWorkflow(), DBOS.isInWorkflow(), DBOS.isInStep()];
      const { DBOS, start } = await setup(async (DBOS) => [
        places(DBOS),
        await DBOS.runStep(async () => places(DBOS), { name: 'step' }),
      ]);

      const [inWorkflow, inStep] = await (await start()).getResult();

      expect(inWorkflow).toEqual([true, true, false]);
      expect(inStep).toEqual([true, false, true]);
      expect(places(DBOS)).toEqual([false, false, false]);
    });

    test('steps at the same time keep the numbers of their order in the code', async () => {
      const gates = [deferred<void>(), deferred<void>(), deferred<void>()];
      const { DBOS, start } = await setup((DBOS) =>
        Promise.all(
          gates.map((gate, index) =>
            DBOS.runStep(
              async () => {
                await gate.promise;
                return index;
              },
              { name: `step ${index}` },
            ),
          ),
        ),
      );
      const handle = await start();
      for (const gate of gates.toReversed()) gate.resolve();

      const results = await handle.getResult();

      expect(results).toEqual([0, 1, 2]);
      const steps = (await DBOS.listWorkflowSteps('w'))!;
      expect(steps.map((step) => [step.functionID, step.name, step.output])).toEqual([
        [0, 'step 0', 0],
        [1, 'step 1', 1],
        [2, 'step 2', 2],
      ]);
    });
  });

  describe('retries', () => {
    test('wait longer each time and end with the first success', async () => {
      const clock = new ManualClock();
      const attempts: unknown[] = [];
      const { start } = await setup(
        (DBOS) =>
          DBOS.runStep(
            async () => {
              const { currentAttempt, maxAttempts } = DBOS.stepStatus as StepStatus;
              attempts.push([clock.now(), currentAttempt, maxAttempts]);
              if (attempts.length < 4) throw new Error('not yet');
              return 'done';
            },
            { name: 'step', retriesAllowed: true, intervalSeconds: 7, backoffRate: 3, maxAttempts: 5 },
          ),
        clock,
      );
      const begun = clock.now();
      const handle = await start();
      for (const delayMs of [7_000, 21_000, 63_000]) {
        await clock.untilArmed(delayMs);
        clock.advance(delayMs - 1);
        expect(clock.isArmed(delayMs)).toBe(true);
        clock.advance(1);
      }

      const result = await handle.getResult();

      expect(result).toBe('done');
      expect(attempts).toEqual([
        [begun, 1, 5],
        [begun + 7_000, 2, 5],
        [begun + 28_000, 3, 5],
        [begun + 91_000, 4, 5],
      ]);
    });

    test('begin with a second, double, and give up after three attempts with all errors', async () => {
      const clock = new ManualClock();
      let calls = 0;
      const { DBOS, start } = await setup(
        (DBOS) =>
          DBOS.runStep(async () => Promise.reject(new Error(`failure ${++calls}`)), {
            name: 'step',
            retriesAllowed: true,
          }),
        clock,
      );
      const handle = await start();
      for (const delayMs of [1_000, 2_000]) {
        await clock.untilArmed(delayMs);
        clock.advance(delayMs);
      }

      const error = await failureOf(handle.getResult());

      expect(error).toMatchObject({ code: 'MAX_STEP_RETRIES', dbosErrorCode: 23, stepName: 'step', maxRetries: 3 });
      expect((error.errors as Error[]).map(({ message }) => message)).toEqual(['failure 1', 'failure 2', 'failure 3']);
      expect(error.message).toContain('Error 3: failure 3');
      const [step] = (await DBOS.listWorkflowSteps('w'))!;
      expect(step?.error).toMatchObject({ code: 'MAX_STEP_RETRIES', errors: [{}, {}, { message: 'failure 3' }] });
    });

    test('wait an hour at most', async () => {
      const clock = new ManualClock();
      let calls = 0;
      const { start } = await setup(
        (DBOS) =>
          DBOS.runStep(async () => (++calls < 2 ? Promise.reject(new Error('no')) : calls), {
            retriesAllowed: true,
            intervalSeconds: 1_000_000,
          }),
        clock,
      );
      const handle = await start();
      await clock.untilArmed(3_600_000);
      clock.advance(3_600_000);

      expect(await handle.getResult()).toBe(2);
    });

    test('are not made unless allowed', async () => {
      let calls = 0;
      const { start } = await setup((DBOS) =>
        DBOS.runStep(async () => Promise.reject(new Error(`failure ${++calls}`)), { maxAttempts: 5 }),
      );

      await expect((await start()).getResult()).rejects.toThrow('failure 1');
      expect(calls).toBe(1);
    });

    test('end when shouldRetry says no, with that error', async () => {
      const clock = new ManualClock();
      let calls = 0;
      const { DBOS, start } = await setup(
        (DBOS) =>
          DBOS.runStep(async () => Promise.reject(new Error(`failure ${++calls}`)), {
            retriesAllowed: true,
            maxAttempts: 10,
            shouldRetry: async (error) => (error as Error).message !== 'failure 2',
          }),
        clock,
      );
      const handle = await start();
      await clock.untilArmed(1_000);
      clock.advance(1_000);

      await expect(handle.getResult()).rejects.toThrow('failure 2');
      expect(calls).toBe(2);
      expect((await DBOS.listWorkflowSteps('w'))![0]?.error).toMatchObject({ message: 'failure 2' });
    });

    test('end when shouldRetry throws, with what it throws', async () => {
      const { DBOS, start } = await setup((DBOS) =>
        DBOS.runStep(async () => Promise.reject(new Error('failure')), {
          retriesAllowed: true,
          shouldRetry() {
            throw new TypeError('cannot tell');
          },
        }),
      );

      await expect((await start()).getResult()).rejects.toThrow('cannot tell');
      expect((await DBOS.listWorkflowSteps('w'))![0]?.error).toMatchObject({
        name: 'TypeError',
        message: 'cannot tell',
      });
    });

    test('end when the workflow is cancelled, without waiting for the next attempt', async () => {
      const clock = new ManualClock();
      let calls = 0;
      const { DBOS, start } = await setup(
        (DBOS) =>
          DBOS.runStep(async () => Promise.reject(new Error(`failure ${++calls}`)), {
            retriesAllowed: true,
            intervalSeconds: 77,
          }),
        clock,
      );
      const handle = await start();
      await clock.untilArmed(77_000);

      await DBOS.cancelWorkflow('w');

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(calls).toBe(1);
      expect(clock.isArmed(77_000)).toBe(false);
      expect(await DBOS.listWorkflowSteps('w')).toEqual([]);
    });
  });

  describe('a timeout', () => {
    test('ends the attempt, aborts its signal and is recorded', async () => {
      const clock = new ManualClock();
      const signals: AbortSignal[] = [];
      const { DBOS, start } = await setup(
        (DBOS) =>
          DBOS.runStep(
            async () => {
              signals.push(DBOS.stepStatus?.timeoutSignal as AbortSignal);
              return new Promise(() => {});
            },
            { name: 'slow', timeoutMS: 123 },
          ),
        clock,
      );
      const handle = await start();
      await clock.untilArmed(123);
      clock.advance(122);
      expect(signals[0]?.aborted).toBe(false);
      clock.advance(1);

      const error = await failureOf(handle.getResult());

      expect(error).toMatchObject({ code: 'STEP_TIMEOUT', message: 'Step slow timed out after 123ms' });
      expect(signals[0]?.reason).toMatchObject({ code: 'STEP_TIMEOUT' });
      expect((await DBOS.listWorkflowSteps('w'))![0]?.error).toMatchObject({ code: 'STEP_TIMEOUT' });
    });

    test('counts for each attempt anew', async () => {
      const clock = new ManualClock();
      let calls = 0;
      const { start } = await setup(
        (DBOS) =>
          DBOS.runStep(async () => (++calls === 1 ? new Promise<number>(() => {}) : calls), {
            timeoutMS: 123,
            retriesAllowed: true,
            intervalSeconds: 7,
          }),
        clock,
      );
      const handle = await start();
      for (const delayMs of [123, 7_000]) {
        await clock.untilArmed(delayMs);
        clock.advance(delayMs);
      }

      expect(await handle.getResult()).toBe(2);
      expect(clock.isArmed(123)).toBe(false);
    });

    test('discards what the abandoned code does later', async () => {
      const clock = new ManualClock();
      const late = deferred<string>();
      const { DBOS, start } = await setup(
        (DBOS) => DBOS.runStep(() => late.promise, { timeoutMS: 123 }).catch((error: Error) => error.name),
        clock,
      );
      const handle = await start();
      await clock.untilArmed(123);
      clock.advance(123);
      expect(await handle.getResult()).toBe('DBOSStepTimeoutError');

      late.reject(new Error('too late'));
      await new Promise((resolve) => setImmediate(resolve));

      expect(await DBOS.listWorkflowSteps('w')).toHaveLength(1);
    });

    test('is not seen by a step that is in time', async () => {
      const { start } = await setup((DBOS) =>
        DBOS.runStep(async () => DBOS.stepStatus?.timeoutSignal?.aborted, { timeoutMS: 60_000 }),
      );

      expect(await (await start()).getResult()).toBe(false);
    });
  });

  describe('the status of a step', () => {
    test('has its number and signal, and no attempts unless retries are allowed', async () => {
      const { DBOS, start } = await setup(async (DBOS) => {
        await DBOS.runStep(async () => 0);
        return DBOS.runStep(async () => {
          const { cancelSignal, ...rest } = DBOS.stepStatus as StepStatus;
          return { ...rest, isAborted: cancelSignal.aborted, stepID: DBOS.stepID };
        });
      });

      const result = await (await start()).getResult();

      expect(result).toEqual({ stepID: 1, isAborted: false });
      expect(DBOS.stepStatus).toBeUndefined();
      expect(DBOS.stepID).toBeUndefined();
    });

    test('has a signal that aborts when the workflow is cancelled', async () => {
      const halt = newHalt();
      const reasons: unknown[] = [];
      const { DBOS, start } = await setup((DBOS) =>
        DBOS.runStep(async () => {
          const { cancelSignal } = DBOS.stepStatus as StepStatus;
          cancelSignal.addEventListener('abort', () => reasons.push(cancelSignal.reason));
          await halt.here();
        }),
      );
      const handle = await start();
      await halt.reached;

      await DBOS.cancelWorkflow('w');

      expect(reasons).toMatchObject([{ code: 'WORKFLOW_CANCELLED', workflowID: 'w' }]);
      halt.release();
      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    });
  });

  describe('when the workflow is cancelled', () => {
    test('a step that is running goes on, and the workflow stops after it', async () => {
      const halt = newHalt();
      const calls: string[] = [];
      const { DBOS, start } = await setup(async (DBOS) => {
        await DBOS.runStep(async () => {
          await halt.here();
          calls.push('first');
        });
        await DBOS.runStep(async () => calls.push('second'));
      });
      const handle = await start();
      await halt.reached;
      await DBOS.cancelWorkflow('w');

      halt.release();

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(calls).toEqual(['first']);
      await until(async () => (await DBOS.listWorkflowSteps('w'))?.length === 1);
    });

    test('a preemptible step ends at once', async () => {
      const halt = newHalt();
      const seen: unknown[] = [];
      const { DBOS, start } = await setup(async (DBOS) => {
        try {
          await DBOS.runStep(() => halt.here(), { preemptible: true });
        } catch (error) {
          seen.push((error as { code?: string }).code);
          throw error;
        }
      });
      const handle = await start();
      await halt.reached;

      await DBOS.cancelWorkflow('w');

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(seen).toEqual(['WORKFLOW_CANCELLED']);
      expect(await DBOS.listWorkflowSteps('w')).toEqual([]);
    });

    test('a preemptible step that has ended is recorded like any other', async () => {
      const { DBOS, start } = await setup((DBOS) => DBOS.runStep(async () => 5, { name: 'step', preemptible: true }));

      expect(await (await start()).getResult()).toBe(5);
      expect(await DBOS.listWorkflowSteps('w')).toMatchObject([{ name: 'step', output: 5 }]);
    });

    test('the cancellation cannot be caught and worked around', async () => {
      const halt = newHalt();
      const calls: string[] = [];
      const { DBOS, start } = await setup(async (DBOS) => {
        await halt.here();
        for (const attempt of [1, 2]) await DBOS.runStep(async () => calls.push(`${attempt}`)).catch(() => {});
        return 'pretended success';
      });
      const handle = await start();
      await halt.reached;
      await DBOS.cancelWorkflow('w');

      halt.release();

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(calls).toEqual([]);
    });
  });

  test('a step begins when everything before it is durable', async () => {
    const seen: unknown[] = [];
    const { start } = await setup(async (DBOS) => {
      await DBOS.runStep(async () => 'one', { name: 'first' });
      await DBOS.runStep(
        async () => seen.push((await DBOS.listWorkflowSteps('w'))!.map(({ name, output }) => [name, output])),
        { name: 'second' },
      );
    });

    await (await start()).getResult();

    expect(seen).toEqual([[['first', 'one']]]);
  });

  test('a hundred steps in a row are all recorded', async () => {
    const { DBOS, start } = await setup(async (DBOS) => {
      for (let index = 0; index < 100; index += 1) await DBOS.runStep(async () => index);
    });

    await (await start()).getResult();

    await until(async () => (await DBOS.listWorkflowSteps('w'))!.length === 100);
    expect((await DBOS.listWorkflowSteps('w', { offset: 98 }))!.map((step) => step.output)).toEqual([98, 99]);
    expect(await DBOS.listWorkflowSteps('w', { offset: 3, limit: 2 })).toMatchObject([
      { functionID: 3 },
      { functionID: 4 },
    ]);
  });
});
