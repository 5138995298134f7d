import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/index.js';
import { findWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { replayParent, setupEnqueueing } from './enqueueing.js';
import { failureOf } from '../../run/succession.js';

forEachDialect((dialect) => {
  const setup = (clock?: ManualClock) => setupEnqueueing(dialect, clock);
  const replay = <R>(body: (DBOS: DBOSInstance) => Promise<R>) => replayParent(dialect, body);

  describe('enqueueWorkflowWithOptions', () => {
    test('stores what it is told, and needs no function here', async () => {
      const clock = new ManualClock();
      const { DBOS, url } = await setup(clock);

      const handle = await DBOS.enqueueWorkflowWithOptions(
        {
          queueName: 'q',
          workflowName: 'render',
          workflowClassName: 'Videos',
          workflowConfigName: 'hd',
          workflowID: 'w',
          appVersion: 'v7',
          workflowTimeoutMS: 250,
          deduplicationID: 'd',
          priority: 4,
          queuePartitionKey: 'k',
          delaySeconds: 2,
          attributes: { a: 1 },
          authenticatedUser: 'ann',
          authenticatedRoles: ['admin'],
          applicationName: 'videos',
        },
        'cat.mp4',
        { width: 10 },
      );

      expect(await handle.getStatus()).toMatchObject({
        workflowID: 'w',
        status: 'DELAYED',
        queueName: 'q',
        workflowName: 'render',
        workflowClassName: 'Videos',
        workflowConfigName: 'hd',
        applicationVersion: 'v7',
        timeoutMS: 250,
        deduplicationID: 'd',
        priority: 4,
        queuePartitionKey: 'k',
        delayUntilEpochMS: clock.now() + 2000,
        attributes: { a: 1 },
        authenticatedUser: 'ann',
        authenticatedRoles: ['admin'],
        applicationName: 'videos',
        input: ['cat.mp4', { width: 10 }],
      });
      const [row] = await findWorkflows(await dialect.open(url), ['w']);
      expect([row?.serialization, row?.inputs]).toEqual([
        'js_superjson',
        '{"json":["cat.mp4",{"width":10}],"__dbos_serializer":"superjson"}',
      ]);
    });

    test('leaves out what it is not told: version, class, instance and user', async () => {
      const { DBOS, url } = await setup();

      const { workflowID } = await DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'render' });

      const [row] = await findWorkflows(await dialect.open(url), [workflowID]);
      expect(row).toMatchObject({
        status: 'ENQUEUED',
        className: null,
        configName: null,
        applicationVersion: null,
        applicationName: 'shop',
        authenticatedUser: '',
        authenticatedRoles: '[]',
        assumedRole: '',
        executorID: '',
        recoveryAttempts: 0,
        priority: 0,
        timeoutMs: null,
        deadlineAt: null,
        parentWorkflowID: null,
      });
    });

    test.each([
      ['queueName', { queueName: '', workflowName: 'echo' }],
      ['workflowName', { queueName: 'q', workflowName: ' ' }],
      ['queueName', { workflowName: 'echo' } as never],
    ])('needs a %s', async (field, options) => {
      const { DBOS } = await setup();

      const error = await failureOf(Promise.resolve().then(() => DBOS.enqueueWorkflowWithOptions(options)));

      expect(error.message).toContain(`options.${field} must`);
    });

    test('runs a function that is here, and gives its result', async () => {
      const { DBOS } = await setup();
      await DBOS.registerQueue('open');

      const handle = await DBOS.enqueueWorkflowWithOptions<unknown[]>(
        { queueName: 'open', workflowName: 'echo' },
        1,
        [2],
      );

      expect(await handle.getResult()).toEqual([1, [2]]);
    });

    test('has the user and the timeout that are set around it', async () => {
      const { DBOS } = await setup();

      const handle = await DBOS.withAuthedContext('ann', ['admin'], () =>
        DBOS.withWorkflowTimeout(700, () =>
          DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'render' }),
        ),
      );

      expect(await handle.getStatus()).toMatchObject({
        authenticatedUser: 'ann',
        authenticatedRoles: ['admin'],
        timeoutMS: 700,
      });
    });

    test('in a workflow is a child with the ID of its place, recorded under its name', async () => {
      const { results, steps, DBOS } = await replay(async (own) => {
        await own.runStep(async () => {}, { name: 'before' });
        const handle = await own.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'render' });
        const named = await own.enqueueWorkflowWithOptions({
          queueName: 'q',
          workflowName: 'render',
          workflowID: 'mine',
        });
        return [handle.workflowID, named.workflowID];
      });

      expect(results).toEqual([
        ['parent-1', 'mine'],
        ['parent-1', 'mine'],
      ]);
      expect(steps.map(({ name, childWorkflowID }) => [name, childWorkflowID])).toEqual([
        ['before', null],
        ['render', 'parent-1'],
        ['render', 'mine'],
      ]);
      expect(await DBOS.getWorkflowStatus('parent-1')).toMatchObject({
        parentWorkflowID: 'parent',
        status: 'ENQUEUED',
      });
    });

    test('is not for steps', async () => {
      const { DBOS, inWorkflow } = await setup();
      const options = { queueName: 'q', workflowName: 'render' };

      const error = await failureOf(
        inWorkflow(() => DBOS.runStep(async () => void (await DBOS.enqueueWorkflowWithOptions(options)))),
      );

      expect(error.name).toBe('DBOSInvalidWorkflowTransitionError');
    });

    test('without a version is for the latest version only', async () => {
      const { DBOS: older, url } = await createEngine(dialect, { applicationVersion: 'v1' });
      const { DBOS: latest } = await createEngine(dialect, { applicationVersion: 'v2', systemDatabaseUrl: url });
      for (const DBOS of [older, latest]) {
        DBOS.registerWorkflow(async () => DBOS.applicationVersion, { name: 'version' });
      }
      await older.launch();
      await older.registerQueue('q');
      await latest.launch();

      const options = { queueName: 'q', workflowName: 'version' };
      const handles = [];
      for (let n = 0; n < 5; n += 1) handles.push(await older.enqueueWorkflowWithOptions(options));
      const pinned = await latest.enqueueWorkflowWithOptions({ ...options, appVersion: 'v1' });

      expect(await Promise.all(handles.map((handle) => handle.getResult()))).toEqual(handles.map(() => 'v2'));
      expect(await pinned.getResult()).toBe('v1');
      expect((await handles[0]?.getStatus())?.applicationVersion).toBe('v2');
    });

    test('for another application is taken by that one', async () => {
      const { DBOS: shop, url } = await createEngine(dialect, { name: 'shop' });
      const { DBOS: videos } = await createEngine(dialect, { name: 'videos', systemDatabaseUrl: url });
      shop.registerWorkflow(async () => 'shop', { name: 'workflow' });
      videos.registerWorkflow(async () => 'videos', { name: 'workflow' });
      await shop.launch();
      await videos.launch();
      await videos.registerQueue('renders');

      const handle = await shop.enqueueWorkflowWithOptions({
        queueName: 'renders',
        workflowName: 'workflow',
        applicationName: 'videos',
      });

      expect(await handle.getResult()).toBe('videos');
    });
  });

  describe('enqueueWorkflowWithOptionsPortable', () => {
    test('stores the arguments in the form that every language reads', async () => {
      const { DBOS, url } = await setup();
      const options = { queueName: 'q', workflowName: 'render' };

      await DBOS.enqueueWorkflowWithOptionsPortable({ ...options, workflowID: 'both' }, ['cat', 1, null], { w: 1.5 });
      await DBOS.enqueueWorkflowWithOptionsPortable({ ...options, workflowID: 'positional' }, [['a'], { b: true }]);
      await DBOS.enqueueWorkflowWithOptions({ ...options, workflowID: 'typed', serializationType: 'portable' }, 'cat');

      const rows = await findWorkflows(await dialect.open(url), ['both', 'positional', 'typed']);
      const inputs = Object.fromEntries(rows.map((row) => [row.workflowID, row.inputs]));
      expect(inputs).toEqual({
        both: '{"positionalArgs":["cat",1,null],"namedArgs":{"w":1.5}}',
        positional: '{"positionalArgs":[["a"],{"b":true}],"namedArgs":{}}',
        typed: '{"positionalArgs":["cat"]}',
      });
      expect(rows.map((row) => row.serialization)).toEqual(rows.map(() => 'portable_json'));
    });

    test('gives a function its named arguments last, in one object', async () => {
      const { DBOS } = await setup();
      await DBOS.registerQueue('open');
      const options = { queueName: 'open', workflowName: 'echo' };

      const named = await DBOS.enqueueWorkflowWithOptionsPortable(options, ['a'], { size: 2 });
      const positional = await DBOS.enqueueWorkflowWithOptionsPortable(options, ['a']);

      expect(await named.getResult()).toEqual(['a', { size: 2 }]);
      expect(await positional.getResult()).toEqual(['a']);
    });
  });
});
