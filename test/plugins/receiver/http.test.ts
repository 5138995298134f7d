import { describe, expect, test } from 'vitest';
import { signWebhook, verifyWebhook, WorkflowRoutes } from '../../../src/plugins/receiver/http/http.js';
import { forEachDialect, sqlite } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { frameworks, OLD_SECRET, SECRET, type Serve, setup } from './http-scene.js';

describe.each(Object.entries(frameworks))('workflows behind %s', (_, serveRoutes) => {
  test('a workflow is started once for an idempotency key, and told of', async () => {
    const { DBOS, url, post, get, countRuns } = await setup(serveRoutes);
    const key = { 'idempotency-key': 'key-1' };

    const first = await post('/start', '{"name":"Ann"}', key);
    const second = await post('/start', '{"name":"Ann"}', { 'dbos-idempotency-key': 'key-1' });
    const workflowID = first.body['workflowID'] as string;
    await DBOS.retrieveWorkflow(workflowID).getResult();

    expect(first).toEqual({
      status: 202,
      body: { workflowID: expect.stringMatching(/^http-[0-9a-f]{32}$/) as string },
    });
    expect(second).toEqual(first);
    expect(countRuns()).toBe(1);
    expect(await get(`/workflows/${workflowID}`)).toMatchObject({
      status: 200,
      body: { workflowID, workflowName: 'greet', status: 'SUCCESS' },
    });
    expect(await get(`/workflows/${workflowID}/events/greeted`)).toMatchObject({ status: 200, body: { value: 'Ann' } });
    expect(await (await fetch(`${url}/own`)).text()).toBe('own');
  });

  test('a workflow is waited for, but not for ever', async () => {
    const { post, gate, DBOS } = await setup(serveRoutes);

    const done = await post('/run', '{"name":"Ann"}');
    const empty = await post('/run', '');
    const late = await post('/hasty', '{"name":"slow"}', { 'idempotency-key': 'late' });
    const named = await post('/for/J%C3%BCrgen', '{}');
    gate.resolve();

    expect(done).toMatchObject({ status: 200, body: { result: 'Hello Ann' } });
    expect(empty.body['result']).toBe('Hello all');
    expect(late).toMatchObject({ status: 202, body: { workflowID: expect.any(String) as string } });
    expect(named.body['result']).toBe('Hello Jürgen');
    expect(await DBOS.retrieveWorkflow(late.body['workflowID'] as string).getResult()).toBe('Hello slow');
  });

  test('a bad request gets an answer that says so and tells nothing of the inside', async () => {
    const { post, get, url, errors } = await setup(serveRoutes);
    const started = await post('/start', '{}', { 'idempotency-key': 'taken' });
    const taken = `/workflows/${started.body['workflowID'] as string}`;

    expect(await post('/run', '{"name":')).toEqual({ status: 400, body: { error: 'invalid_json' } });
    expect(await post('/run', 'a=1', { 'content-type': 'text/plain' })).toMatchObject({ status: 415 });
    expect(await post('/run', JSON.stringify('x'.repeat(2000)))).toMatchObject({ status: 413 });
    expect(await post('/run', '{}', { 'idempotency-key': 'x'.repeat(256) })).toMatchObject({ status: 400 });
    expect(await get('/workflows/unknown')).toEqual({ status: 404, body: { error: 'workflow_not_found' } });
    expect(await get('/workflows/unknown/events/a')).toMatchObject({ status: 404 });
    expect(await get(`${taken}/events/a?timeoutSeconds=never`)).toMatchObject({ status: 400 });
    expect(await get(`${taken}/events/a?timeoutSeconds=0`)).toMatchObject({ status: 404 });
    expect((await fetch(`${url}/start`)).status).toBeGreaterThanOrEqual(404);
    expect(errors).toEqual([]);
    const failed = await post('/run', '{"name":"nobody"}');
    expect(failed).toMatchObject({ status: 500, body: { error: 'workflow_failed' } });
    expect(JSON.stringify(failed)).not.toContain('secret');
    expect(await post('/other', '{}')).toEqual({ status: 500, body: { error: 'internal_error' } });
    expect(errors).toHaveLength(1);
  });

  test('a process that has shut down says that it is unavailable', async () => {
    const { DBOS, post, get, hook, errors } = await setup(serveRoutes);
    await DBOS.shutdown();
    const { body, headers } = hook('{}');

    const answers = [post('/start', '{}'), get('/workflows/w'), post('/hook', body, headers)];

    for (const answer of await Promise.all(answers)) {
      expect(answer).toEqual({ status: 503, body: { error: 'unavailable' } });
    }
    expect(errors).toEqual([]);
  });

  test('a webhook starts one workflow, however often it is sent, if its signature is right', async () => {
    const { post, hook, countRuns, DBOS } = await setup(serveRoutes);
    const send = ({ body, headers }: ReturnType<typeof hook>) => post('/hook', body, headers);
    const genuine = hook('{"name":"Ann"}');

    const first = await send(genuine);
    expect(first).toEqual({
      status: 202,
      body: { workflowID: expect.stringMatching(/^webhook-[0-9a-f]{32}$/) as string },
    });
    expect(await send(genuine)).toEqual(first);
    expect(await DBOS.retrieveWorkflow(first.body['workflowID'] as string).getResult()).toBe('Hello Ann');
    const second = await send(hook('{}', { id: 'hook-2', secret: OLD_SECRET }));
    expect(second.status).toBe(202);
    await DBOS.retrieveWorkflow(second.body['workflowID'] as string).getResult();
    const refused = { status: 401, body: { error: 'invalid_signature' } };
    expect(await send({ ...genuine, body: '{"name":"Eve"}' })).toEqual(refused);
    expect(await send({ ...genuine, headers: { ...genuine.headers, 'webhook-id': 'hook-3' } })).toEqual(refused);
    expect(await send(hook('{}', { secret: `whsec_${btoa('somebody else has this')}` }))).toEqual(refused);
    expect(await send(hook('{}', { at: Date.now() - 600_000 }))).toEqual(refused);
    expect(await post('/hook', '{}')).toEqual(refused);
    expect(countRuns()).toBe(2);
  });
});

describe('webhooks', () => {
  test('the example of the standard is verified', () => {
    const webhook = {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestamp: '1614265330',
      body: '{"test": 2432232314}',
      signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    };
    const secrets = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

    expect(verifyWebhook(webhook, { secrets }, 1_614_265_330_000)).toBe(webhook.id);
    expect(() => verifyWebhook(webhook, { secrets }, 1_614_265_330_000 + 301_000)).toThrow('too old');
    expect(() => verifyWebhook({ ...webhook, timestamp: '1e9' }, { secrets }, 0)).toThrow('malformed');
    expect(() => verifyWebhook({ ...webhook, id: 'x'.repeat(300) }, { secrets }, 0)).toThrow('too long');
  });

  test('a check of time that lets everything pass is refused', async () => {
    const { DBOS } = await createEngine(sqlite);
    const routes = new WorkflowRoutes({ dbos: DBOS });
    const timestamp = '1614265330';
    const webhook = { id: 'a', timestamp, body: '{}' };
    const signature = signWebhook({ ...webhook, secret: SECRET });

    for (const toleranceSeconds of [NaN, Infinity, -1, '300' as never]) {
      const options = { secrets: SECRET, toleranceSeconds };
      expect(() => routes.webhook('/hook', async () => {}, options)).toThrow('toleranceSeconds');
      expect(() => verifyWebhook({ ...webhook, signature }, options, 0)).toThrow('toleranceSeconds');
    }
    expect(() => verifyWebhook({ ...webhook, signature }, { secrets: SECRET }, NaN)).toThrow('nowMs');
  });

  test('limits and options of routes that cannot work are refused when the route is made', async () => {
    const { DBOS } = await createEngine(sqlite);
    const routes = new WorkflowRoutes({ dbos: DBOS });
    const work = async () => {};

    expect(() => routes.start('/a', work, { bodyLimit: NaN })).toThrow('options.bodyLimit');
    expect(() => routes.run('/a', work, { timeoutMs: NaN })).toThrow('options.timeoutMs');
    expect(() => routes.run('/a', work, { keyscope: () => 'a' } as object)).toThrow('Did you mean "keyScope"?');
    expect(() => routes.webhook('/a', work, { secrets: [] })).toThrow('options.secrets');
  });

  test('a secret that is none is refused when the route is made', async () => {
    const { DBOS } = await createEngine(sqlite);
    const routes = new WorkflowRoutes({ dbos: DBOS });

    for (const secrets of ['whsec_', 'short', 'whsec_not base64 at all!']) {
      expect(() => routes.webhook('/hook', async () => {}, { secrets })).toThrow('secret');
    }
  });
});

forEachDialect((dialect) => {
  test('twenty requests with one key at once start one workflow', async () => {
    const { post, countRuns } = await setup(frameworks['express'] as Serve, dialect);

    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post('/run', '{"name":"Ann"}', { 'idempotency-key': 'one' })),
    );

    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { result: 'Hello Ann' } });
    expect(countRuns()).toBe(1);
  });
});
