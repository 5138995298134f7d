// Thousands of hostile requests to the routes: each gets an answer, none a 500, and the process lives on.
import { describe, expect, test } from 'vitest';
import { WorkflowRoutes } from '../../../src/plugins/receiver/http/http.js';
import { forEachDialect, sqlite, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { HOSTILE_TEXTS, hostileRequests, sendRaw } from '../../rig/hostile-requests.js';
import { frameworks, SECRET, type Serve, setup } from './http-scene.js';

const SEED = 14;

async function serveEcho(dialect: TestDialect, serveRoutes: Serve) {
  const { DBOS } = await createEngine(dialect);
  const echo = DBOS.registerWorkflow(async (body: unknown) => typeof body, { name: 'echo' });
  const portable = DBOS.registerWorkflow(async (body: unknown) => typeof body, {
    name: 'portable',
    serialization: 'portable',
  });
  const routes = new WorkflowRoutes({ dbos: DBOS })
    .start('/start', echo)
    .run('/run', echo, { timeoutMs: 10_000 })
    .run('/portable', portable, { timeoutMs: 10_000 })
    .run('/for/:name', echo, { args: (_, { parameters }) => [parameters['name']] })
    .webhook('/hook', echo, { secrets: SECRET })
    .status('/workflows/:workflowID')
    .event('/workflows/:workflowID/events/:key');
  await DBOS.launch();
  return serveRoutes(routes);
}

const paths = [
  '/start',
  '/run',
  '/portable',
  '/for/:name',
  '/hook',
  '/workflows/:workflowID',
  '/workflows/:workflowID/events/:key?timeoutSeconds=0',
];

function* requests(count: number) {
  yield* hostileRequests({
    seed: SEED,
    count,
    methods: ['GET', 'POST', 'POST', 'POST', 'PUT', 'OPTIONS'],
    paths,
    headers: (pick) => ({
      'content-type': pick(['application/json', 'application/json', 'text/plain', 'application/x+json; charset=x']),
      'idempotency-key': pick(HOSTILE_TEXTS),
      'webhook-id': pick(HOSTILE_TEXTS),
      'webhook-timestamp': pick([...HOSTILE_TEXTS, String(Math.floor(Date.now() / 1000))]),
      'webhook-signature': pick([...HOSTILE_TEXTS, 'v1,AAAA', 'v1,', ',,,', 'v1 v1']),
    }),
  });
}

describe('hostile requests', () => {
  forEachDialect((dialect) => {
    test('to the routes on Node get answers, and none is a 500', async () => {
      const url = await serveEcho(dialect, frameworks['node'] as Serve);

      for (const request of requests(250)) {
        const status = await sendRaw(url, request);
        expect([status, request.method, request.target.slice(0, 80), request.body.slice(0, 80)]).toEqual([
          expect.toSatisfy((code: number) => code >= 200 && code < 500),
          expect.anything(),
          expect.anything(),
          expect.anything(),
        ]);
      }
    });
  });

  test.each(['express', 'fastify', 'koa', 'hono'])('to the routes of %s get answers', async (name) => {
    const url = await serveEcho(sqlite, frameworks[name] as Serve);

    for (const request of requests(120)) {
      const status = await sendRaw(url, request);
      expect(status, `${request.method} ${request.target.slice(0, 80)} ${request.body.slice(0, 80)}`).toBeLessThan(500);
    }
  });

  test.each<[string, string, number]>([
    ['a key __proto__', '{"__proto__":{"a":1}}', 422],
    ['a key constructor', '{"constructor":1}', 422],
    ['deep nesting', '['.repeat(50_000) + ']'.repeat(50_000), 422],
  ])('with %s in the body are the caller’s fault', async (_, body, status) => {
    const { post, errors } = await setup(frameworks['node'] as Serve);

    expect(await post('/start', body)).toEqual({ status, body: { error: 'unstorable_arguments' } });
    expect(errors).toEqual([]);
  });

  test('with a NUL or a very long ID in the path are the caller’s fault', async () => {
    const { get, errors } = await setup(frameworks['node'] as Serve);

    for (const path of [
      '/workflows/%00',
      `/workflows/${'x'.repeat(2000)}`,
      '/workflows/a/events/%00',
      '/workflows/%',
    ]) {
      expect(await get(path)).toEqual({ status: 400, body: { error: 'invalid_path' } });
    }
    expect(errors).toEqual([]);
  });
});
