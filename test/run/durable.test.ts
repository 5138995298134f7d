import { describe, expect, test } from 'vitest';
import { deferred } from '../../src/kernel/base/deferred.js';
import type { DBOSInstance } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

forEachDialect((dialect) => {
  /** A launched engine with one workflow, which runs `body` under the ID "w". */
  async function setup<R>(body: (DBOS: DBOSInstance) => Promise<R>, clock?: ManualClock) {
    const { DBOS } = await createEngine(dialect, {}, clock?.settings);
    const workflow = DBOS.registerWorkflow(() => body(DBOS), { name: 'workflow' });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    const stepNames = async () => (await DBOS.listWorkflowSteps('w'))!.map(({ name }) => name);
    return { DBOS, handle, stepNames };
  }

  /** Two generations of a workflow that runs `body`; the first halts at its end, if it gets there. */
  async function setupReplay<R>(body: (DBOS: DBOSInstance, generation: 1 | 2) => Promise<R>, clock?: ManualClock) {
    const { first, second } = await createGenerations(dialect, {}, clock?.settings);
    const halt = newHalt();
    const results: R[] = [];
    const workflow = first.registerWorkflow(
      async () => {
        results.push(await body(first, 1));
        return halt.here();
      },
      { name: 'workflow' },
    );
    second.registerWorkflow(() => body(second, 2), { name: 'workflow' });
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    const replay = async () => {
      await first.shutdown();
      await second.launch();
      return second.retrieveWorkflow<R>('w');
    };
    return { first, second, halt, results, replay };
  }

  describe('the time and random UUIDs', () => {
    test('are recorded, and the same after a recovery', async () => {
      const { halt, results, replay, second } = await setupReplay(async (DBOS) => [
        await DBOS.now(),
        await DBOS.randomUUID(),
        await DBOS.randomUUID(),
      ]);
      await halt.reached;

      const again = await (await replay()).getResult();

      expect(again).toEqual(results[0]);
      expect(again[0]).toBeGreaterThan(Date.now() - 60_000);
      expect(again[1]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
      expect(again[2]).not.toBe(again[1]);
      expect((await second.listWorkflowSteps('w'))!.map(({ name }) => name)).toEqual([
        'DBOS.now',
        'DBOS.randomUUID',
        'DBOS.randomUUID',
      ]);
    });

    test('are just given outside a workflow', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      await DBOS.launch();

      expect(await DBOS.now()).toBe(clock.now());
      expect(await DBOS.randomUUID()).not.toBe(await DBOS.randomUUID());
    });
  });

  describe('a sleep', () => {
    test('lasts as long as it should, and its end is recorded', async () => {
      const clock = new ManualClock();
      const begun = clock.now();
      const { DBOS, handle } = await setup(async (DBOS) => {
        await DBOS.sleep(45_678);
        await DBOS.sleepms(45_679);
        await DBOS.sleepSeconds(45.68);
        return DBOS.now();
      }, clock);
      for (const durationMs of [45_678, 45_679, 45_680]) {
        await clock.untilArmed(durationMs);
        clock.advance(durationMs - 1);
        expect(clock.isArmed(durationMs)).toBe(true);
        clock.advance(1);
      }

      const end = await handle.getResult();

      expect(end).toBe(begun + 45_678 + 45_679 + 45_680);
      expect((await DBOS.listWorkflowSteps('w'))![0]).toMatchObject({
        name: 'DBOS.sleep',
        output: begun + 45_678,
        startedAtEpochMs: begun,
        completedAtEpochMs: begun + 45_678,
      });
    });

    test('goes on with the remaining time after a recovery', async () => {
      const clock = new ManualClock();
      const { replay } = await setupReplay(async (DBOS) => {
        await DBOS.sleep(100_000);
        return 'awake';
      }, clock);
      await clock.untilArmed(100_000);
      clock.advance(60_001);

      const handle = await replay();

      await clock.untilArmed(39_999);
      clock.advance(39_999);
      expect(await handle.getResult()).toBe('awake');
    });

    test('that ended while no process was there ends at once', async () => {
      const clock = new ManualClock();
      const { first, second, halt } = await setupReplay(async (DBOS) => DBOS.sleep(100_000), clock);
      await clock.untilArmed(100_000);
      await first.shutdown();
      clock.advance(100_000);

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toBeUndefined();
      halt.release();
    });

    test('is woken at once when the workflow is cancelled', async () => {
      const clock = new ManualClock();
      const { DBOS, handle } = await setup((DBOS) => DBOS.sleep(100_000), clock);
      await clock.untilArmed(100_000);

      await DBOS.cancelWorkflow('w');

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
      expect(clock.isArmed(100_000)).toBe(false);
    });

    test('of no or negative time ends at once, takes a number and records nothing', async () => {
      const { handle, DBOS } = await setup(async (DBOS) => {
        await DBOS.sleep(0);
        await DBOS.sleep(-5);
        return DBOS.runStep(async () => DBOS.stepID, { name: 'step' });
      });

      expect(await handle.getResult()).toBe(2);
      expect(await DBOS.listWorkflowSteps('w')).toMatchObject([{ functionID: 2, name: 'step' }]);
    });

    test('may last a fraction of a millisecond', async () => {
      const { handle, stepNames } = await setup(async (DBOS) => {
        await DBOS.sleep(0.25);
        return 'awake';
      });

      expect(await handle.getResult()).toBe('awake');
      expect(await stepNames()).toEqual(['DBOS.sleep']);
    });

    test.each([NaN, Infinity])('of %d is refused', async (durationMs) => {
      const { DBOS, handle } = await setup((DBOS) => DBOS.sleep(durationMs));

      await expect(handle.getResult()).rejects.toThrow('must be a finite number');
      await expect(DBOS.sleep(durationMs)).rejects.toThrow('must be a finite number');
    });

    test('outside a workflow is an ordinary one', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      await DBOS.launch();
      const asleep = DBOS.sleep(45_678);
      await clock.untilArmed(45_678);

      clock.advance(45_678);

      await asleep;
    });

    test('of sleeps at the same time each ends at its own time', async () => {
      const clock = new ManualClock();
      const woken: number[] = [];
      const { handle } = await setup(
        (DBOS) =>
          Promise.all(
            [45_679, 45_678].map(async (durationMs) => {
              await DBOS.sleep(durationMs);
              woken.push(durationMs);
            }),
          ),
        clock,
      );
      await clock.untilArmed(45_678);
      clock.advance(45_678);
      await new Promise((resolve) => setImmediate(resolve));
      expect(woken).toEqual([45_678]);

      clock.advance(1);

      await handle.getResult();
      expect(woken).toEqual([45_678, 45_679]);
    });
  });

  describe('waiting for promises', () => {
    test('gives those that have settled, in their order, and those that have not', async () => {
      const gates = [deferred<string>(), deferred<string>(), deferred<string>()];
      const { handle, DBOS } = await setup(async (DBOS) => {
        const promises = gates.map((gate, index) => DBOS.runStep(() => gate.promise, { name: `step ${index}` }));
        const { done, pending } = await DBOS.wait(promises, { returnWhen: 'first' });
        const first = [done.map((promise) => promises.indexOf(promise)), pending.map((p) => promises.indexOf(p))];
        gates[0]?.resolve('zero');
        gates[1]?.resolve('one');
        const rest = await DBOS.wait(pending);
        return { first, rest: [await Promise.all(rest.done), rest.pending.length] };
      });
      gates[2]?.resolve('two');

      expect(await handle.getResult()).toEqual({ first: [[2], [0, 1]], rest: [['zero', 'one'], 0] });
      expect((await DBOS.listWorkflowSteps('w'))!.map(({ functionID, name }) => [functionID, name])).toEqual([
        [0, 'step 0'],
        [1, 'step 1'],
        [2, 'step 2'],
        [3, 'DBOS.wait'],
        [4, 'DBOS.wait'],
      ]);
    });

    test('can end with the first error, and throws none', async () => {
      const never = new Promise<string>(() => {});
      const { handle } = await setup(async (DBOS) => {
        const good = DBOS.runStep(async () => 'good', { name: 'good' });
        const bad = DBOS.runStep(async () => Promise.reject(new Error('bad')), { name: 'bad' });
        const { done, pending } = await DBOS.wait([never, good, bad], { returnWhen: 'firstError' });
        return [done.includes(good), done.includes(bad), pending.length, (await failureOf(bad)).message];
      });

      expect(await handle.getResult()).toEqual([true, true, 1, 'bad']);
    });

    test('can end with a timeout', async () => {
      const clock = new ManualClock();
      const { handle } = await setup(async (DBOS) => {
        const quick = DBOS.runStep(async () => 'quick', { name: 'quick' });
        const { done, pending } = await DBOS.wait([quick, new Promise<string>(() => {})], { timeoutMs: 45_678 });
        return [await Promise.all(done), pending.length];
      }, clock);
      await clock.untilArmed(45_678);

      clock.advance(45_678);

      expect(await handle.getResult()).toEqual([['quick'], 1]);
    });

    test('takes a second number for its timeout, and records it only if it has to wait', async () => {
      const clock = new ManualClock();
      const { DBOS, handle } = await setup(async (DBOS) => {
        await DBOS.wait([Promise.resolve()], { timeoutMs: 45_678 });
        return (await DBOS.wait([new Promise(() => {})], { timeoutMs: '12s' })).pending.length;
      }, clock);
      const begun = clock.now();
      await clock.untilArmed(12_000);

      clock.advance(12_000);

      expect(await handle.getResult()).toBe(1);
      const steps = await DBOS.listWorkflowSteps('w');
      expect(steps!.map(({ functionID, name, output }) => [functionID, name, output])).toEqual([
        [0, 'DBOS.wait', [0]],
        [2, 'DBOS.wait', []],
        [3, 'DBOS.sleep', begun + 12_000],
      ]);
    });

    test('ends at the same time after a recovery', async () => {
      const clock = new ManualClock();
      const { replay } = await setupReplay(
        async (DBOS) => (await DBOS.wait([new Promise(() => {})], { timeoutMs: 6_000 })).pending.length,
        clock,
      );
      await clock.untilArmed(6_000);
      clock.advance(4_000);
      const handle = await replay();
      await clock.untilArmed(2_000);

      clock.advance(2_000);

      expect(await handle.getResult()).toBe(1);
    });

    test('after a recovery that comes too late gives what had settled before', async () => {
      const clock = new ManualClock();
      const { first, replay } = await setupReplay(async (DBOS) => {
        const settled = (async () => {
          const first = await DBOS.runStep(async () => 1, { name: 'first' });
          return first + (await DBOS.runStep(async () => 2, { name: 'second' }));
        })();
        const late = DBOS.runStep(() => new Promise<number>(() => {}), { name: 'late' });
        const { done, pending } = await DBOS.wait([settled, late], { timeoutMs: 6_000 });
        return [await Promise.all(done), pending.length];
      }, clock);
      await clock.untilArmed(6_000);
      await until(async () => ((await first.listWorkflowSteps('w')) ?? []).some(({ name }) => name === 'second'));
      await first.shutdown();
      clock.advance(60_000);

      const handle = await replay();

      expect(await handle.getResult()).toEqual([[3], 1]);
    });

    test.each([
      { returnWhen: 'fisrt' },
      { returnWhen: 'FIRST_COMPLETED' },
      { timeoutMs: -1 },
      { timeoutMs: NaN },
      { timeoutMs: '5 fortnights' },
      { timeoutSeconds: 5 },
      5,
    ])('refuses %j', async (options) => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();

      await expect(DBOS.wait([Promise.resolve()], options as object)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    });

    test('ends with the cancellation of the workflow', async () => {
      const halt = newHalt();
      const { DBOS, handle } = await setup((DBOS) => DBOS.wait([halt.here()]));
      await halt.reached;

      await DBOS.cancelWorkflow('w');

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    });

    test('outside a workflow just waits', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();
      const quick = Promise.resolve(1);

      const { done, pending } = await DBOS.wait([new Promise<number>(() => {}), quick], { returnWhen: 'first' });

      expect(done).toEqual([quick]);
      expect(pending).toHaveLength(1);
      expect(await DBOS.wait([])).toEqual({ done: [], pending: [] });
    });

    test('gives the winner of the first run after a recovery, even if another is faster then', async () => {
      const late = deferred<string>();
      const { halt, replay } = await setupReplay(async (DBOS, generation) => {
        const loser = generation === 1 ? new Promise<string>(() => {}) : Promise.resolve('loser');
        const winner = generation === 1 ? Promise.resolve('winner') : late.promise;
        const { done, pending } = await DBOS.wait([loser, winner], { returnWhen: 'first' });
        return [await Promise.all(done), pending.length];
      });
      await halt.reached;
      const handle = await replay();

      late.resolve('winner');

      expect(await handle.getResult()).toEqual([['winner'], 1]);
    });
  });

  describe('race, any, all and allSettled', () => {
    test('a race gives the first to settle, and its error if it failed', async () => {
      const { handle, stepNames } = await setup(async (DBOS) => {
        const never = new Promise<string>(() => {});
        const won = await DBOS.race([never, DBOS.runStep(async () => 'won', { name: 'quick' })]);
        const lost = await failureOf(
          DBOS.race([never, DBOS.runStep(async () => Promise.reject(new Error('lost')), { name: 'failing' })]),
        );
        return [won, lost.message];
      });

      expect(await handle.getResult()).toEqual(['won', 'lost']);
      expect(await stepNames()).toEqual(['quick', 'DBOS.wait', 'failing', 'DBOS.wait']);
    });

    test('a race has the same winner after a recovery, although the other would win now', async () => {
      const { halt, replay } = await setupReplay((DBOS, generation) =>
        DBOS.race([
          DBOS.runStep(async () => 'a', { name: 'a' }),
          // It never ends the first time, and is there at once the second time.
          DBOS.runStep(async () => (generation === 1 ? new Promise<string>(() => {}) : 'b'), { name: 'b' }),
          generation === 1 ? new Promise<string>(() => {}) : Promise.resolve('c'),
        ]),
      );
      await halt.reached;

      expect(await (await replay()).getResult()).toBe('a');
    });

    test('any gives the first to succeed, also after a recovery', async () => {
      const { halt, replay } = await setupReplay((DBOS, generation) =>
        DBOS.any([
          DBOS.runStep(async () => Promise.reject(new Error('failed')), { name: 'failing' }),
          DBOS.runStep(async () => 'good', { name: 'good' }),
          generation === 1 ? new Promise<string>(() => {}) : Promise.resolve('late'),
        ]),
      );
      await halt.reached;

      expect(await (await replay()).getResult()).toBe('good');
    });

    test('any fails with all errors when none succeeds', async () => {
      const { handle } = await setup((DBOS) =>
        DBOS.any(['one', 'two'].map((name) => DBOS.runStep(async () => Promise.reject(new Error(name)), { name }))),
      );

      const error = await failureOf(handle.getResult());

      expect(error.name).toBe('AggregateError');
      expect((error.errors as Error[]).map(({ message }) => message)).toEqual(['one', 'two']);
    });

    test('all and allSettled are those of promises', async () => {
      const { handle } = await setup(async (DBOS) => {
        const good = DBOS.runStep(async () => 1, { name: 'good' });
        const bad = DBOS.runStep(async () => Promise.reject(new Error('bad')), { name: 'bad' });
        const settled = await DBOS.allSettled([good, bad, 'plain']);
        return [await DBOS.all([good, 'plain']), settled.map(({ status }) => status)];
      });

      expect(await handle.getResult()).toEqual([
        [1, 'plain'],
        ['fulfilled', 'rejected', 'fulfilled'],
      ]);
    });
  });

  describe('a patch', () => {
    type Body = (DBOS: DBOSInstance) => Promise<unknown>;
    const step = (DBOS: DBOSInstance, name: string) => DBOS.runStep(async () => name, { name });

    /** A workflow that has run `before`, halts, and is recovered with the code `after`. */
    async function setupPatch(before: Body, after: Body) {
      const { first, second } = await createGenerations(dialect, { enablePatching: true });
      const halt = newHalt();
      const old = first.registerWorkflow(
        async () => {
          await before(first);
          return halt.here();
        },
        { name: 'workflow' },
      );
      const changed = second.registerWorkflow(() => after(second), { name: 'workflow' });
      await first.launch();
      await first.startWorkflow(old, { workflowID: 'w' })();
      await halt.reached;
      await first.shutdown();
      await second.launch();
      const recovered = () => second.retrieveWorkflow('w').getResult();
      const fresh = () => second.withNextWorkflowID('fresh', () => changed());
      const stepNames = async (workflowID: string) =>
        (await second.listWorkflowSteps(workflowID))!.map(({ functionID, name }) => `${functionID} ${name}`);
      return { recovered, fresh, stepNames };
    }

    const oldWay: Body = async (DBOS) => [await step(DBOS, 'old'), await step(DBOS, 'last')];
    const patched: Body = async (DBOS) => [
      await step(DBOS, (await DBOS.patch('p')) ? 'new' : 'old'),
      await step(DBOS, 'last'),
    ];
    const deprecated: Body = async (DBOS) => {
      const isTrue = await DBOS.deprecatePatch('p');
      return [await step(DBOS, 'new'), await step(DBOS, 'last'), isTrue];
    };

    test('leaves a workflow that has passed the place on the old way', async () => {
      const { recovered, stepNames } = await setupPatch(oldWay, patched);

      expect(await recovered()).toEqual(['old', 'last']);
      expect(await stepNames('w')).toEqual(['0 old', '1 last']);
    });

    test('sends a fresh workflow the new way, with a marker', async () => {
      const { fresh, stepNames } = await setupPatch(oldWay, patched);

      expect(await fresh()).toEqual(['new', 'last']);
      expect(await stepNames('fresh')).toEqual(['0 DBOS.patch-p', '1 new', '2 last']);
    });

    test('sends a workflow that has not come to the place yet the new way', async () => {
      const { recovered, stepNames } = await setupPatch(async () => {}, patched);

      expect(await recovered()).toEqual(['new', 'last']);
      expect(await stepNames('w')).toEqual(['0 DBOS.patch-p', '1 new', '2 last']);
    });

    test('keeps a workflow with the marker on the new way', async () => {
      const { recovered, stepNames } = await setupPatch(patched, patched);

      expect(await recovered()).toEqual(['new', 'last']);
      expect(await stepNames('w')).toEqual(['0 DBOS.patch-p', '1 new', '2 last']);
    });

    test('of another name does not take the marker for its own', async () => {
      const { recovered } = await setupPatch(patched, async (DBOS) => [
        await DBOS.patch('q'),
        await DBOS.patch('p'),
        await step(DBOS, 'new'),
        await step(DBOS, 'last'),
      ]);

      expect(await recovered()).toEqual([false, true, 'new', 'last']);
    });

    test('that is deprecated steps over the marker', async () => {
      const { recovered, stepNames } = await setupPatch(patched, deprecated);

      expect(await recovered()).toEqual(['new', 'last', true]);
      expect(await stepNames('w')).toEqual(['0 DBOS.patch-p', '1 new', '2 last']);
    });

    test('that is deprecated writes no marker', async () => {
      const { fresh, stepNames } = await setupPatch(patched, deprecated);

      expect(await fresh()).toEqual(['new', 'last', true]);
      expect(await stepNames('fresh')).toEqual(['0 new', '1 last']);
    });

    test('whose line was removed may have left a marker behind', async () => {
      const { recovered } = await setupPatch(
        async (DBOS) => [await step(DBOS, 'first'), await DBOS.patch('p')],
        async (DBOS) => [await step(DBOS, 'first')],
      );

      expect(await recovered()).toEqual(['first']);
    });

    test('that was removed too early fails the workflows with a marker, and tells what to do', async () => {
      const { recovered } = await setupPatch(patched, (DBOS) => step(DBOS, 'new'));

      const error = await failureOf(recovered());

      expect(error).toMatchObject({ code: 'UNEXPECTED_STEP' });
      expect(error.message).toContain('DBOS.deprecatePatch');
    });

    test('keeps the old path for a workflow of which only a later step side by side is recorded', async () => {
      const stuck: Body = (DBOS) => {
        void DBOS.runStep(() => new Promise<void>(() => {}), { name: 'one' });
        return step(DBOS, 'two');
      };
      const { recovered, stepNames } = await setupPatch(stuck, async (DBOS) => {
        if (await DBOS.patch('p')) await step(DBOS, 'zero');
        await Promise.all([step(DBOS, 'one'), step(DBOS, 'two')]);
      });

      await recovered();

      expect(await stepNames('w')).toEqual(['0 one', '1 two']);
    });

    test('is refused unless patching is on', async () => {
      const { handle } = await setup((DBOS) => DBOS.patch('p'));

      const error = await failureOf(handle.getResult());

      expect(error).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      expect(error.message).toContain('enablePatching');
    });

    test('is refused outside workflow code', async () => {
      const { DBOS } = await createEngine(dialect, { enablePatching: true });
      const workflow = DBOS.registerWorkflow(() => DBOS.runStep(() => DBOS.deprecatePatch('p')), { name: 'workflow' });
      await DBOS.launch();

      await expect(DBOS.patch('p')).rejects.toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      await expect(workflow()).rejects.toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
    });
  });
});
