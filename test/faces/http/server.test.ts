import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { serveNode } from '../../../src/faces/http/http/node.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { forEachDialect, sqlite, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { TOKEN } from './scene.js';

async function launch(dialect: TestDialect, config: Partial<DBOSConfig> = {}): Promise<DBOSInstance> {
  const { DBOS } = await createEngine(dialect, { runAdminServer: true, adminPort: 0, adminToken: TOKEN, ...config });
  DBOS.registerWorkflow(async () => 1, { name: 'one' });
  await DBOS.launch();
  return DBOS;
}

function portOf(server: Server | undefined): number {
  return (server?.address() as AddressInfo).port;
}

/** A request over a connection of its own. */
function request(port: number, path: string, options: { method?: string; headers?: object; body?: string } = {}) {
  const headers = { authorization: `Bearer ${TOKEN}`, ...options.headers };
  return new Promise<{ response: IncomingMessage; text: () => Promise<string> }>((resolve, reject) => {
    const outgoing = httpRequest({ host: '127.0.0.1', port, path, method: options.method, headers, agent: false });
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      const text = async (): Promise<string> => {
        let all = '';
        for await (const chunk of response) all += String(chunk);
        return all;
      };
      resolve({ response, text });
    });
    outgoing.end(options.body);
  });
}

/** What comes back to bytes of any kind. */
function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes));
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}

describe('the admin server', () => {
  forEachDialect((dialect) => {
    test('answers from the launch to the shutdown', async () => {
      const DBOS = await launch(dialect);
      const port = portOf(DBOS.adminServer);

      const { response, text } = await request(port, '/api/v1/info');
      const refused = await request(port, '/api/v1/info', { headers: { authorization: 'Bearer wrong' } });

      expect(JSON.parse(await text())).toMatchObject({ library: 'everstep', applicationName: 'test' });
      expect([response.statusCode, refused.response.statusCode]).toEqual([200, 401]);
      refused.response.resume();
      expect((DBOS.adminServer?.address() as AddressInfo).address).toBe('127.0.0.1');
      await DBOS.shutdown();
      await expect(request(port, '/healthz')).rejects.toThrow(/ECONNREFUSED/);
      expect(DBOS.adminServer).toBeUndefined();
    });

    test('ends although a client watches', async () => {
      const DBOS = await launch(dialect);
      const { response, text } = await request(portOf(DBOS.adminServer), '/api/v1/events');
      expect(response.headers['content-type']).toMatch(/event-stream/);

      await DBOS.shutdown();

      expect(await text()).toMatch(/connected/);
    });

    test('forgets a client that has gone', async () => {
      const DBOS = await launch(dialect);
      const port = portOf(DBOS.adminServer);
      const watching = async (): Promise<string> => {
        const { text } = await request(port, '/metrics');
        return /^everstep_event_clients (\d+)$/m.exec(await text())?.[1] ?? '';
      };
      const { response } = await request(port, '/api/v1/events');
      expect(await watching()).toBe('1');

      response.destroy();

      await until(async () => (await watching()) === '0');
    });
  });

  test('is not there unless it is wanted', async () => {
    const DBOS = await launch(sqlite, { runAdminServer: false });

    expect(DBOS.adminServer).toBeUndefined();
  });

  test('may be launched again', async () => {
    const DBOS = await launch(sqlite);
    await DBOS.shutdown();
    await DBOS.launch();

    expect((await request(portOf(DBOS.adminServer), '/healthz')).response.resume().statusCode).toBe(200);
  });

  test('leaves the launch alone if its port is in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const warnings: unknown[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => warnings.push(entry) };

    const DBOS = await launch(sqlite, { adminPort: portOf(other), logger });

    expect(DBOS.isInitialized()).toBe(true);
    expect(DBOS.adminServer).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/)]);
  });

  test('that is open serves without a token, but no page of another name', async () => {
    const DBOS = await launch(sqlite, { adminToken: undefined, adminOpen: true });
    const port = portOf(DBOS.adminServer);
    const statusOf = async (headers: object): Promise<number | undefined> =>
      (await request(port, '/conductor', { headers: { authorization: '', ...headers } })).response.resume().statusCode;

    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ host: `localhost:${port}` })).toBe(200);
    expect(await statusOf({ host: `evil.example:${port}` })).toBe(403);
    expect(await statusOf({ origin: 'http://evil.example' })).toBe(403);
  });

  test('lets clients with the read-only token look, and change nothing', async () => {
    const DBOS = await launch(sqlite, { adminReadOnlyToken: 'looking' });
    const port = portOf(DBOS.adminServer);
    const statusOf = async (method: string, path: string): Promise<number | undefined> => {
      const headers = { authorization: 'Bearer looking', 'content-type': 'application/json' };
      const body = method === 'GET' ? undefined : '{}';
      return (await request(port, `/api/v1${path}`, { method, headers, body })).response.resume().statusCode;
    };

    expect(await statusOf('GET', '/workflows')).toBe(200);
    expect(await statusOf('POST', '/queues/q/pause')).toBe(403);
  });

  test('refuses bodies that are too large, and the rest of them', async () => {
    const DBOS = await launch(sqlite);
    const port = portOf(DBOS.adminServer);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ workflowIDs: ['x'.repeat(1_048_577)] });

    const { response, text } = await request(port, '/api/v1/bulk/cancel', { method: 'POST', headers, body });

    expect(response.statusCode).toBe(413);
    expect(JSON.parse(await text())).toMatchObject({ error: { code: 'PAYLOAD_TOO_LARGE' } });
    expect(response.headers.connection).toBe('close');
  });

  test.each([
    ['a method that there is none of', `TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n`, /^HTTP\/1\.1 400/],
    ['an address without a path', `GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n`, /^HTTP\/1\.1 400/],
    ['an address of elsewhere', `GET //evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`, /^HTTP\/1\.1 400/],
    ['a whole address', `GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n`, /^HTTP\/1\.1 200/],
    ['no HTTP at all', `hello\r\n\r\n`, /^HTTP\/1\.1 400/],
    [
      'two lengths',
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
      /^HTTP\/1\.1 400/,
    ],
  ])('survives %s', async (_, bytes, answer) => {
    const DBOS = await launch(sqlite);
    const port = portOf(DBOS.adminServer);

    expect(await exchange(port, bytes)).toMatch(answer);

    expect((await request(port, '/healthz')).response.resume().statusCode).toBe(200);
  });

  test('that has a token asks for it, although it is opened', async () => {
    const DBOS = await launch(sqlite, { adminOpen: true });

    const { response } = await request(portOf(DBOS.adminServer), '/conductor', { headers: { authorization: '' } });

    expect(response.resume().statusCode).toBe(401);
  });

  test('gives up an answer whose client has gone before it was made', async () => {
    let isCancelled = false;
    const http = createServer((incoming, outgoing) => {
      const answer = async (): Promise<Response> => {
        await once(outgoing, 'close');
        return new Response(new ReadableStream({ cancel: () => void (isCancelled = true) }));
      };
      void serveNode(answer, incoming, outgoing);
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void http.close());
    const socket = connect(portOf(http), '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    await once(http, 'request');

    socket.destroy();

    await until(() => isCancelled);
  });

  test('answers HEAD without a body', async () => {
    const DBOS = await launch(sqlite);

    const { response, text } = await request(portOf(DBOS.adminServer), '/api/v1/info', { method: 'HEAD' });

    expect([response.statusCode, await text()]).toEqual([200, '']);
  });
});
