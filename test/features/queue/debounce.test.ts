import { describe, expect, test } from 'vitest';
import {
  ConfiguredInstance,
  Debouncer,
  type DBOSConfig,
  type DBOSInstance,
  type DebouncerConfig,
  type StartWorkflowParams,
} from '../../../src/index.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from '../../run/succession.js';

const INTERNAL_QUEUE = '_dbos_internal_queue';

forEachDialect((dialect) => {
  type Options = Omit<DebouncerConfig<[string], string>, 'workflow'>;

  /** A launched engine whose time stands still, with a workflow that notes its argument, and a debouncer of it. */
  async function setup(options: Options = {}, config: Partial<DBOSConfig> = {}, clock = new ManualClock()) {
    const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', ...config }, clock.settings);
    const saved: string[] = [];
    const save = DBOS.registerWorkflow(
      async (text: string) => {
        saved.push(text);
        return text;
      },
      { name: 'save' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q');
    const debouncer = new Debouncer({ workflow: save, ...options }, DBOS);
    /** Lets time pass until the workflow is due. */
    const pass = async (ms: number) => {
      await clock.untilArmed(ms);
      clock.advance(ms);
    };
    return { DBOS, url, clock, save, saved, debouncer, pass };
  }

  describe('a debouncer', () => {
    test('runs the workflow once the period is over, with the last arguments', async () => {
      const { clock, saved, debouncer, pass } = await setup();

      const first = await debouncer.debounce('k', 1000, 'a');
      expect(await first.getStatus()).toMatchObject({
        status: 'DELAYED',
        queueName: INTERNAL_QUEUE,
        deduplicationID: '.save-k',
        delayUntilEpochMS: clock.now() + 1000,
        input: ['a'],
      });
      await pass(1000);

      expect(await first.getResult()).toBe('a');
      expect(saved).toEqual(['a']);
    });

    test('puts the workflow off with each call, and gives it the new arguments', async () => {
      const { clock, saved, debouncer } = await setup();
      const first = await debouncer.debounce('k', 1000, 'a');
      await clock.untilArmed(1000);
      clock.advance(600);

      const second = await debouncer.debounce('k', 1000, 'b');
      expect(second.workflowID).toBe(first.workflowID);
      expect(await second.getStatus()).toMatchObject({
        status: 'DELAYED',
        input: ['b'],
        delayUntilEpochMS: clock.now() + 1000,
      });
      await clock.untilArmed(1000);
      clock.advance(999);
      expect((await second.getStatus())?.status).toBe('DELAYED');
      clock.advance(1);

      expect(await first.getResult()).toBe('b');
      expect(saved).toEqual(['b']);
    });

    test('takes the period of the last call, also a shorter one', async () => {
      const { clock, debouncer } = await setup();
      const handle = await debouncer.debounce('k', 60_000, 'a');

      await debouncer.debounce('k', 10, 'b');

      expect((await handle.getStatus())?.delayUntilEpochMS).toBe(clock.now() + 10);
    });

    test('keeps keys apart', async () => {
      const { debouncer, saved, pass } = await setup();

      const handles = [await debouncer.debounce('k', 1000, 'a'), await debouncer.debounce('l', 1000, 'b')];
      await pass(1000);
      await Promise.all(handles.map((handle) => handle.getResult()));

      expect(saved.toSorted()).toEqual(['a', 'b']);
    });

    test('begins anew when another program enqueued the workflow and left it the key', async () => {
      const { DBOS, url, debouncer } = await setup({ startWorkflowParams: { queueName: 'unserved' } });
      const first = await debouncer.debounce('k', 1000, 'a');
      const database = await dialect.open(url);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'ENQUEUED' WHERE workflow_uuid = ${first.workflowID}`);

      const second = await debouncer.debounce('k', 1000, 'b');
      const third = await debouncer.debounce('k', 1000, 'c');

      expect(second.workflowID).not.toBe(first.workflowID);
      expect(third.workflowID).toBe(second.workflowID);
      expect(await DBOS.getWorkflowStatus(first.workflowID)).toMatchObject({ status: 'ENQUEUED', input: ['a'] });
      expect(await third.getStatus()).toMatchObject({ status: 'DELAYED', input: ['c'] });
    });

    test('begins anew when the workflow has left its delay', async () => {
      const { clock, debouncer, saved, pass } = await setup({ startWorkflowParams: { queueName: 'q' } });
      const first = await debouncer.debounce('k', 1000, 'a');
      await pass(1000);
      await until(async () => (await first.getStatus())?.status !== 'DELAYED');
      expect((await first.getStatus())?.deduplicationID).toBeUndefined();

      const second = await debouncer.debounce('k', 1000, 'b');

      expect(second.workflowID).not.toBe(first.workflowID);
      expect(await second.getStatus()).toMatchObject({ status: 'DELAYED', delayUntilEpochMS: clock.now() + 1000 });
      await pass(1000);
      await Promise.all([first.getResult(), second.getResult()]);
      expect(saved).toEqual(['a', 'b']);
    });

    test.each(['cancelled', 'resumed'])('begins anew when the workflow was %s', async (state) => {
      const { DBOS, debouncer } = await setup();
      const first = await debouncer.debounce('k', 1000, 'a');
      if (state === 'cancelled') await DBOS.cancelWorkflow(first.workflowID);
      else await DBOS.resumeWorkflow(first.workflowID);

      const second = await debouncer.debounce('k', 1000, 'b');

      expect(second.workflowID).not.toBe(first.workflowID);
    });

    test('never puts it off for longer than debounceTimeoutMs from the first call on', async () => {
      const { clock, debouncer, saved, pass } = await setup({ debounceTimeoutMs: 2500 });
      const begun = clock.now();
      const handle = await debouncer.debounce('k', 1000, 'a');
      clock.advance(900);
      await debouncer.debounce('k', 1000, 'b');
      clock.advance(900);

      await debouncer.debounce('k', 1000, 'c');

      expect((await handle.getStatus())?.delayUntilEpochMS).toBe(begun + 2500);
      await pass(700);
      await handle.getResult();
      expect(saved).toEqual(['c']);
    });

    test('with a debounceTimeoutMs below the period waits that long only', async () => {
      const { clock, debouncer } = await setup({ debounceTimeoutMs: 300 });

      const handle = await debouncer.debounce('k', 1000, 'a');

      expect((await handle.getStatus())?.delayUntilEpochMS).toBe(clock.now() + 300);
    });

    test('makes one workflow of many calls at once', async () => {
      const { debouncer, saved, pass } = await setup();

      const handles = await Promise.all(
        Array.from({ length: 20 }, (_, n) => debouncer.debounce('k', 1000, `text ${n}`)),
      );
      await pass(1000);

      expect(new Set(handles.map((handle) => handle.workflowID)).size).toBe(1);
      expect(saved).toEqual([await handles[0]?.getResult()]);
    });

    test('is one with those of other processes', async () => {
      const clock = new ManualClock();
      const one = await setup({}, {}, clock);
      const two = await setup({}, { systemDatabaseUrl: one.url }, clock);

      const first = await one.debouncer.debounce('k', 1000, 'a');
      const second = await two.debouncer.debounce('k', 1000, 'b');

      expect(second.workflowID).toBe(first.workflowID);
      expect((await first.getStatus())?.input).toEqual(['b']);
    });
  });

  describe('the workflow of a debouncer', () => {
    test('goes to the queue and has the settings of startWorkflowParams', async () => {
      const { debouncer } = await setup({
        startWorkflowParams: {
          queueName: 'q',
          timeoutMS: 5000,
          authenticatedUser: 'ann',
          workflowAttributes: { tenant: 'acme' },
          enqueueOptions: { applicationVersion: 'v9' },
        },
      });

      const handle = await debouncer.debounce('k', 1000, 'a');

      expect(await handle.getStatus()).toMatchObject({
        queueName: 'q',
        timeoutMS: 5000,
        authenticatedUser: 'ann',
        attributes: { tenant: 'acme' },
        applicationVersion: 'v9',
      });
    });

    test('has the assigned ID if it is a fresh one', async () => {
      const { DBOS, debouncer } = await setup();

      const fresh = await DBOS.withNextWorkflowID('one', () => debouncer.debounce('k', 1000, 'a'));
      const bounced = await DBOS.withNextWorkflowID('two', () => debouncer.debounce('k', 1000, 'b'));

      expect(fresh.workflowID).toBe('one');
      expect(bounced.workflowID).toBe('one');
      expect(await DBOS.getWorkflowStatus('two')).toBeNull();
    });

    test('has the ID of startWorkflowParams if it is a fresh one', async () => {
      const { debouncer } = await setup({ startWorkflowParams: { workflowID: 'mine' } });

      expect((await debouncer.debounce('k', 1000, 'a')).workflowID).toBe('mine');
      expect((await debouncer.debounce('k', 1000, 'b')).workflowID).toBe('mine');
    });

    test('can be that of a class', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const save = DBOS.registerWorkflow(async (text: string) => `${text}!`, { name: 'save', className: 'Editor' });
      await DBOS.launch();

      const handle = await new Debouncer({ workflow: save }, DBOS).debounce('k', 1000, 'a');
      expect(await handle.getStatus()).toMatchObject({ workflowClassName: 'Editor', deduplicationID: 'Editor.save-k' });
      await clock.untilArmed(1000);
      clock.advance(1000);

      expect(await handle.getResult()).toBe('a!');
    });

    test('cannot be a method of an instance, or a function that is no workflow', async () => {
      const { DBOS } = await createEngine(dialect);
      class Editor extends ConfiguredInstance {}
      const save = DBOS.registerWorkflow(async (text: string) => text, {
        name: 'save',
        ctorOrProto: Editor.prototype,
        className: 'Editor',
      });
      new Editor('desk', DBOS);
      await DBOS.launch();
      const refusalOf = (workflow: (text: string) => Promise<string>) =>
        failureOf(Promise.resolve().then(() => new Debouncer({ workflow }, DBOS).debounce('k', 1000, 'a')));

      expect((await refusalOf(save)).name).toBe('DBOSInvalidWorkflowTransitionError');
      expect((await refusalOf(async (text) => text)).name).toBe('DBOSNotRegisteredError');
    });
  });

  describe('a key that somebody else holds', () => {
    test('in the same queue is refused', async () => {
      const { DBOS, save, debouncer } = await setup({ startWorkflowParams: { queueName: 'q' } });
      const enqueueOptions = { deduplicationID: '.save-k', delaySeconds: 100 };
      const holder = await DBOS.startWorkflow(save, { queueName: 'q', enqueueOptions })('plain');

      const error = await failureOf(debouncer.debounce('k', 1000, 'a'));

      expect(error).toMatchObject({ name: 'DBOSQueueDuplicatedError', queue: 'q', deduplicationID: '.save-k' });
      expect((await holder.getStatus())?.input).toEqual(['plain']);
    });

    test('as another application is refused', async () => {
      const clock = new ManualClock();
      const shop = await setup({}, { name: 'shop' }, clock);
      const { DBOS } = await createEngine(dialect, { name: 'other', systemDatabaseUrl: shop.url }, clock.settings);
      const save = DBOS.registerWorkflow(async (text: string) => text, { name: 'save' });
      await DBOS.launch();
      const handle = await shop.debouncer.debounce('k', 1000, 'a');

      const error = await failureOf(new Debouncer({ workflow: save }, DBOS).debounce('k', 1000, 'b'));

      expect(error.name).toBe('DBOSQueueDuplicatedError');
      expect((await handle.getStatus())?.input).toEqual(['a']);
    });

    test('is bounced for the application that the debouncer names', async () => {
      const clock = new ManualClock();
      const shop = await setup({}, { name: 'shop' }, clock);
      const { DBOS } = await createEngine(dialect, { name: 'other', systemDatabaseUrl: shop.url }, clock.settings);
      const save = DBOS.registerWorkflow(async (text: string) => text, { name: 'save' });
      await DBOS.launch();
      const debouncer = new Debouncer({ workflow: save, applicationName: 'shop' }, DBOS);

      const handles = [await shop.debouncer.debounce('k', 1000, 'a'), await debouncer.debounce('k', 1000, 'b')];
      const fresh = await debouncer.debounce('l', 1000, 'c');

      expect(handles[1]?.workflowID).toBe(handles[0]?.workflowID);
      expect((await fresh.getStatus())?.applicationName).toBe('shop');
    });
  });

  describe('a call with nonsense', () => {
    test.each([0, -1, NaN, Infinity])('a period of %s, is refused', async (periodMs) => {
      const { debouncer } = await setup();

      const error = await failureOf(debouncer.debounce('k', periodMs, 'a'));

      expect(error.message).toBe(`debouncePeriodMs must be a positive finite number, but is ${periodMs}.`);
    });

    test.each([0, -1, NaN])('a debounceTimeoutMs of %s, is refused', async (debounceTimeoutMs) => {
      const { debouncer } = await setup({ debounceTimeoutMs });

      const error = await failureOf(debouncer.debounce('k', 1000, 'a'));

      expect(error.message).toBe(`debounceTimeoutMs must be a positive finite number, but is ${debounceTimeoutMs}.`);
    });

    test('a key that is no text, is refused', async () => {
      const { debouncer } = await setup();

      expect((await failureOf(debouncer.debounce(1 as never, 1000, 'a'))).name).toBe('DBOSInvalidArgumentError');
    });

    test.each<[StartWorkflowParams, string]>([
      [{ enqueueOptions: { deduplicationID: 'd' } }, 'deduplicationID'],
      [{ enqueueOptions: { delaySeconds: 1 } }, 'delaySeconds'],
      [{ enqueueOptions: { priority: 1 } }, 'priority'],
      [{ enqueueOptions: { queuePartitionKey: 'p' } }, 'queuePartitionKey'],
      [{ enqueueOptions: { applicationName: 'other' } }, 'applicationName'],
      [{ duplicationPolicy: 'return-existing' }, "duplicationPolicy 'return-existing'"],
      [{ workflowIDReusePolicy: 'reject' }, "workflowIDReusePolicy 'reject'"],
    ])('%j, is refused', async (startWorkflowParams, name) => {
      const { debouncer } = await setup({ startWorkflowParams });

      const error = await failureOf(debouncer.debounce('k', 1000, 'a'));

      expect(error).toMatchObject({ name: 'DBOSInvalidArgumentError' });
      expect(error.message).toBe(`A debounced workflow cannot have: ${name}.`);
    });

    test('a partitioned queue, is refused', async () => {
      const { DBOS, debouncer } = await setup({ startWorkflowParams: { queueName: 'parts' } });
      await DBOS.registerQueue('parts', { partitionConcurrency: 1 });

      expect((await failureOf(debouncer.debounce('k', 1000, 'a')))['code']).toBe('INVALID_QUEUE');
    });
  });

  describe('in a workflow', () => {
    test('takes its numbers when it is called, not when it gets on: calls side by side keep theirs', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflows = ['a', 'b'].map((name) => DBOS.registerWorkflow((_: string) => Promise.resolve(), { name }));
      const debouncers = workflows.map((workflow) => new Debouncer({ workflow }, DBOS));
      const parent = DBOS.registerWorkflow(
        async () => {
          await Promise.all(debouncers.map((debouncer) => debouncer.debounce('k', 60_000, 'x')));
        },
        { name: 'parent' },
      );
      await DBOS.launch();

      await (await DBOS.startWorkflow(parent, { workflowID: 'parent' })()).getResult();

      const steps = (await DBOS.listWorkflowSteps('parent')) ?? [];
      expect(steps.map(({ functionID, name }) => [functionID, name])).toEqual([
        [0, 'DBOS.debounceDelayedWorkflow'],
        [1, 'a'],
        [2, 'DBOS.debounceDelayedWorkflow'],
        [3, 'b'],
      ]);
    });

    /** Two generations of an application in which workflow `parent` runs the body; the first ends before it does. */
    async function replay<R>(body: (debouncer: Debouncer<[string], string>, DBOS: DBOSInstance) => Promise<R>) {
      const clock = new ManualClock();
      const { first, second } = await createGenerations(dialect, {}, clock.settings);
      const halt = newHalt();
      const results: R[] = [];
      const parents = [first, second].map((DBOS) => {
        const save = DBOS.registerWorkflow(async (text: string) => text, { name: 'save' });
        const debouncer = new Debouncer({ workflow: save }, DBOS);
        return DBOS.registerWorkflow(
          async () => {
            results.push(await body(debouncer, DBOS));
            if (DBOS === first) await halt.here();
          },
          { name: 'parent' },
        );
      });
      await first.launch();
      await first.startWorkflow(parents[0] as () => Promise<void>, { workflowID: 'parent', timeoutMS: 60_000 })();
      await halt.reached;
      await first.shutdown();
      await second.launch();
      await second.retrieveWorkflow('parent').getResult();
      return { results, DBOS: second, steps: (await second.listWorkflowSteps('parent'))! };
    }

    test('each bounce and each start is recorded, and repeated after a recovery', async () => {
      const { results, steps, DBOS } = await replay(async (debouncer) => {
        const first = await debouncer.debounce('k', 1000, 'a');
        const second = await debouncer.debounce('k', 1000, 'b');
        return [first.workflowID, second.workflowID];
      });

      expect(results).toEqual([
        ['parent-1', 'parent-1'],
        ['parent-1', 'parent-1'],
      ]);
      expect(steps.map(({ name, output, childWorkflowID }) => [name, output, childWorkflowID])).toEqual([
        ['DBOS.debounceDelayedWorkflow', null, null],
        ['save', null, 'parent-1'],
        ['DBOS.debounceDelayedWorkflow', 'parent-1', null],
      ]);
      expect(await DBOS.getWorkflowStatus('parent-1')).toMatchObject({
        parentWorkflowID: 'parent',
        input: ['b'],
        // Whoever calls first does not decide how long it may run.
        timeoutMS: undefined,
        deadlineEpochMS: undefined,
      });
    });

    test('a race for the key that was lost ends the same after a recovery', async () => {
      const halts = { start: newHalt(), end: newHalt() };
      let texts = 0;
      const serializer = {
        name: () => 'slow_json',
        parse: (text: string | null | undefined): unknown => (text == null ? null : JSON.parse(text)),
        // The first text is that of the bounce, the second that of the start.
        stringify: async (value: unknown) => {
          if (JSON.stringify(value) === '["a"]' && ++texts === 2) await halts.start.here();
          return JSON.stringify(value) ?? 'null';
        },
      };
      const { first, second } = await createGenerations(dialect, { serializer }, new ManualClock().settings);
      const register = (DBOS: DBOSInstance) => {
        const save = DBOS.registerWorkflow(async (text: string) => text, { name: 'save' });
        const debouncer = new Debouncer({ workflow: save }, DBOS);
        const parent = DBOS.registerWorkflow(
          async () => {
            const { workflowID } = await debouncer.debounce('k', 1000, 'a');
            if (DBOS === first) await halts.end.here();
            return workflowID;
          },
          { name: 'parent' },
        );
        return { debouncer, parent };
      };
      const one = register(first);
      register(second);
      await first.launch();
      await first.startWorkflow(one.parent, { workflowID: 'parent' })();
      await halts.start.reached;
      const winner = await one.debouncer.debounce('k', 1000, 'b');
      halts.start.release();
      await halts.end.reached;
      await first.shutdown();

      await second.launch();

      expect(await second.retrieveWorkflow('parent').getResult()).toBe(winner.workflowID);
      const steps = (await second.listWorkflowSteps('parent'))!;
      expect(steps.map(({ name, output, error }) => [name, output, error?.name])).toEqual([
        ['DBOS.debounceDelayedWorkflow', null, undefined],
        ['save', null, 'DBOSQueueDuplicatedError'],
        ['DBOS.debounceDelayedWorkflow', winner.workflowID, undefined],
      ]);
    });
  });
});
