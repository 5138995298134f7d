// Workflow routes behind each framework, for tests.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { onTestFinished } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { type DLogger, silentLogger } from '../../../src/kernel/base/log.js';
import {
  expressRoutes,
  fastifyRoutes,
  honoRoutes,
  koaRoutes,
  signWebhook,
  WorkflowRoutes,
} from '../../../src/plugins/receiver/http/http.js';
import { type TestDialect, sqlite } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

export const SECRET = `whsec_${Buffer.from('0123456789abcdef01234567').toString('base64')}`;
export const OLD_SECRET = `whsec_${Buffer.from('the secret of last year!').toString('base64')}`;

/** Serves the routes beside a route of the application's own; gives the URL. */
export type Serve = (routes: WorkflowRoutes) => Promise<string>;

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

export async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return urlOf(server);
}

export const frameworks: Record<string, Serve> = {
  node: (routes) => {
    const middleware = expressRoutes(routes);
    return listen((request, response) => {
      middleware(request, response, () => {
        response.statusCode = request.url === '/own' ? 200 : 404;
        response.end(request.url === '/own' ? 'own' : '{}');
      });
    });
  },
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

export async function setup(serveRoutes: Serve, dialect: TestDialect = sqlite) {
  const errors: unknown[] = [];
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
  return { DBOS, errors, url, post, get, hook, gate, countRuns: () => runs };
}
