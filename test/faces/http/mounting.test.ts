import { serve } from '@hono/node-server';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Admin } from '../../../src/faces/http/admin.js';
import { sqlite } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { builtDashboard, SCRIPT } from './built-dashboard.js';
import { callerOf, setup, setupWithoutEngine, TOKEN } from './scene.js';

/** Serves on a free port until the test ends, and gives the address. */
async function listen(server: Server): Promise<string> {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function listenTo(listener: RequestListener): Promise<string> {
  return listen(createServer(listener));
}

/** How an interface is mounted, where its paths begin, and what else answers there. */
const MOUNTS: Record<string, { readonly basePath?: string; readonly mount: (admin: Admin) => Promise<string> }> = {
  "Node's own server": {
    basePath: '/admin',
    mount: (admin) =>
      listenTo((request, response) => {
        if (request.url?.startsWith('/admin/')) void admin.handle(request, response);
        else response.end('own');
      }),
  },
  Express: {
    mount: (admin) => {
      const app = express();
      app.use('/admin', admin.handle);
      app.get('/own', (_request, response) => void response.send('own'));
      return listenTo(app);
    },
  },
  'Express that has read the body': {
    mount: (admin) => {
      const app = express();
      app.use(express.json());
      app.use('/admin', admin.handle);
      app.get('/own', (_request, response) => void response.send('own'));
      return listenTo(app);
    },
  },
  Fastify: {
    basePath: '/admin',
    mount: async (admin) => {
      const app = Fastify({ forceCloseConnections: true });
      await app.register(async (scope) => {
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
        scope.all('/admin/*', (request, reply) => {
          reply.hijack();
          return admin.handle(request.raw, reply.raw);
        });
      });
      app.get('/own', () => 'own');
      onTestFinished(() => app.close());
      return app.listen({ port: 0, host: '127.0.0.1' });
    },
  },
  Koa: {
    basePath: '/admin',
    mount: (admin) => {
      const app = new Koa();
      app.use(async (context, next) => {
        if (context.path.startsWith('/admin/')) {
          context.respond = false;
          await admin.handle(context.req, context.res);
        } else await next();
      });
      app.use((context) => {
        context.body = 'own';
      });
      const callback = app.callback();
      return listenTo((request, response) => void callback(request, response));
    },
  },
  'Hono on Node': {
    mount: async (admin) => {
      const app = new Hono();
      app.mount('/admin', admin.fetch);
      app.get('/own', (context) => context.text('own'));
      const server = await new Promise<Server>((resolve) => {
        const options = { fetch: app.fetch, port: 0, hostname: '127.0.0.1' };
        // Hono gives a server of HTTP/1 unless told otherwise.
        const started = serve(options, () => resolve(started as Server));
      });
      return listen(server);
    },
  },
};

describe('mounted into', () => {
  test.each(Object.entries(MOUNTS))(
    '%s, the interface answers beside what is there',
    async (_, { basePath, mount }) => {
      const { admin, DBOS } = await setup(sqlite, { basePath });
      const origin = await mount(admin);
      const call = callerOf((request) => fetch(request), origin);

      const own = await call('GET', '/own');
      const healthy = await call('GET', '/admin/healthz');
      const refused = await call('GET', '/admin/api/v1/info', undefined, { authorization: 'Bearer wrong' });
      const created = await call('POST', '/admin/api/v1/workflows', {
        queueName: 'q',
        workflowName: 'add',
        args: [1, 2],
      });
      const id = created.body.workflowID as string;
      const result = await DBOS.retrieveWorkflow(id).getResult();
      const shown = await call('GET', `/admin/api/v1/workflows/${encodeURIComponent(id)}/steps?limit=5`);
      const legacy = await call('POST', '/admin/workflows', { workflow_uuids: [id] });
      const unknown = await call('GET', '/admin/api/v1/nothing');

      expect([own.status, own.body]).toEqual([200, 'own']);
      expect([healthy.status, healthy.body]).toEqual([200, 'ok']);
      expect(refused.status).toBe(401);
      expect([created.status, result]).toEqual([201, 3]);
      expect([shown.status, shown.body]).toEqual([200, { steps: [] }]);
      expect(legacy.body).toMatchObject([{ WorkflowUUID: id, Status: 'SUCCESS' }]);
      expect(unknown.status).toBe(404);
    },
  );

  test.each(Object.entries(MOUNTS))(
    '%s, the interface streams, and notices that a client leaves',
    async (_, mounted) => {
      const { admin, call } = await setup(sqlite, { basePath: mounted.basePath });
      const origin = await mounted.mount(admin);
      const leaving = new AbortController();
      const response = await fetch(`${origin}/admin/api/v1/events`, {
        headers: { authorization: `Bearer ${TOKEN}` },
        signal: leaving.signal,
      });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      let text = '';
      await call('PUT', `${mounted.basePath ?? ''}/api/v1/queues/new`, {});

      while (!text.includes('event: queue')) text += new TextDecoder().decode((await reader.read()).value);
      leaving.abort();

      const metrics = `${mounted.basePath ?? ''}/metrics`;
      await until(async () => /^everstep_event_clients 0$/m.test((await call('GET', metrics)).body as string));
    },
  );

  test.each(Object.entries(MOUNTS))('%s, the dashboard and its assets are found', async (_, { basePath, mount }) => {
    const { admin } = setupWithoutEngine({ basePath, dashboardFolder: builtDashboard() });
    const origin = await mount(admin);
    const headers = { accept: 'text/html' };

    const page = await fetch(`${origin}/admin/`, { headers });
    const [, base = ''] = /<base href="([^"]*)"/.exec(await page.text()) ?? [];
    const deep = await fetch(`${origin}/admin/ui/workflows/a%2Fb?tab=steps`, { headers });
    const [, deepBase = ''] = /<base href="([^"]*)"/.exec(await deep.text()) ?? [];
    const script = await fetch(new URL('./assets/index-a1b2.js', new URL(base, page.url)));

    expect([page.status, new URL(page.url).pathname]).toEqual([200, '/admin/ui/']);
    expect(new URL(deepBase, deep.url).pathname).toBe('/admin/ui/');
    expect([script.status, await script.text()]).toEqual([200, SCRIPT]);
  });

  test('Express, the dashboard is found without the slash', async () => {
    const { admin } = setupWithoutEngine({ dashboardFolder: builtDashboard() });
    const origin = await (MOUNTS['Express'] as (typeof MOUNTS)[string]).mount(admin);

    const page = await fetch(`${origin}/admin`, { headers: { accept: 'text/html' } });

    expect([page.status, new URL(page.url).pathname]).toEqual([200, '/admin/ui/']);
  });
});
