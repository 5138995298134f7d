import { describe, expect, onTestFinished, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { ROUTES } from '../../../src/faces/http/routes.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { type Answer, callerOf, setup as setupScene, TOKEN } from './scene.js';

/** Routes that a test has called with success, over all tests of a dialect. */
const called: Record<TestDialect['name'], Set<string>> = { sqlite: new Set(), postgres: new Set() };

/** The scene, with calls that insist on success and on the shape that the table promises. */
async function setup(dialect: TestDialect) {
  const scene = await setupScene(dialect);
  const ok = async (method: string, path: string, body?: unknown): Promise<Answer['body']> => {
    const answer = await scene.call(method, `/api/v1${path}`, body);
    expect([answer.status, answer.body], `${method} ${path}`).toEqual([
      expect.toSatisfy((status: number) => status < 300),
      answer.body,
    ]);
    const route = ROUTES.find((one) => one.method === method && patternOf(one.path).test(path));
    expect(route, `${method} ${path}`).toBeDefined();
    expect(answer.status).toBe(route?.status);
    if (route?.result) route.result.read(answer.body, 'answer');
    else if (!route?.mediaType) expect(answer.body).toBe('');
    called[dialect.name].add(`${method} ${route?.path}`);
    return answer.body;
  };
  return { ...scene, ok };
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?|$)`);
}

describe('the JSON API', () => {
  forEachDialect((dialect) => {
    test('shows a workflow with its steps, events, messages and streams', async () => {
      const { ok, run, enqueue } = await setup(dialect);
      const told = await run('tell');
      const failed = await run('fail');
      const receiving = await enqueue('receive');

      const workflow = await ok('GET', `/workflows/${told}`);
      expect(workflow).toMatchObject({
        workflowID: told,
        status: 'SUCCESS',
        workflowName: 'tell',
        input: { json: [], isExact: true },
        output: {
          json: { at: '1970-01-01T00:00:00.000Z', big: '12' },
          isExact: false,
          text: '{ at: 1970-01-01T00:00:00.000Z, big: 12n }',
        },
      });
      expect((await ok('GET', `/workflows/${failed}`)).error.json).toMatchObject({
        name: 'Error',
        message: 'It failed.',
      });
      const { steps } = await ok('GET', `/workflows/${told}/steps`);
      expect((steps as unknown[]).at(-1)).toMatchObject({
        name: 'map',
        output: { json: { key: [1] }, isExact: false },
      });
      expect((await ok('GET', `/workflows/${told}/steps?offset=1&limit=1`)).steps).toEqual([steps[1]]);
      expect((await ok('GET', `/workflows/${told}/events`)).events.when.json).toBe('1970-01-01T00:00:00.000Z');
      expect((await ok('GET', `/workflows/${told}/streams`)).streams).toMatchObject([{ key: 'numbers' }]);
      expect((await ok('GET', `/workflows/${told}/stream-values?key=numbers`)).values[0].value.text).toBe('1n');
      expect((await ok('GET', `/workflows/${told}/explanation`)).reason).toBe('succeeded');
      const { events } = await ok('GET', `/workflows/${failed}/history?payloads=true`);
      expect(events[0]).toMatchObject({ type: 'WorkflowStarted', details: { workflow_name: 'fail' } });
      expect((events as unknown[]).at(-1)).toMatchObject({
        type: 'WorkflowFailed',
        payloads: { error: { json: { message: 'It failed.' } } },
      });
      const later = await ok('GET', `/workflows/${failed}/history?after=${events[0].cursor}&limit=1`);
      expect(later.events).toMatchObject([{ cursor: events[1].cursor }]);
      expect((await ok('GET', '/history?since=0&types=AttemptLost')).events).toEqual([]);

      await ok('POST', `/workflows/${receiving}/messages`, {
        message: { deep: [1] },
        topic: 'topic',
        idempotencyKey: 'k',
      });
      await ok('POST', `/workflows/${receiving}/messages`, { message: 'twice', topic: 'topic', idempotencyKey: 'k' });
      const { messages } = await ok('GET', `/workflows/${receiving}/messages`);
      expect(messages).toMatchObject([{ topic: 'topic', message: { json: { deep: [1] }, isExact: true } }]);
    });

    test('enqueues workflows', async () => {
      const { ok, call, DBOS } = await setup(dialect);
      const options = { queueName: 'q', workflowName: 'add', delaySeconds: 1000, deduplicationID: 'once' };

      const { workflowID } = await ok('POST', '/workflows', { ...options, priority: 2, attributes: { a: [1] } });
      const again = await call('POST', '/api/v1/workflows', options);
      const same = await ok('POST', '/workflows', { ...options, duplicationPolicy: 'return-existing' });
      const portable = await ok('POST', '/workflows', {
        queueName: 'q',
        workflowName: 'add',
        workflowID: 'mine',
        serializationType: 'portable',
        args: [40, 2],
      });

      expect(await ok('GET', `/workflows/${workflowID}`)).toMatchObject({ status: 'DELAYED', attributes: { a: [1] } });
      expect([again.status, again.body.error.code]).toEqual([409, 'QUEUE_DUPLICATED']);
      expect(same).toEqual({ workflowID });
      expect(portable).toEqual({ workflowID: 'mine' });
      expect(await DBOS.retrieveWorkflow('mine').getResult()).toBe(42);
    });

    test('lists pages of workflows, counts them and gives figures', async () => {
      const { ok, run } = await setup(dialect);
      for (let index = 0; index < 5; index += 1) await run('add', { args: [index, 1], attributes: { index } });
      await run('fail');

      const first = await ok('GET', '/workflows?limit=4&loadOutput=true&loadInput=true');
      const second = await ok('GET', `/workflows?limit=4&cursor=${first.nextCursor}`);
      expect(first.workflows).toMatchObject(['fail', 'add', 'add', 'add'].map((workflowName) => ({ workflowName })));
      expect(first.workflows[1]).toMatchObject({ input: { json: [4, 1] }, output: { json: 5 } });
      expect(second.workflows).toHaveLength(2);
      expect(second.nextCursor).toBeNull();
      expect(second.workflows[0]).not.toHaveProperty('output');
      expect(second.workflows[0]).not.toHaveProperty('input');
      const filtered = await ok(
        'GET',
        '/workflows?status=SUCCESS&status=ERROR&workflowName=add&attributes={"index":2}',
      );
      expect(filtered.workflows).toMatchObject([{ attributes: { index: 2 } }]);
      expect((await ok('GET', '/workflow-count?status=ERROR&queueName=q&startTime=2020-01-01T00:00:00Z')).count).toBe(
        1,
      );

      const { aggregates } = await ok('POST', '/aggregates/workflows', {
        groupByName: true,
        selectCount: true,
        status: ['SUCCESS'],
        workflowName: ['add'],
      });
      expect(aggregates).toMatchObject([{ group: { name: 'add' }, count: 5, minCreatedAt: null }]);
      const steps = await ok('POST', '/aggregates/steps', { groupByFunctionName: true, selectCount: true });
      expect(steps.aggregates).toMatchObject([{ group: { function_name: 'first' }, count: 1 }]);
      const { metrics } = await ok('GET', '/metrics?startTime=2020-01-01T00:00:00Z&endTime=2100-01-01T00:00:00Z');
      expect(metrics).toContainEqual({ metricType: 'workflow_count', metricName: 'add', value: 5 });
    });

    test('cancels, resumes, forks, rewinds, changes and deletes a workflow', async () => {
      const { ok, call, enqueue, run, DBOS } = await setup(dialect);
      const receiving = await enqueue('receive');
      const failed = await run('fail');
      const delayed = await enqueue('add', { args: [1, 2], delaySeconds: 1000 });

      await ok('POST', `/workflows/${receiving}/cancel`, { cancelChildren: true });
      expect((await ok('GET', `/workflows/${receiving}`)).status).toBe('CANCELLED');
      await ok('POST', `/workflows/${receiving}/resume`, { queueName: 'q' });
      await ok('POST', `/workflows/${receiving}/messages`, { message: 'hello', topic: 'topic' });
      expect(await DBOS.retrieveWorkflow(receiving).getResult()).toBe('hello');

      const fork = await ok('POST', `/workflows/${failed}/fork`, { startStep: 1, newWorkflowID: 'the-fork' });
      expect(fork).toEqual({ workflowID: 'the-fork' });
      await DBOS.waitAll([DBOS.retrieveWorkflow('the-fork')]);
      expect(await ok('GET', '/workflows/the-fork')).toMatchObject({ status: 'ERROR', forkedFrom: failed });
      await ok('POST', `/workflows/${receiving}/rewind`);
      await ok('POST', `/workflows/${receiving}/messages`, { message: 'again', topic: 'topic' });
      expect(await DBOS.retrieveWorkflow(receiving).getResult()).toBe('again');

      await ok('PATCH', `/workflows/${delayed}/attributes`, { attributes: { customer: 7 } });
      await ok('PUT', `/workflows/${delayed}/priority`, { priority: 3 });
      await ok('PUT', `/workflows/${delayed}/delay`, { delayUntilEpochMS: 4_000_000_000_000 });
      expect(await ok('GET', `/workflows/${delayed}`)).toMatchObject({
        attributes: { customer: 7 },
        priority: 3,
        delayUntilEpochMS: 4_000_000_000_000,
      });
      await ok('DELETE', `/workflows/${delayed}?deleteChildren=true`);
      expect((await call('GET', `/api/v1/workflows/${delayed}`)).status).toBe(404);
    });

    test('keeps who changed many workflows at once, and why', async () => {
      const { ok, enqueue, DBOS } = await setup(dialect);
      const ids = [await enqueue('receive'), await enqueue('receive')];
      const why = { reason: 'wrong input', actor: 'ops@example.com' };

      await ok('POST', '/bulk/cancel', { workflowIDs: ids, ...why });
      await ok('POST', '/bulk/resume', { workflowIDs: ids, ...why });
      const forks = ids.map((workflowID) => ({ workflowID, startStep: 0 }));
      await ok('POST', '/bulk/fork', { forks, ...why });
      await ok('POST', '/bulk/fork-from-failure', { workflowIDs: ids, fromStep: 0, ...why });

      const told = [];
      const types = ['WorkflowCancelRequested', 'WorkflowResumed', 'WorkflowForked'];
      for (const id of ids) {
        for await (const { actor, details } of DBOS.getHistory(id, { types })) told.push([actor, details['reason']]);
      }
      expect(told).toEqual(Array.from({ length: 8 }, () => [why.actor, why.reason]));
      await ok('POST', '/bulk/delete', { workflowIDs: ids, ...why });
    });

    test('says which workflows were changed', async () => {
      const { ok, call, enqueue, run } = await setup(dialect);
      const waiting = await enqueue('receive', { delaySeconds: 1000 });
      const other = await enqueue('receive', { delaySeconds: 1000 });
      const done = await run('add', { args: [1, 2] });
      const running = await enqueue('receive');

      expect(await ok('PUT', `/workflows/${waiting}/delay`, { delaySeconds: 500 })).toEqual({ changed: true });
      expect(await ok('PUT', `/workflows/${done}/delay`, { delaySeconds: 500 })).toEqual({ changed: false });
      expect(await ok('PUT', `/workflows/${waiting}/priority`, { priority: 3 })).toEqual({ changed: true });
      expect(await ok('PUT', `/workflows/${done}/priority`, { priority: 3 })).toEqual({ changed: false });
      expect(await ok('POST', `/workflows/${waiting}/cancel`)).toEqual({ workflowIDs: [waiting] });
      expect(await ok('POST', `/workflows/${waiting}/cancel`)).toEqual({ workflowIDs: [] });
      expect(await ok('POST', '/bulk/cancel', { workflowIDs: [waiting, other, done, 'nobody'] })).toEqual({
        workflowIDs: [other],
      });
      expect(await ok('POST', `/workflows/${running}/resume`, { queueName: 'q' })).toEqual({ workflowIDs: [running] });
      expect(await ok('POST', `/workflows/${done}/resume`)).toEqual({ workflowIDs: [] });
      const resumed = await ok('POST', '/bulk/resume', { workflowIDs: [waiting, done], queueName: 'nowhere' });
      expect(resumed).toEqual({ workflowIDs: [waiting] });
      expect(await ok('DELETE', `/workflows/${waiting}?reason=test`)).toEqual({ workflowIDs: [waiting] });
      expect((await call('DELETE', `/api/v1/workflows/${waiting}`)).status).toBe(404);
      expect((await ok('GET', `/workflows/${waiting}/history`)).events).toMatchObject([
        { type: 'WorkflowDeleted', details: { reason: 'test' } },
      ]);
      expect((await call('GET', '/api/v1/workflows/none/history')).status).toBe(404);
      expect(await ok('POST', '/bulk/delete', { workflowIDs: [waiting, done] })).toEqual({ workflowIDs: [done] });
    });

    test('acts on many workflows at once, and clears away', async () => {
      const { ok, enqueue, run, DBOS } = await setup(dialect);
      const ids = [await enqueue('receive'), await enqueue('receive')];
      const failed = await run('fail');

      await ok('POST', '/bulk/cancel', { workflowIDs: ids });
      expect((await ok('GET', `/workflow-count?status=CANCELLED`)).count).toBe(2);
      await ok('POST', '/bulk/resume', { workflowIDs: ids, queueName: 'q' });
      const forks = await ok('POST', '/bulk/fork', { forks: [{ workflowID: failed, startStep: 0 }] });
      const more = await ok('POST', '/bulk/fork-from-failure', { workflowIDs: [failed], fromLastFailure: true });
      const forkIDs = [...forks.workflowIDs, ...more.workflowIDs] as string[];
      await DBOS.waitAll(forkIDs.map((id) => DBOS.retrieveWorkflow(id)));
      expect((await ok('GET', `/workflow-count?isFork=true`)).count).toBe(2);

      const timeout = await ok('POST', '/maintenance/global-timeout', { cutoffEpochTimestampMs: 4_000_000_000_000 });
      expect(timeout).toEqual({ cancelled: 2 });
      await ok('POST', '/bulk/delete', { workflowIDs: [failed] });
      const collected = await ok('POST', '/maintenance/garbage-collect', { cutoffEpochTimestampMs: 4_000_000_000_000 });
      expect(collected.workflows).toBe(4);
    });

    test('takes workflows out and puts them in', async () => {
      const { ok, call, run, enqueue } = await setup(dialect);
      const told = await run('tell');
      const delayed = await enqueue('add', { args: [1, 2], delaySeconds: 1000 });
      const before = await ok('GET', `/workflows/${told}`);

      const lines = (await ok('GET', '/export?exportChildren=true')) as string;
      const limited = (await ok('GET', '/export?workflowName=tell&limit=5')) as string;
      expect(
        lines
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as object),
      ).toMatchObject([{ workflow_status: { workflow_uuid: told } }, { workflow_status: { workflow_uuid: delayed } }]);
      expect(limited.trimEnd().split('\n')).toHaveLength(1);

      const put = (path: string, type = 'application/x-ndjson') =>
        call('POST', `/api/v1${path}`, lines, { 'content-type': type });
      const conflict = await put('/import');
      expect([conflict.status, conflict.body.error.code]).toEqual([400, 'WORKFLOW_IMPORT']);
      expect((await put('/import?onConflict=skip')).body).toEqual({ imported: 0, skipped: 2 });
      await ok('POST', '/bulk/delete', { workflowIDs: [told, delayed] });
      expect((await put('/import')).body).toEqual({ imported: 2, skipped: 0 });
      expect(await ok('GET', `/workflows/${told}`)).toEqual(before);
      expect((await ok('GET', `/workflows/${delayed}`)).status).toBe('CANCELLED');
      expect((await put('/import', 'text/plain')).status).toBe(415);
      expect((await call('POST', '/api/v1/import', '{ not JSON')).status).toBe(400);
      expect(await ok('POST', '/import', [])).toEqual({ imported: 0, skipped: 0 });
    });

    test('registers, changes, pauses, counts and removes queues', async () => {
      const { ok, call, enqueue } = await setup(dialect);

      const registered = await ok('PUT', '/queues/mail%2Fout', { globalConcurrency: 5, workerConcurrency: 2 });
      expect(registered).toMatchObject({
        name: 'mail/out',
        globalConcurrency: 5,
        isPaused: false,
        applicationName: 'test',
      });
      const kept = await ok('PUT', '/queues/mail%2Fout', { globalConcurrency: 9, onConflict: 'never_update' });
      expect(kept.globalConcurrency).toBe(5);
      const changed = await ok('PATCH', '/queues/mail%2Fout', {
        workerConcurrency: null,
        rateLimit: { limitPerPeriod: 3, periodSec: 1.5 },
      });
      expect(changed).toMatchObject({ globalConcurrency: 5, rateLimit: { limitPerPeriod: 3, periodSec: 1.5 } });
      expect(changed).not.toHaveProperty('workerConcurrency');
      expect(await ok('POST', '/queues/mail%2Fout/pause')).toEqual({ changed: true });
      expect(await ok('POST', '/queues/mail%2Fout/pause')).toEqual({ changed: false });
      expect((await ok('GET', '/queues/mail%2Fout')).isPaused).toBe(true);
      await enqueue('add', { queueName: 'mail/out', args: [1, 2] });
      expect((await ok('GET', '/queue-stats?queueName=mail/out')).queues).toMatchObject([{ enqueued: 1, running: 0 }]);
      expect(await ok('POST', '/queues/mail%2Fout/resume')).toEqual({ changed: true });
      expect(await ok('POST', '/queues/mail%2Fout/resume')).toEqual({ changed: false });
      const { queues } = await ok('GET', '/queues');
      expect(queues).toMatchObject([{ name: 'mail/out' }, { name: 'q' }]);
      await ok('DELETE', '/queues/mail%2Fout');
      expect((await call('GET', '/api/v1/queues/mail%2Fout')).status).toBe(404);
    });

    test('creates, changes, fires and removes schedules', async () => {
      const { ok, call } = await setup(dialect);
      const definition = { scheduleName: 'nightly', workflowName: 'tick', schedule: '0 3 * * *' };

      const created = await ok('POST', '/schedules', {
        ...definition,
        context: { deep: [1] },
        cronTimezone: 'Europe/Berlin',
      });
      expect(created).toMatchObject({ scheduleName: 'nightly', status: 'ACTIVE', context: { json: { deep: [1] } } });
      await ok('PUT', '/schedules', { schedules: [{ ...definition, scheduleName: 'other' }] });
      const changed = await ok('PATCH', '/schedules/nightly', { schedule: '0 4 * * *', cronTimezone: null });
      expect(changed).toMatchObject({ schedule: '0 4 * * *', cronTimezone: null, context: { json: { deep: [1] } } });
      expect(await ok('POST', '/schedules/nightly/pause')).toEqual({ changed: true });
      expect(await ok('POST', '/schedules/nightly/pause')).toEqual({ changed: false });
      const { schedules } = await ok('GET', '/schedules?status=PAUSED&scheduleNamePrefix=night');
      expect(schedules).toMatchObject([{ scheduleName: 'nightly', status: 'PAUSED' }]);
      expect(await ok('POST', '/schedules/nightly/resume')).toEqual({ changed: true });
      expect(await ok('POST', '/schedules/nightly/resume')).toEqual({ changed: false });
      expect((await ok('GET', '/schedules/nightly')).status).toBe('ACTIVE');
      expect((await ok('POST', '/schedules/nightly/trigger')).workflowID).toMatch(/^sched-nightly-trigger-/);
      const span = { start: '2030-01-01T00:00:00Z', end: '2030-01-04T00:00:00Z' };
      expect((await ok('POST', '/schedules/nightly/backfill', span)).workflowIDs).toHaveLength(3);
      expect((await ok('GET', '/schedules/nightly/next-runs?count=2')).nextRuns).toHaveLength(2);
      await ok('DELETE', '/schedules/nightly');
      expect((await call('GET', '/api/v1/schedules/nightly')).status).toBe(404);
    });

    test('tells of versions, executors and itself, and renames applications', async () => {
      const { ok, DBOS } = await setup(dialect);
      const version = DBOS.applicationVersion;

      expect((await ok('GET', '/versions')).versions).toMatchObject([{ versionName: version }]);
      expect((await ok('GET', '/versions/latest')).versionName).toBe(version);
      expect((await ok('PUT', '/versions/latest', { versionName: version })).versionName).toBe(version);
      const { executors } = await ok('GET', '/executors?isAlive=true');
      expect(executors).toMatchObject([{ executorID: 'local', isAlive: true, pid: process.pid }]);
      expect(executors[0].functions).toContain('.add');
      expect((await ok('GET', '/executors?isAlive=false')).executors).toEqual([]);
      expect(await ok('POST', '/executors/gone/recover')).toEqual({ workflowIDs: [] });
      expect(await ok('GET', '/info')).toMatchObject({
        library: 'everstep',
        database: dialect.name,
        executorID: 'local',
      });
      expect((await ok('GET', '/openapi.json')).openapi).toBe('3.1.0');
      expect(await ok('POST', '/applications/rename', { oldName: 'before', newName: 'after' })).toMatchObject({
        queues: 0,
      });
    });

    test('acts for a client just as well', async () => {
      const { url, run } = await setup(dialect);
      const workflowID = await run('add', { args: [1, 2] });
      const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
      onTestFinished(() => client.destroy());
      const call = callerOf(createAdmin({ source: client, token: TOKEN }).fetch);

      const info = await call('GET', '/api/v1/info');
      const workflow = await call('GET', `/api/v1/workflows/${workflowID}`);
      const enqueued = await call('POST', '/api/v1/workflows', { queueName: 'q', workflowName: 'add', args: [3, 4] });
      const recovery = await call('POST', '/api/v1/executors/gone/recover');
      const queue = await call('PUT', '/api/v1/queues/x', { onConflict: 'update_if_latest_version' });

      expect(info.body).toMatchObject({ executorID: null, applicationName: null });
      expect(workflow.body.output.json).toBe(3);
      expect(await client.retrieveWorkflow(enqueued.body.workflowID as string).getResult()).toBe(7);
      expect(recovery.status).toBe(409);
      expect(queue.status).toBe(400);
    });

    test('is called with success on every route but those that have tests of their own', () => {
      const ofDashboard =
        /\/(session|overview|attention|timeline|tree|comparison|value|details|version-work|health|indexes|retention|\w*-?preview)\b/;
      const elsewhere = new RegExp(`^GET /events$|/outboxes|/archived-workflows|/receivers/|${ofDashboard.source}`);
      const all = ROUTES.map(({ method, path }) => `${method} ${path}`).filter((one) => !elsewhere.test(one));

      expect([...called[dialect.name]].toSorted()).toEqual(all.toSorted());
    });
  });
});
