import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../../src/faces/http/routes.js';
import type { JSONSchema } from '../../../src/kernel/check/validation.js';
import { forEachDialect } from '../../rig/dialects.js';
import { setup } from './scene.js';

const INJECTIONS = [
  "' OR '1'='1",
  "'; DROP TABLE workflow_status; --",
  '" OR ""="',
  "\\'; DELETE FROM queues; --",
  '%',
  '_',
  '$1',
  '?',
  '${jndi:ldap://x}',
  '{"$gt":""}',
  '../../etc/passwd',
  '<script>',
  '\u202e',
  'é\ud83d\ude00',
];

/** Values of the right type that try to be more than values: all at once where a field takes several. */
function injectedInto(schema: JSONSchema): unknown[] {
  switch (schema['type']) {
    case 'array':
      return [INJECTIONS];
    case 'object':
      return [Object.fromEntries(INJECTIONS.map((attempt) => [attempt, attempt]))];
    default:
      return INJECTIONS.slice(0, 3);
  }
}

function toQuery(name: string, value: unknown): string {
  const texts = (Array.isArray(value) ? value : [value]).map((one) =>
    typeof one === 'string' ? one : JSON.stringify(one),
  );
  return texts.map((text) => `${name}=${encodeURIComponent(text)}`).join('&');
}

describe('what makes no sense is refused', () => {
  forEachDialect((dialect) => {
    test('unknown workflows, queues and schedules are not found', async () => {
      const { call } = await setup(dialect);
      const bodies: Readonly<Record<string, unknown>> = {
        'POST /workflows/{workflowID}/fork': { startStep: 0 },
        'POST /workflows/{workflowID}/messages': { message: 1 },
        'PATCH /workflows/{workflowID}/attributes': { attributes: {} },
        'PUT /workflows/{workflowID}/delay': { delaySeconds: 1 },
        'PUT /workflows/{workflowID}/priority': { priority: 1 },
        'POST /schedules/{name}/backfill-preview': { start: '2030-01-01T00:00:00Z', end: '2030-01-02T00:00:00Z' },
        'POST /schedules/{name}/backfill': { start: '2030-01-01T00:00:00Z', end: '2030-01-02T00:00:00Z' },
      };
      const queries: Readonly<Record<string, string>> = {
        'GET /workflows/{workflowID}/comparison': '?with=nobody',
        'GET /workflows/{workflowID}/value': '?of=input',
        'GET /workflows/{workflowID}/stream-values': '?key=x',
      };
      // These three take any name, as queues in memory have one, and PUT makes the queue. There is no archive.
      const exempt = [
        'GET /queues/{name}/details',
        'POST /queues/{name}/pause',
        'POST /queues/{name}/resume',
        'PUT /queues/{name}',
        'GET /archived-workflows/{workflowID}',
      ];
      const single = ROUTES.filter(({ path }) => /\{(workflowID|name)\}/.test(path)).filter(
        ({ method, path }) => !exempt.includes(`${method} ${path}`),
      );

      for (const { method, path } of single) {
        for (const name of ['nobody', '%27%20OR%201=1%2F%F0%9F%98%80']) {
          const url = `/api/v1${path.replace(/\{\w+\}/, name)}${queries[`${method} ${path}`] ?? ''}`;
          const answer = await call(method, url, bodies[`${method} ${path}`]);
          expect(answer.status, `${method} ${url} ${JSON.stringify(answer.body)}`).toBe(404);
          expect(answer.body.error.code).toMatch(/^(NOT_FOUND|NON_EXISTENT_WORKFLOW)$/);
        }
      }
      expect((await call('POST', '/api/v1/bulk/resume', { workflowIDs: ['nobody'] })).status).toBe(404);
      expect((await call('POST', '/api/v1/bulk/cancel', { workflowIDs: ['nobody'] })).body).toEqual({
        workflowIDs: [],
      });
    });

    test('filters take whatever is given for a value and nothing more', async () => {
      const { call, run } = await setup(dialect);
      await run('add', { args: [1, 2], attributes: { a: 1 } });
      const before = (await call('GET', '/api/v1/workflow-count')).body.count as number;

      for (const { method, path, query } of ROUTES) {
        if (path === '/events') continue;
        for (const [name, { schema }] of Object.entries(query)) {
          for (const value of injectedInto(schema)) {
            const url = `/api/v1${path.replace(/\{\w+\}/, 'x')}?${toQuery(name, value)}`;
            const answer = await call(method, url);
            expect([200, 400, 404], `${method} ${url} ${JSON.stringify(answer.body)}`).toContain(answer.status);
            const found = [answer.body.workflows ?? [], answer.body.schedules ?? []].flat();
            // An underscore or a percent sign in a prefix is itself.
            if (answer.status === 200) expect(found, url).toEqual([]);
          }
        }
      }

      expect((await call('GET', '/api/v1/workflow-count')).body.count).toBe(before);
    });

    test('fields of bodies take whatever is given for a value and nothing more', async () => {
      const { call, run } = await setup(dialect);
      await run('add', { args: [1, 2] });
      const before = (await call('GET', '/api/v1/workflow-count?status=SUCCESS')).body.count as number;

      for (const { method, path, body } of ROUTES) {
        const properties = (body?.schema['properties'] ?? {}) as Record<string, JSONSchema>;
        for (const [name, schema] of Object.entries(properties)) {
          for (const value of injectedInto(schema)) {
            const url = `/api/v1${path.replace(/\{\w+\}/, 'x')}`;
            const answer = await call(method, url, { [name]: value });
            expect(answer.status, `${method} ${url} ${name} ${JSON.stringify(answer.body)}`).toBeLessThan(500);
          }
        }
      }

      expect((await call('GET', '/api/v1/workflow-count?status=SUCCESS')).body.count).toBe(before);
    });

    test('what is not there, or not in the right state, has a status and a code of its own', async () => {
      const { call, enqueue } = await setup(dialect);
      const id = await enqueue('add', { args: [1, 2], delaySeconds: 1000 });
      const schedule = { scheduleName: 'twice', workflowName: 'tick', schedule: '0 0 1 1 *' };
      await call('POST', '/api/v1/schedules', schedule);

      const answers = [
        await call('POST', `/api/v1/workflows/${id}/rewind`, {}),
        await call('PUT', '/api/v1/versions/latest', { versionName: 'none' }),
        await call('POST', '/api/v1/schedules', schedule),
      ];

      expect(answers.map(({ status, body }): unknown[] => [status, body.error.code])).toEqual([
        [409, 'INVALID_WORKFLOW_TRANSITION'],
        [404, 'VERSION_NOT_FOUND'],
        [409, 'SCHEDULE_EXISTS'],
      ]);
    });

    test('parameters and fields of the wrong kind are named', async () => {
      const { call, enqueue } = await setup(dialect);
      const id = await enqueue('add', { args: [1, 2], delaySeconds: 1000 });
      const cases: [string, string, unknown, RegExp][] = [
        ['GET', '/workflows?limit=0', undefined, /limit must be an integer from 1/],
        ['GET', '/workflows?limit=ten', undefined, /limit must be an integer from 1 to 1000, but is "ten"/],
        ['GET', '/workflows?limit=1&limit=2', undefined, /limit must not be repeated/],
        ['GET', '/workflows?status=RUNNING', undefined, /status\[0\] must be one of PENDING/],
        ['GET', '/workflows?startTime=yesterday', undefined, /startTime must be a time/],
        ['GET', '/workflows?startTime=2030-01-01T00:00:00', undefined, /startTime must be a time .* with its zone/],
        ['GET', '/workflows?queuesOnly=1', undefined, /queuesOnly must be true or false/],
        ['GET', '/workflows?attributes=[1]', undefined, /attributes must be an object/],
        ['GET', '/workflows?attributes=x', undefined, /attributes must be a JSON object/],
        ['GET', '/workflows?cursor=x', undefined, /cursor/],
        ['GET', '/workflows?workflowID=a%00b', undefined, /NUL/],
        ['GET', '/workflows/a%00b', undefined, /NUL/],
        ['GET', '/workflows?order=asc', undefined, /unknown field "order"/],
        ['GET', '/metrics', undefined, /startTime is missing/],
        ['POST', '/workflows', { queueName: 'q' }, /workflowName is missing/],
        ['POST', '/workflows', { queueName: 'q', workflowName: 'add', args: {} }, /args must be an array/],
        [
          'POST',
          '/workflows',
          { queueName: 'q', workflowName: 'add', priority: -1 },
          /priority must be an integer from 0/,
        ],
        ['POST', '/workflows', { queueName: 'q', workflowName: 'add', namedArgs: {} }, /namedArgs needs/],
        ['POST', '/workflows', { queueName: 'q', workflowName: 'add', attributes: { a: '\0' } }, /NUL/],
        ['POST', `/workflows/${id}/fork`, { startStep: 1.5 }, /startStep must be an integer/],
        ['PUT', `/workflows/${id}/delay`, {}, /exactly one of delaySeconds and delayUntilEpochMS/],
        [
          'PUT',
          `/workflows/${id}/priority`,
          { priority: 'high' },
          /priority must be an integer from 0 to 2147483647, but is "high"/,
        ],
        ['POST', '/bulk/fork', { forks: [{ workflowID: id }] }, /forks\[0\]\.startStep is missing/],
        ['POST', '/bulk/fork-from-failure', { workflowIDs: [id] }, /exactly one of/],
        ['PUT', '/queues/_dbos_x', {}, /reserved/],
        [
          'PUT',
          '/queues/x',
          { globalConcurrency: 1, workerConcurrency: 2 },
          /workerConcurrency \(2\) must not be greater/,
        ],
        ['PUT', '/queues/x', { rateLimit: { limitPerPeriod: 1 } }, /rateLimit\.periodSec is missing/],
        ['PATCH', '/queues/q', { workerConcurrency: 0 }, /workerConcurrency must be an integer from 1/],
        ['POST', '/schedules', { scheduleName: 'x', workflowName: 'tick', schedule: 'often' }, /cron expression/],
        ['POST', '/maintenance/garbage-collect', {}, /needs cutoffEpochTimestampMs, rowsThreshold, or both/],
        ['POST', '/maintenance/global-timeout', { cutoffEpochTimestampMs: 'now' }, /must be an integer/],
        ['POST', '/aggregates/workflows', { selectCount: true }, /group_by/],
        ['POST', '/applications/rename', { newName: 'x' }, /Nothing to move/],
      ];

      for (const [method, path, body, message] of cases) {
        const answer = await call(method, `/api/v1${path}`, body);
        expect([answer.status, answer.body.error?.message], `${method} ${path}`).toEqual([
          400,
          expect.stringMatching(message),
        ]);
      }
    });

    test('of what goes wrong inside, nothing is told', async () => {
      const { call, DBOS } = await setup(dialect);
      await DBOS.shutdown();

      const answers = [
        await call('GET', '/api/v1/workflows'),
        await call('GET', '/metrics'),
        await call('POST', '/workflows', {}),
        await call('GET', '/readyz'),
      ];

      expect(answers.map(({ status }) => status)).toEqual([503, 503, 500, 503]);
      for (const { body } of answers) expect(JSON.stringify(body)).not.toMatch(/at .*\.ts|sqlite|postgres/i);
    });
  });
});
