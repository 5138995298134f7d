// What an idempotency key stands for, and what it can't.
import { describe, expect, test } from 'vitest';
import { WorkflowRoutes } from '../../../src/plugins/receiver/http/http.js';
import { forEachDialect, sqlite, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { frameworks, type Serve, setup } from './http-scene.js';

const express = frameworks['express'] as Serve;

async function setupTenants(dialect: TestDialect) {
  const { DBOS } = await createEngine(dialect);
  const child = DBOS.registerWorkflow(async () => 'child', { name: 'child' });
  const read = DBOS.registerWorkflow(async (body: { of: string }) => `secret of ${body.of}`, { name: 'read' });
  const job = DBOS.registerWorkflow(async () => child(), { name: 'job' });
  const keyScope = ({ header }: { header: (name: string) => string | undefined }) => header('x-tenant') as string;
  const routes = new WorkflowRoutes({ dbos: DBOS })
    .run('/child', child)
    .run('/read', read, { keyScope })
    .run('/shared', read)
    .run('/shared-too', read);
  await DBOS.launch();
  const url = await express(routes);
  const post = async (path: string, body: unknown, key: string, tenant = 'a') => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key, 'x-tenant': tenant };
    const response = await fetch(url + path, { method: 'POST', body: JSON.stringify(body), headers });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { DBOS, job, post };
}

describe('an idempotency key', () => {
  forEachDialect((dialect) => {
    test('cannot take an ID that the engine derives', async () => {
      const { DBOS, job, post } = await setupTenants(dialect);
      const engineIDs = ['job-77-1', 'job-77-0', `sched-nightly-${new Date(0).toISOString()}`];

      for (const id of engineIDs) {
        expect((await post('/child', {}, id)).status).toBe(200);
        expect(await DBOS.getWorkflowStatus(id)).toBeNull();
      }

      const handle = await DBOS.startWorkflow(job, { workflowID: 'job-77' })();
      expect(await handle.getResult()).toBe('child');
      const children = await DBOS.listWorkflows({ parentWorkflowID: 'job-77' });
      expect(children).toHaveLength(1);
    });

    test('of another route or caller is another key', async () => {
      const { post } = await setupTenants(dialect);

      const answers = [
        await post('/read', { of: 'a' }, 'one', 'a'),
        await post('/read', { of: 'b' }, 'one', 'b'),
        await post('/shared', { of: 'c' }, 'one'),
        await post('/shared-too', { of: 'd' }, 'one'),
      ];

      expect(answers.map(({ body }) => body['result'])).toEqual(['a', 'b', 'c', 'd'].map((of) => `secret of ${of}`));
      expect(new Set(answers.map(({ body }) => body['workflowID'])).size).toBe(4);
    });

    test('that comes back with other arguments gets 422, with the same ones the first answer', async () => {
      const { post } = await setupTenants(dialect);
      const first = await post('/shared', { of: 'a', and: 1 }, 'one');

      expect(await post('/shared', { of: 'b', and: 1 }, 'one')).toEqual({
        status: 422,
        body: { error: 'idempotency_key_reused' },
      });
      expect(await post('/shared', { and: 1, of: 'a' }, 'one')).toEqual(first);
    });
  });

  test('cannot stand for a webhook that has yet to arrive', async () => {
    const { DBOS, post, hook } = await setup(express);
    const genuine = hook('{"name":"Ann"}', { id: 'evt-1' });
    await post('/start', '{"name":"Eve"}', { 'idempotency-key': 'evt-1' });

    const { body } = await post('/hook', genuine.body, genuine.headers);

    expect(await DBOS.retrieveWorkflow(body['workflowID'] as string).getResult()).toBe('Hello Ann');
  });

  test('without a scope from keyScope is refused', async () => {
    const { DBOS } = await createEngine(sqlite);
    const work = DBOS.registerWorkflow(async () => 1, { name: 'work' });
    const routes = new WorkflowRoutes({ dbos: DBOS }).run('/run', work, { keyScope: () => undefined as never });
    await DBOS.launch();
    const url = await express(routes);

    const response = await fetch(`${url}/run`, { method: 'POST', headers: { 'idempotency-key': 'a' } });

    expect(response.status).toBe(500);
    expect(await DBOS.listWorkflows({})).toEqual([]);
  });

  test.each(Object.entries(frameworks))('may be scoped by what %s knows of the caller', async (_, serveRoutes) => {
    const { DBOS } = await createEngine(sqlite);
    const work = DBOS.registerWorkflow(async () => 1, { name: 'work' });
    const seen: unknown[] = [];
    const keyScope = ({ raw }: { raw?: unknown }) => {
      seen.push(raw);
      return 'caller';
    };
    const routes = new WorkflowRoutes({ dbos: DBOS }).run('/run', work, { keyScope });
    await DBOS.launch();
    const url = await serveRoutes(routes);

    await fetch(`${url}/run`, { method: 'POST', headers: { 'idempotency-key': 'a' } });

    expect(seen).toEqual([expect.any(Object)]);
  });
});
