// Hostile requests to the HTTP interface: each gets an answer, none a 500, and the process lives on.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Admin } from '../../../src/faces/http/admin.js';
import { LEGACY_ROUTES } from '../../../src/faces/http/legacy.js';
import { ROUTES } from '../../../src/faces/http/routes.js';
import { forEachDialect, sqlite } from '../../rig/dialects.js';
import { hostileRequests, sendRaw } from '../../rig/hostile-requests.js';
import { setup, TOKEN } from './scene.js';

const SEED = 14;

async function serve(admin: Admin): Promise<string> {
  const server = createServer((request, response) => void admin.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Two answer with 500 what the DBOS 4 server does, and one never ends. */
const legacy = LEGACY_ROUTES.filter(({ path }) => !/fork|restart|resume/.test(path)).map(({ path }) => path);
const api = ROUTES.filter(({ path }) => path !== '/events').map(({ path }) => `/api/v1${path}`);

describe('hostile requests to the HTTP interface', () => {
  forEachDialect((dialect) => {
    test('get answers, and none is a 500', async () => {
      const { admin } = await setup(dialect);
      const url = await serve(admin);
      const requests = hostileRequests({
        seed: SEED,
        count: 300,
        methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
        paths: [...api, ...legacy],
        headers: (pick) => ({
          authorization: `Bearer ${TOKEN}`,
          'content-type': pick(['application/json', 'application/json', 'application/x-ndjson', 'text/plain']),
        }),
      });

      for (const request of requests) {
        const status = await sendRaw(url, request);
        const shown = `${request.method} ${request.target.slice(0, 80)} ${request.body.slice(0, 80)}`;
        expect([status, shown]).toEqual([expect.toSatisfy((code: number) => code >= 200 && code < 500), shown]);
      }
    });

    test.each<[string, string, unknown]>([
      ['a key __proto__', '/workflows', '{"queueName":"q","workflowName":"add","args":[{"__proto__":{"a":1}}]}'],
      [
        'deep arguments',
        '/workflows',
        `{"queueName":"q","workflowName":"add","args":${'['.repeat(9000)}${']'.repeat(9000)}}`,
      ],
    ])('with %s are the caller’s fault', async (_, path, body) => {
      const { call } = await setup(dialect);

      expect((await call('POST', `/api/v1${path}`, body)).status).toBe(422);
    });
  });

  test('do not reach the interface around a guard on its path', async () => {
    const { admin } = await setup(sqlite);
    const url = await serve(admin);
    const headers = { authorization: `Bearer ${TOKEN}` };

    for (const target of ['//api/v1/queues', '/x/../api/v1/queues', '/x/%2e%2e/api/v1/queues', '/\\api/v1/queues']) {
      expect([target, await sendRaw(url, { method: 'GET', target, headers, body: '' })]).toEqual([target, 400]);
    }
  });
});
