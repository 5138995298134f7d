import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { deferred } from '../../src/base/deferred.js';
import { type DLogger, silentLogger } from '../../src/base/log.js';
import {
  expressRoutes,
  fastifyRoutes,
  honoRoutes,
  koaRoutes,
  signWebhook,
  verifyWebhook,
  WorkflowRoutes,
} from '../../src/receiver/http/http.js';
import { type TestDialect, forEachDialect, sqlite } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

const SECRET = `whsec_${Buffer.from('0123456789abcdef01234567').toString('base64')}`;
const OLD_SECRET = `whsec_${Buffer.from('the secret of last year!').toString('base64')}`;

/** Serves the routes beside a route of the application's own; gives the URL. */
type Serve = (routes: WorkflowRoutes) => Promise<string>;

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return urlOf(server);
}

const frameworks: Record<string, Serve> = {
  express: (routes) => {
    const app = express();
    app.use(expressRoutes(routes));
    app.use(express.json());
    app.get('/own', (_, response) => void response.send('own'));
    return listen(app as RequestListener);
  },
  fastify: async (routes) => {
    const app = fastify();
    await app.register(fastifyRoutes(routes));
    app.get('/own', () => 'own');
    onTestFinished(() => app.close());
    await app.listen({ port: 0, host: '127.0.0.1' });
    return urlOf(app.server);
  },
  koa: (routes) => {
    const app = new Koa();
    app.use(koaRoutes(routes));
    app.use((context) => {
      if (context.path === '/own') context.body = 'own';
    });
    const callback = app.callback();
    return listen((request, response) => {
      void callback(request, response);
    });
  },
  hono: async (routes) => {
    const app = new Hono();
    app.use(honoRoutes(routes));
    app.get('/own', (context) => context.text('own'));
    const server = await new Promise<Server>((resolve) => {
      const started = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(started as Server));
    });
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return urlOf(server);
  },
};

const errors: unknown[] = [];
afterEach(() => void errors.splice(0));

async function setup(serveRoutes: Serve, dialect: TestDialect = sqlite) {
  const logger: DLogger = { ...silentLogger, error: (entry) => errors.push(entry) };
  const { DBOS } = await createEngine(dialect, { logger });
  const gate = deferred<void>();
  let runs = 0;
  const greet = DBOS.registerWorkflow(
    async (body: { name: string } | undefined) => {
      runs += 1;
      if (body?.name === 'nobody') throw new Error('a secret of the inside');
      if (body?.name === 'slow') await gate.promise;
      await DBOS.setEvent('greeted', body?.name ?? 'all');
      return `Hello ${body?.name ?? 'all'}`;
    },
    { name: 'greet' },
  );
  const other = DBOS.registerWorkflow(async () => 10n, { name: 'other' });
  const routes = new WorkflowRoutes({ dbos: DBOS })
    .start('/start', greet)
    .run('/run', greet, { timeoutMs: 10_000, bodyLimit: 1000 })
    .run('/hasty', greet, { timeoutMs: 1 })
    .run('/other', other)
    .run('/for/:name', greet, { args: (_, { parameters }) => [{ name: parameters['name'] }] })
    .webhook('/hook', greet, { secrets: [SECRET, OLD_SECRET] })
    .status('/workflows/:workflowID')
    .event('/workflows/:workflowID/events/:key');
  await DBOS.launch();
  const url = await serveRoutes(routes);
  const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
    const type = { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method: 'POST', body, headers: { ...type, ...headers } });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const get = async (path: string) => {
    const response = await fetch(url + path);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const hook = (body: string, { id = 'hook-1', secret = SECRET, at = Date.now() } = {}) => {
    const timestamp = String(Math.floor(at / 1000));
    const signature = signWebhook({ id, timestamp, body, secret });
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,AAAA v2,x ${signature}`,
    };
    return { body, headers };
  };
  return { DBOS, url, post, get, hook, gate, countRuns: () => runs };
}

describe.each(Object.entries(frameworks))('workflows behind %s', (_, serveRoutes) => {
  test('a workflow is started once for an idempotency key, and told of', async () => {
    const { DBOS, url, post, get, countRuns } = await setup(serveRoutes);
    const key = { 'idempotency-key': 'key-1' };

    const first = await post('/start', '{"name":"Ann"}', key);
    const second = await post('/start', '{"name":"Ann"}', { 'dbos-idempotency-key': 'key-1' });
    await DBOS.retrieveWorkflow('key-1').getResult();

    expect(first).toEqual({ status: 202, body: { workflowID: 'key-1' } });
    expect(second).toEqual(first);
    expect(countRuns()).toBe(1);
    expect(await get('/workflows/key-1')).toMatchObject({
      status: 200,
      body: { workflowID: 'key-1', workflowName: 'greet', status: 'SUCCESS' },
    });
    expect(await get('/workflows/key-1/events/greeted')).toMatchObject({ status: 200, body: { value: 'Ann' } });
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
    expect(late).toEqual({ status: 202, body: { workflowID: 'late' } });
    expect(named.body['result']).toBe('Hello Jürgen');
    expect(await DBOS.retrieveWorkflow('late').getResult()).toBe('Hello slow');
  });

  test('a bad request gets an answer that says so and tells nothing of the inside', async () => {
    const { post, get, url } = await setup(serveRoutes);
    await post('/start', '{}', { 'idempotency-key': 'taken' });

    expect(await post('/run', '{"name":')).toEqual({ status: 400, body: { error: 'invalid_json' } });
    expect(await post('/run', 'a=1', { 'content-type': 'text/plain' })).toMatchObject({ status: 415 });
    expect(await post('/run', JSON.stringify('x'.repeat(2000)))).toMatchObject({ status: 413 });
    expect(await post('/run', '{}', { 'idempotency-key': 'x'.repeat(256) })).toMatchObject({ status: 400 });
    expect(await post('/other', '{}', { 'idempotency-key': 'taken' })).toMatchObject({ status: 409 });
    expect(await get('/workflows/unknown')).toEqual({ status: 404, body: { error: 'workflow_not_found' } });
    expect(await get('/workflows/unknown/events/a')).toMatchObject({ status: 404 });
    expect(await get('/workflows/taken/events/a?timeoutSeconds=never')).toMatchObject({ status: 400 });
    expect(await get('/workflows/taken/events/a?timeoutSeconds=0')).toMatchObject({ status: 404 });
    expect((await fetch(`${url}/start`)).status).toBeGreaterThanOrEqual(404);
    expect(errors).toEqual([]);
    const failed = await post('/run', '{"name":"nobody"}');
    expect(failed).toMatchObject({ status: 500, body: { error: 'workflow_failed' } });
    expect(JSON.stringify(failed)).not.toContain('secret');
    expect(await post('/other', '{}')).toEqual({ status: 500, body: { error: 'internal_error' } });
    expect(errors).toHaveLength(1);
  });

  test('a webhook starts one workflow under its ID, if its signature is right', async () => {
    const { post, hook, countRuns, DBOS } = await setup(serveRoutes);
    const send = ({ body, headers }: ReturnType<typeof hook>) => post('/hook', body, headers);
    const genuine = hook('{"name":"Ann"}');

    expect(await send(genuine)).toEqual({ status: 202, body: { workflowID: 'hook-1' } });
    expect(await send(genuine)).toMatchObject({ status: 202 });
    expect(await DBOS.retrieveWorkflow('hook-1').getResult()).toBe('Hello Ann');
    expect(await send(hook('{}', { id: 'hook-2', secret: OLD_SECRET }))).toMatchObject({ status: 202 });
    await DBOS.retrieveWorkflow('hook-2').getResult();
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
