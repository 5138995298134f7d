import { describe, expect, test, vi } from 'vitest';
import { deferred } from '../../src/kernel/base/deferred.js';
import { PORTABLE_FORMAT } from '../../src/kernel/codec/serializer.js';
import { currentContext } from '../../src/run/ambient.js';
import {
  type Durability,
  elsewhere,
  joined,
  type Operation,
  own,
  perform,
  portable,
  type StepOutcome,
} from '../../src/run/perform.js';
import type { Run } from '../../src/run/run.js';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

const LOOK: Operation<unknown> = { name: 'look', isEffect: false };
const EFFECT: Operation<unknown> = { name: 'effect', isEffect: true };

const kept = (outcome: StepOutcome, durability: Durability) => elsewhere(async () => ({ outcome, durability }));
const value = (given: unknown): StepOutcome => ({ kind: 'value', value: given });

/** Whether a promise settles without anything that is held back. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  void promise.then(() => (isSettled = true));
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return isSettled;
}

forEachDialect((dialect) => {
  /** Starts a workflow that runs the body, on an engine that is launched. */
  async function start<R>(body: (run: Run) => Promise<R>) {
    const { DBOS } = await createEngine(dialect);
    const workflow = register(DBOS, body);
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    const steps = async () => (await DBOS.listWorkflowSteps('w'))!.map(({ name, output }) => [name, output]);
    return { DBOS, handle, steps };
  }

  function register<R>(DBOS: DBOSInstance, body: (run: Run) => Promise<R>): () => Promise<R> {
    return DBOS.registerWorkflow(() => body(currentContext()!.run!), { name: 'workflow' });
  }

  /** Holds all commits of the engine back from now on, until they are let go. */
  function holdCommits({ runtime }: Run): { letGo(): void } {
    const { database } = runtime;
    const gate = deferred<void>();
    const commit = database.commit.bind(database);
    vi.spyOn(database, 'commit').mockImplementation(async (...args) => {
      await gate.promise;
      return commit(...args);
    });
    return { letGo: () => gate.resolve() };
  }

  /** Runs `before` until its process ends, and `after` when the workflow is recovered. */
  async function recover<R>(before: (run: Run) => Promise<unknown>, after: (run: Run) => Promise<R>): Promise<R> {
    const { first, second } = await createGenerations(dialect);
    const halt = newHalt();
    const workflow = register(first, async (run) => {
      await before(run).catch(() => {});
      await run.barrier();
      return halt.here();
    });
    register(second, after);
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    await first.shutdown();
    await second.launch();
    return second.retrieveWorkflow<R>('w').getResult();
  }

  describe('history', () => {
    test('gives the recorded value, and the body does not run again', async () => {
      const body = vi.fn(async () => new Date(5));

      const replayed = await recover(
        (run) => perform(run, LOOK, own(body)),
        (run) => perform(run, LOOK, own(body)),
      );

      expect(replayed).toEqual(new Date(5));
      expect(body).toHaveBeenCalledTimes(1);
    });

    test('gives the recorded error, and the body does not run again', async () => {
      const body = vi.fn(() => Promise.reject(Object.assign(new RangeError('too far'), { distance: 7 })));

      const replayed = await recover(
        (run) => perform(run, LOOK, own(body)),
        async (run) => {
          const { name, message, distance } = await failureOf(perform(run, LOOK, own(body)));
          return { name, message, distance };
        },
      );

      expect(replayed).toEqual({ name: 'RangeError', message: 'too far', distance: 7 });
      expect(body).toHaveBeenCalledTimes(1);
    });

    test('with another name under the number halts the run', async () => {
      const body = vi.fn(async () => 1);
      let halted: Run | undefined;

      const failure = recover(
        (run) => perform(run, LOOK, own(body)),
        async (run) => {
          halted = run;
          await failureOf(perform(run, { ...LOOK, name: 'other' }, own(body)));
        },
      );

      expect(await failureOf(failure)).toMatchObject({ code: 'UNEXPECTED_STEP' });
      expect(halted?.isHalted).toBe(true);
      expect(body).toHaveBeenCalledTimes(1);
    });

    test('can be read in a way of the operation', async () => {
      const named: Operation<unknown> = { ...LOOK, childWorkflowID: 'child', read: (record) => record };

      const record = await recover(
        (run) =>
          perform(
            run,
            named,
            own(async () => 1),
          ),
        (run) =>
          perform(
            run,
            named,
            own(async () => 1),
          ),
      );

      expect(record).toMatchObject({ name: 'look', childWorkflowID: 'child' });
    });
  });

  test('numbers are taken in the order of the calls, before any await', async () => {
    const { handle, steps } = await start(async (run) => {
      await Promise.all(
        ['a', 'b', 'c'].map((name) =>
          perform(
            run,
            { ...EFFECT, name },
            own(async () => name),
          ),
        ),
      );
      return null;
    });
    await handle.getResult();

    expect(await steps()).toEqual([
      ['a', 'a'],
      ['b', 'b'],
      ['c', 'c'],
    ]);
  });

  describe('a run that was stopped', () => {
    test('runs no body', async () => {
      const body = vi.fn(async () => 1);
      const { handle } = await start(async (run) => {
        run.stop(new Error('stopped'));
        return perform(run, LOOK, own(body));
      });

      expect((await failureOf(handle.getResult())).message).toBe('stopped');
      expect(body).not.toHaveBeenCalled();
    });

    test('records neither the value nor the error of a body that was running', async () => {
      const failures: string[] = [];
      const { handle, steps } = await start(async (run) => {
        const bodies = [async () => 1, async () => Promise.reject(new Error('of the body'))];
        const stopped = bodies.map((body) =>
          perform(
            run,
            LOOK,
            own(async () => {
              run.stop(new Error('stopped'));
              return body();
            }),
          ),
        );
        for (const one of stopped) failures.push((await failureOf(one)).message);
      });
      await handle.getResult().catch(() => {});

      expect(failures).toEqual(['stopped', 'stopped']);
      expect(await steps()).toEqual([]);
    });
  });

  describe('the barrier', () => {
    test('holds an effect back until everything recorded before is durable, and nothing else', async () => {
      const effect = vi.fn(async () => 2);
      const look = vi.fn(async () => 3);
      const { handle } = await start(async (run) => {
        await run.barrier();
        const commits = holdCommits(run);
        await perform(run, LOOK, own(look));
        const held = perform(run, EFFECT, own(effect));
        await perform(run, LOOK, own(look));
        const calls = [await hasSettled(held), effect.mock.calls.length, look.mock.calls.length];
        commits.letGo();
        return [...calls, await held];
      });

      expect(await handle.getResult()).toEqual([false, 0, 2, 2]);
    });

    test.each<[Durability, boolean]>([
      ['recorded', true],
      ['none', false],
      ['unknown', false],
    ])('of a transaction is passed by an outcome kept elsewhere as "%s": %s', async (durability, isPassed) => {
      const { handle } = await start(async (run) => {
        await run.barrier();
        const commits = holdCommits(run);
        await perform(run, LOOK, kept(value(1), durability));
        const passed = [await hasSettled(run.commitBarrier()), await hasSettled(run.barrier())];
        commits.letGo();
        return passed;
      });

      expect(await handle.getResult()).toEqual([isPassed, false]);
    });
  });

  describe('an outcome kept elsewhere', () => {
    test('as a checkpoint is not recorded again', async () => {
      const { handle, steps } = await start(async (run) => {
        const gives = await perform(run, LOOK, kept(value({ a: 1 }), 'checkpointed'));
        const failed = perform(run, LOOK, kept({ kind: 'error', error: new Error('no') }, 'checkpointed'));
        return [gives, (await failureOf(failed)).message];
      });

      expect(await handle.getResult()).toEqual([{ a: 1 }, 'no']);
      expect(await steps()).toEqual([]);
    });

    test.each<Durability>(['recorded', 'none', 'unknown'])(
      'as "%s" is recorded, be it an error',
      async (durability) => {
        const { DBOS, handle } = await start(async (run) => {
          const gives = await perform(run, LOOK, kept(value(1), durability));
          const failed = perform(run, LOOK, kept({ kind: 'error', error: new Error('no') }, durability));
          return [gives, (await failureOf(failed)).message];
        });

        expect(await handle.getResult()).toEqual([1, 'no']);
        const steps = (await DBOS.listWorkflowSteps('w'))!;
        expect(steps.map(({ output, error }) => [output, error?.message])).toEqual([
          [1, undefined],
          [null, 'no'],
        ]);
      },
    );
  });

  describe('a joined checkpoint', () => {
    const setEvent = (key: string) =>
      joined(async (step) => {
        const { run, stepID } = step;
        const event = {
          workflowID: run.workflowID,
          owner: run.owner,
          stepID,
          key,
          text: '1',
          serialization: PORTABLE_FORMAT,
        };
        const written = run.runtime.store.writer.setEvent({ event, checkpoint: step.checkpoint(portable()) });
        await step.commit(written, (verdict) => verdict);
      });

    test('is durable with the write that it is part of', async () => {
      const { DBOS, handle } = await start(async (run) => {
        await perform(run, LOOK, setEvent('key'));
        return (await run.runtime.store.database.read(sql`SELECT key FROM ${table('workflow_events')}`)).length;
      });

      expect(await handle.getResult()).toBe(1);
      expect(await DBOS.listWorkflowSteps('w')).toMatchObject([{ name: 'look', output: null }]);
    });

    test('of a run that has lost its workflow stops the run', async () => {
      const reasons: unknown[] = [];
      const { DBOS } = await start(async (run) => {
        await run.barrier();
        const { database } = run.runtime.store;
        await database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'other'`);
        reasons.push((await failureOf(perform(run, LOOK, setEvent('key'))))['code'], run.stopReason);
        return perform(
          run,
          LOOK,
          own(async () => reasons.push('went on')),
        );
      });
      await until(async () => reasons.length > 0);

      expect(await DBOS.listWorkflowSteps('w')).toEqual([]);
      expect(reasons).toEqual(['WORKFLOW_CONFLICT', expect.objectContaining({ code: 'WORKFLOW_CONFLICT' })]);
    });

    test('does not record what its body throws, unless that is its outcome', async () => {
      const { DBOS, handle } = await start(async (run) => {
        const thrown = joined(() => Promise.reject(new Error('not recorded')));
        const refused = joined((step) => step.fail(new Error('recorded')));
        return [
          (await failureOf(perform(run, LOOK, thrown))).message,
          (await failureOf(perform(run, LOOK, refused))).message,
        ];
      });

      expect(await handle.getResult()).toEqual(['not recorded', 'recorded']);
      expect(await DBOS.listWorkflowSteps('w')).toMatchObject([{ functionID: 1, error: { message: 'recorded' } }]);
    });

    test('must be made', async () => {
      const { handle } = await start((run) =>
        perform(
          run,
          LOOK,
          joined(async () => 1),
        ),
      );

      expect((await failureOf(handle.getResult())).message).toContain('"look" made no checkpoint');
    });
  });
});
