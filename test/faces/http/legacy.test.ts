import { describe, expect, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { LEGACY_ROUTES } from '../../../src/faces/http/legacy.js';
import { WorkflowQueue } from '../../../src/faces/library/workflow-queue.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { callerOf, setup, TOKEN } from './scene.js';

describe('the endpoints of older versions', () => {
  forEachDialect((dialect) => {
    test('tell of the process', async () => {
      const { call } = await setup(dialect);

      const healthy = await call('GET', '/dbos-healthz');
      const perf = await call('GET', '/dbos-perf');
      const conductor = await call('GET', '/conductor');
      const recovery = await call('POST', '/dbos-workflow-recovery', ['gone', 'lost']);
      const options = await call('OPTIONS', '/dbos-healthz');
      const unknown = await call('GET', '/unknown');

      expect([healthy.status, healthy.body]).toEqual([200, 'healthy']);
      expect([perf.status, Object.keys(perf.body as object).toSorted()]).toEqual([
        200,
        ['active', 'idle', 'utilization'],
      ]);
      expect([conductor.status, conductor.body]).toEqual([200, { status: true }]);
      expect([recovery.status, recovery.body]).toEqual([200, []]);
      expect(options.status).toBe(200);
      expect([unknown.status, unknown.body]).toEqual([404, 'Not Found']);
    });

    test('deactivate what brings workflows in, once', async () => {
      const { DBOS } = await createEngine(dialect);
      let destroyed = 0;
      DBOS.registerLifecycleCallback({ destroy: async () => void (destroyed += 1) });
      await DBOS.launch();
      const call = callerOf(createAdmin({ source: DBOS, token: TOKEN }).fetch);

      const first = await call('GET', '/deactivate');
      await call('GET', '/deactivate');
      await DBOS.shutdown();

      expect([first.status, first.body, destroyed]).toEqual([200, 'Deactivated', 1]);
    });

    test('describe the queues, those in memory too', async () => {
      const { DBOS } = await createEngine(dialect);
      new WorkflowQueue('memory', { concurrency: 3 }, DBOS);
      await DBOS.launch();
      await DBOS.registerQueue('q', { workerConcurrency: 2, rateLimit: { limitPerPeriod: 5, periodSec: 1 } });
      const call = callerOf(createAdmin({ source: DBOS, token: TOKEN }).fetch);

      const { status, body } = await call('GET', '/dbos-workflow-queues-metadata');

      expect(status).toBe(200);
      expect(body).toEqual([
        { name: 'q', workerConcurrency: 2, rateLimit: { limitPerPeriod: 5, periodSec: 1 } },
        { name: '_dbos_internal_queue' },
        { name: 'memory', concurrency: 3 },
      ]);
    });

    test('show and list workflows and their steps', async () => {
      const { call, run, enqueue } = await setup(dialect);
      const told = await run('tell', { attributes: { a: 1 } });
      const failed = await run('fail');
      const delayed = await enqueue('add', { args: [1, 2], delaySeconds: 1000 });

      const workflow = await call('GET', `/workflows/${told}`);
      expect(workflow.status).toBe(200);
      expect(workflow.body).toMatchObject({
        WorkflowUUID: told,
        Status: 'SUCCESS',
        WorkflowName: 'tell',
        Input: '[]',
        Output: '{ at: 1970-01-01T00:00:00.000Z, big: 12n }',
        CreatedAt: expect.stringMatching(/^\d+$/) as string,
        Priority: '0',
        WasForkedFrom: false,
        Attributes: '{"a":1}',
        QueueName: 'q',
      });
      expect(workflow.body).not.toHaveProperty('WorkflowClassName');
      const withError = (await call('GET', `/workflows/${failed}`)).body as { Error: string };
      expect(JSON.parse(withError.Error)).toMatchObject({ name: 'Error', message: 'It failed.' });
      const missing = await call('GET', '/workflows/nobody');
      expect([missing.status, Object.keys(missing.body as object)]).toEqual([404, ['error']]);

      const steps = await call('GET', `/workflows/${told}/steps`);
      expect((steps.body as unknown[]).at(-1)).toMatchObject({
        function_id: 3,
        function_name: 'map',
        output: "Map(1) { 'key' => Set(1) { 1 } }",
        started_at_epoch_ms: expect.stringMatching(/^\d+$/) as string,
      });
      expect((await call('GET', '/workflows/nobody/steps')).body).toEqual([]);

      const ids = async (path: string, filter: object) =>
        ((await call('POST', path, filter)).body as { WorkflowUUID: string }[]).map((one) => one.WorkflowUUID);
      expect(await ids('/workflows', {})).toEqual([told, failed, delayed]);
      expect(await ids('/workflows', { sort_desc: true, limit: 1 })).toEqual([delayed]);
      expect(await ids('/workflows', { workflow_uuids: [told, 'nobody'] })).toEqual([told]);
      expect(await ids('/workflows', { workflow_name: 'fail', status: 'ERROR' })).toEqual([failed]);
      expect(await ids('/workflows', { end_time: '2020-01-01T00:00:00Z' })).toEqual([]);
      expect(await ids('/queues', {})).toEqual([delayed]);
      expect(await ids('/queues', { queue_name: 'other' })).toEqual([]);
      const loaded = await call('POST', '/workflows', { workflow_uuids: [delayed], load_input: true });
      expect(loaded.body[0].Input).toBe('[ 1, 2 ]');
    });

    test('cancel, resume, restart and fork workflows', async () => {
      const { call, run, enqueue, DBOS } = await setup(dialect);
      const receiving = await enqueue('receive');
      const added = await run('add', { args: [1, 2] });

      expect((await call('POST', `/workflows/${receiving}/cancel`)).status).toBe(204);
      expect((await DBOS.getWorkflowStatus(receiving))?.status).toBe('CANCELLED');
      expect((await call('POST', `/workflows/${receiving}/resume`)).status).toBe(204);
      expect((await DBOS.getWorkflowStatus(receiving))?.status).toMatch(/ENQUEUED|PENDING/);
      expect((await call('POST', '/workflows/nobody/cancel')).status).toBe(204);
      const missing = await call('POST', '/workflows/nobody/resume');
      expect([missing.status, missing.body]).toEqual([500, { error: 'Workflow nobody does not exist' }]);

      const restarted = await call('POST', `/workflows/${added}/restart`);
      expect(restarted.status).toBe(200);
      expect(await DBOS.retrieveWorkflow(restarted.body.workflow_id as string).getResult()).toBe(3);
      const forked = await call('POST', `/workflows/${added}/fork`, { start_step: 0, new_workflow_id: 'fork' });
      expect([forked.status, forked.body]).toEqual([200, { workflow_id: 'fork' }]);
      expect((await call('POST', `/workflows/${added}/fork`, {})).status).toBe(400);
      expect((await call('POST', `/workflows/${added}/fork`)).status).toBe(400);
      const taken = await call('POST', `/workflows/${added}/fork`, { start_step: 0, new_workflow_id: 'fork' });
      expect([taken.status, Object.keys(taken.body as object)]).toEqual([500, ['error']]);
      await DBOS.waitAll([DBOS.retrieveWorkflow('fork')]);
    });

    test('collect garbage and end what is old', async () => {
      const { call, run, enqueue, DBOS } = await setup(dialect);
      const added = await run('add', { args: [1, 2] });
      const receiving = await enqueue('receive');
      const later = { cutoff_epoch_timestamp_ms: 4_000_000_000_000 };

      expect((await call('POST', '/dbos-global-timeout', later)).status).toBe(204);
      expect((await DBOS.getWorkflowStatus(receiving))?.status).toBe('CANCELLED');
      expect((await call('POST', '/dbos-garbage-collect', { rows_threshold: 10 })).status).toBe(204);
      expect(await DBOS.getWorkflowStatus(added)).not.toBeNull();
      expect((await call('POST', '/dbos-garbage-collect', later)).status).toBe(204);
      expect(await DBOS.getWorkflowStatus(added)).toBeNull();
    });

    test('answer 400 to what they cannot read', async () => {
      const { call } = await setup(dialect);

      for (const { path } of LEGACY_ROUTES.filter(({ method }) => method === 'POST')) {
        const answer = await call('POST', path.replace('{workflowID}', 'x'), '{ not JSON');
        expect([answer.status, answer.body], path).toEqual([400, { error: 'The body is not valid JSON.' }]);
      }
      for (const filter of [
        { limit: 'many' },
        { status: "' OR 1=1 --" },
        { start_time: 'soon' },
        { workflow_uuids: [1] },
      ]) {
        expect((await call('POST', '/workflows', filter)).status, JSON.stringify(filter)).toBe(400);
      }
      expect((await call('POST', '/dbos-workflow-recovery', { executor: 1 })).status).toBe(400);
      expect((await call('GET', '/workflows/%00')).status).toBe(400);
      const injected = await call('POST', '/workflows', { workflow_name: "' OR '1'='1", workflow_id_prefix: '%' });
      expect([injected.status, injected.body]).toEqual([200, []]);
    });
  });
});
