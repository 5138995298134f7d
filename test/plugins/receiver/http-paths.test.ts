// Paths that frameworks read in different ways, sent as raw bytes: clients would resolve them first.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import { Hono } from 'hono';
import Koa from 'koa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { expressRoutes, honoRoutes, koaRoutes, WorkflowRoutes } from '../../../src/plugins/receiver/http/http.js';
import { sqlite } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { frameworks, listen, type Serve, setup } from './http-scene.js';

/** The status of the answer to a request for this target. */
function request(url: string, target: string, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.write(`${method} ${target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    });
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', reject);
    socket.on('close', () => resolve(Number(text.split(' ')[1])));
  });
}

/** Refuses everything below /internal, as a guard in front of the routes does. */
const guarded: Record<string, Serve> = {
  express: (routes) => {
    const app = express();
    app.use('/internal', (_, response) => void response.status(403).end());
    app.use(expressRoutes(routes));
    return listen(app as RequestListener);
  },
  koa: (routes) => {
    const app = new Koa();
    app.use(async (context, next) => {
      if (context.path.startsWith('/internal')) context.status = 403;
      else await next();
    });
    app.use(koaRoutes(routes));
    const callback = app.callback();
    return listen((incoming: IncomingMessage, outgoing: ServerResponse) => void callback(incoming, outgoing));
  },
  hono: async (routes) => {
    const app = new Hono();
    app.use('/internal/*', async (context) => context.text('no', 403));
    app.use(honoRoutes(routes));
    let port = 0;
    await new Promise<void>((resolve) => {
      const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (address) => {
        port = address.port;
        resolve();
      });
      onTestFinished(() => void server.close());
    });
    return `http://127.0.0.1:${port}`;
  },
};

const AROUND_THE_GUARD = [
  '//internal/pay',
  '//x/internal/pay',
  '///internal/pay',
  '/x/../internal/pay',
  '/x/%2e%2e/internal/pay',
  '/x/.%2E/internal/pay',
  '/./internal/pay',
  '/%2e/internal/pay',
  '/\\internal/pay',
  '\\internal/pay',
  '/x\\..\\internal/pay',
  '/x/..\\internal/pay',
  '/internal\\pay',
];

describe.each(Object.entries(guarded))('a guard on a path before the routes of %s', (_, serveRoutes) => {
  test('is not bypassed by another spelling of the path', async () => {
    const { DBOS } = await createEngine(sqlite);
    let runs = 0;
    const pay = DBOS.registerWorkflow(async () => void (runs += 1), { name: 'pay' });
    const url = await serveRoutes(new WorkflowRoutes({ dbos: DBOS }).run('/internal/pay', pay));
    await DBOS.launch();

    expect(await request(url, '/internal/pay', 'POST')).toBe(403);
    for (const target of AROUND_THE_GUARD) {
      expect([target, await request(url, target, 'POST')]).toEqual([target, expect.toSatisfy(isRefusal)]);
    }
    expect(runs).toBe(0);
  });
});

const isRefusal = (status: number): boolean => status >= 400 && status < 500;

describe.each(Object.entries(frameworks))('a request without a usable path behind %s', (_, serveRoutes) => {
  test('is refused, and the next one is answered', async () => {
    const { url } = await setup(serveRoutes);
    const targets = ['//', '///', '//[', '/\\', '//:80', 'http://', 'http://[', '*', '/#/', '/..', '/%', '/%00', '/?['];

    for (const target of targets) {
      expect([target, await request(url, target)]).toEqual([target, expect.toSatisfy(isRefusal)]);
    }
    expect(await request(url, '/own')).toBe(200);
  });
});

test('Node answers 400 to a path that does not begin with exactly one slash', async () => {
  const { url } = await setup(frameworks['node'] as Serve);

  for (const target of ['//', '///', '//[', '/\\', '//:80']) expect(await request(url, target)).toBe(400);
});

test('an answer that comes after a middleware has given up is dropped', async () => {
  const { DBOS } = await createEngine(sqlite);
  const slow = DBOS.registerWorkflow(() => DBOS.sleep(50), { name: 'slow' });
  const middleware = expressRoutes(new WorkflowRoutes({ dbos: DBOS }).run('/slow', slow));
  const url = await listen((incoming, outgoing) => {
    middleware(incoming, outgoing, () => {});
    outgoing.writeHead(504).end();
  });
  await DBOS.launch();

  expect(await request(url, '/slow', 'POST')).toBe(504);
  await DBOS.sleep(100);
});
