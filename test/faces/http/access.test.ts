import { describe, expect, test } from 'vitest';
import { internals } from '../../../src/kernel/base/internals.js';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { ROUTES } from '../../../src/faces/http/routes.js';
import { LEGACY_ROUTES } from '../../../src/faces/http/legacy.js';
import { readAnswer, setupWithoutEngine, TOKEN } from './scene.js';

/** A path for each route, with something in place of the braces. */
function pathOf(path: string): string {
  return path.replaceAll(/\{\w+\}/g, 'some');
}

describe('a token', () => {
  test.each([
    ['none', undefined],
    ['an empty one', ''],
    ['another', 'Bearer wrong'],
    ['another of the same length', `Bearer ${TOKEN.replace('t', 'x')}`],
    ['more than it', `Bearer ${TOKEN}x`],
    ['less than it', `Bearer ${TOKEN.slice(0, -1)}`],
    ['another scheme', `Basic ${TOKEN}`],
    ['no scheme', TOKEN],
  ])('is asked for by every path: %s is refused', async (_, authorization) => {
    const routes = [
      ...ROUTES.filter(({ isPublic }) => !isPublic).map(({ method, path }) => ({
        method,
        path: `/api/v1${pathOf(path)}`,
      })),
      ...LEGACY_ROUTES.map(({ method, path }) => ({ method, path: pathOf(path) })),
      { method: 'GET', path: '/metrics' },
      { method: 'GET', path: '/nothing' },
      { method: 'GET', path: '/api/v1/nothing' },
      { method: 'OPTIONS', path: '/workflows' },
    ];

    for (const { method, path } of routes) {
      // Wrong ones are counted.
      const { admin } = setupWithoutEngine();
      const headers = new Headers(authorization === undefined ? [] : [['authorization', authorization]]);
      const answer = await readAnswer(await admin.fetch(new Request(`http://localhost${path}`, { method, headers })));
      expect(answer.status, `${method} ${path}`).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(answer.body.error.code).toBe('UNAUTHORIZED');
    }
  });

  test('that is wrong has to wait after some, whatever it asks for, and the right one does not', async () => {
    const { admin } = setupWithoutEngine();
    const statusOf = async (path: string, token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` };
      return (await admin.fetch(new Request(`http://localhost${path}`, { headers }))).status;
    };

    for (let attempt = 0; attempt < 10; attempt += 1) expect(await statusOf('/metrics', 'wrong')).toBe(401);

    for (const path of ['/metrics', '/nothing', '/api/v1/workflows', '/api/v1/session']) {
      expect(await statusOf(path, 'wrong'), path).toBe(429);
    }
    expect(await statusOf('/nothing', TOKEN)).toBe(404);
    expect(await statusOf('/healthz', 'wrong')).toBe(200);
  });

  test('is read in time that grows with its length', async () => {
    const { admin } = setupWithoutEngine();
    const timeOf = async (spaces: number): Promise<number> => {
      const headers = { authorization: `Bearer x${' '.repeat(spaces)}y` };
      const requests = Array.from({ length: 5 }, () => new Request('http://localhost/nothing', { headers }));
      const begunAt = process.cpuUsage();
      for (const request of requests) await admin.fetch(request);
      return process.cpuUsage(begunAt).user / requests.length;
    };
    await timeOf(100);

    // A pattern that goes back for each space takes 9 times as long for 3 times as many.
    expect(await timeOf(300_000)).toBeLessThan(1_000_000);
  });

  test('is not asked for by the health checks', async () => {
    const { admin } = setupWithoutEngine();

    const healthy = await admin.fetch(new Request('http://anywhere/healthz'));
    const ready = await admin.fetch(new Request('http://anywhere/readyz'));

    expect([healthy.status, await healthy.text()]).toEqual([200, 'ok']);
    expect([ready.status, await ready.text()]).toEqual([503, 'not ready']);
  });

  test('or openness is needed to make the interface', () => {
    const source = { [internals]: { operator: undefined as never } };

    expect(() => createAdmin({ source })).toThrow(/needs a token/);
    const nonsense: [object, RegExp][] = [
      [{ isOpen: 'yes' }, /options\.isOpen must be true or false, but is "yes"/],
      [{ isOpen: true, allowedHosts: 'example.com' }, /options\.allowedHosts must be an array/],
      [{ isOpen: true, allowedHosts: [''] }, /options\.allowedHosts\[0\] must not be empty/],
      [{ token: 's3cret', bodyMaxBytes: NaN }, /options\.bodyMaxBytes must be a positive integer, but is NaN/],
      [{ token: 's3cret', bodyMaxBytes: '1' }, /options\.bodyMaxBytes/],
      [{ token: 1234 }, /options\.token must be a string\.$/],
      [{ token: 's3cret', basepath: '/a' }, /Did you mean "basePath"/],
      [{ token: 's3cret', source: {} }, /options\.source must be DBOS/],
    ];
    for (const [options, message] of nonsense) {
      expect(() => createAdmin({ source, ...options })).toThrow(message);
    }
    expect(() => createAdmin({ source, token: ' ' })).toThrow(/must not be empty/);
    expect(() => createAdmin({ source, token: 'x', isOpen: true })).toThrow(/not both/);
    expect(() => createAdmin({ source, token: 'x', basePath: 'admin/' })).toThrow(/basePath/);
  });
});

describe('an open interface', () => {
  const get = (headers: Record<string, string>) => new Request('http://localhost/conductor', { headers });

  test.each(['localhost', 'localhost:3001', '127.0.0.1:3001', '127.1.2.3', '[::1]:3001', 'LOCALHOST'])(
    'is reached under %s',
    async (host) => {
      const { admin } = setupWithoutEngine({ token: undefined, isOpen: true });

      // Nothing is launched: this is as far as a request gets that may pass.
      expect((await admin.fetch(get({ host }))).status).toBe(500);
    },
  );

  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:3001', '10.0.0.1', ''])(
    'is not reached under the name "%s"',
    async (host) => {
      const { admin } = setupWithoutEngine({ token: undefined, isOpen: true });

      expect((await admin.fetch(get({ host }))).status).toBe(403);
    },
  );

  test.each<Record<string, string>>([
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:8080' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('refuses what other pages send: %j', async (headers) => {
    const { admin } = setupWithoutEngine({ token: undefined, isOpen: true });

    expect((await admin.fetch(get({ host: 'localhost:3001', ...headers }))).status).toBe(403);
  });

  test('serves pages of its own, and names that it is told', async () => {
    const { admin } = setupWithoutEngine({ token: undefined, isOpen: true, allowedHosts: ['inside.example'] });
    const headers = { host: 'inside.example', origin: 'https://inside.example', 'sec-fetch-site': 'same-origin' };

    expect((await admin.fetch(get(headers))).status).toBe(500);
    expect((await admin.fetch(get({ host: 'localhost' }))).status).toBe(403);
  });
});

describe('every answer', () => {
  test.each(['/healthz', '/api/v1/nothing', '/nothing', '/api/v1/workflows', '/metrics'])(
    'to %s is neither stored, guessed at, embedded nor given to other pages',
    async (path) => {
      const { call } = setupWithoutEngine();

      const { headers } = await call('GET', path, undefined, { origin: 'http://evil.example' });

      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    },
  );

  test('says that nothing is launched, and not where', async () => {
    const { call } = setupWithoutEngine();

    const answer = await call('GET', '/api/v1/workflows');

    expect(answer.status).toBe(503);
    expect(answer.body).toEqual({
      error: { code: 'EXECUTOR_NOT_INITIALIZED', message: expect.stringMatching(/not ready/) as string },
    });
  });
});

describe('methods', () => {
  test('of each path are told, and others refused', async () => {
    const { call } = setupWithoutEngine();
    const paths = new Set(ROUTES.map(({ path }) => path));

    for (const path of paths) {
      const own = ROUTES.filter((route) => route.path === path).map(({ method }) => method as string);
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !own.includes(one))) {
        const { status, headers, body } = await call(method, `/api/v1${pathOf(path)}`);
        expect([status, body.error.code], `${method} ${path}`).toEqual([405, 'METHOD_NOT_ALLOWED']);
        for (const one of own) expect(headers.get('allow')).toContain(one);
      }
      const options = await call('OPTIONS', `/api/v1${pathOf(path)}`);
      expect([options.status, options.headers.get('allow')]).toEqual([204, expect.stringContaining(own[0] ?? '')]);
    }
  });

  test('that only read are refused where there is nothing to do', async () => {
    const { call } = setupWithoutEngine();

    for (const path of ['/healthz', '/readyz', '/metrics']) expect((await call('POST', path)).status).toBe(405);
    expect((await call('HEAD', '/healthz')).status).toBe(200);
    expect((await call('HEAD', '/healthz')).body).toBe('');
    expect((await call('OPTIONS', '/workflows')).status).toBe(200);
  });
});

describe('paths', () => {
  test.each([
    '/api/v1',
    '/api/v1/',
    '/api/v1/nothing',
    '/api/v1/workflows/a/b/c',
    '/api/v1//workflows',
    '/api/v1/workflows/%',
    '/api/v1/workflows/%E0%A4%A',
    '/api/v2/workflows',
    '/API/V1/workflows',
    '/',
    '/__proto__',
    '/api/v1/__proto__',
    '/workflows/a/constructor',
  ])('that are not there give 404: %s', async (path) => {
    const { call } = setupWithoutEngine();

    expect((await call('GET', path)).status).toBe(404);
  });

  test('are below the base path', async () => {
    const { call } = setupWithoutEngine({ basePath: '/tools/admin' });

    expect((await call('GET', '/tools/admin/healthz')).status).toBe(200);
    expect((await call('GET', '/tools/admin/api/v1/workflows')).status).toBe(503);
    for (const path of ['/healthz', '/tools/adminhealthz', '/tools/admin', '/tools']) {
      expect((await call('GET', path)).status, path).toBe(404);
    }
  });
});

describe('bodies', () => {
  const PATH = '/api/v1/bulk/cancel';

  test('that are too large are refused, whatever their length is said to be', async () => {
    const { admin, call } = setupWithoutEngine({ bodyMaxBytes: 100 });
    const large = JSON.stringify({ workflowIDs: ['x'.repeat(100)] });
    const chunks = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(60)),
    });

    const declared = await call('POST', PATH, large, { 'content-length': String(large.length) });
    const lied = await call('POST', PATH, large, { 'content-length': '5' });
    const endless = await admin.fetch(
      new Request(`http://localhost${PATH}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: chunks as RequestInit['body'],
        duplex: 'half',
      }),
    );
    const legacy = await call('POST', '/workflows', large);

    expect([declared.status, lied.status, endless.status, legacy.status]).toEqual([413, 413, 413, 413]);
    expect(declared.body.error.code).toBe('PAYLOAD_TOO_LARGE');
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
  ])('of the type %s are refused', async (type) => {
    const { call } = setupWithoutEngine();

    expect((await call('POST', PATH, '{}', { 'content-type': type })).status).toBe(415);
  });

  test.each([
    ['{', /not valid JSON/],
    ['undefined', /not valid JSON/],
    ["{'a': 1}", /not valid JSON/],
    ['[]', /The body must be an object, but is an array/],
    ['null', /The body must be an object, but is null/],
    ['"text"', /The body must be an object/],
    ['{}', /workflowIDs is missing/],
    ['{"workflowIDs": "a"}', /workflowIDs must be an array, but is "a"/],
    ['{"workflowIDs": []}', /workflowIDs must not be empty/],
    ['{"workflowIDs": ["a", 1]}', /workflowIDs\[1\] must be a non-empty string, but is 1/],
    ['{"workflowIDs": [""]}', /workflowIDs\[0\] must not be empty/],
    ['{"workflowIDs": ["a\\u0000"]}', /must not contain a NUL character/],
    ['{"workflowIDs": ["a"], "cancelChildren": "yes"}', /cancelChildren must be true or false/],
    ['{"workflowIDs": ["a"], "other": 1}', /The body has an unknown field "other"/],
    ['{"workflowIDs": ["a"], "__proto__": {}}', /unknown field "__proto__"/],
  ])('are refused with the name of the field: %s', async (body, message) => {
    const { call } = setupWithoutEngine();

    const answer = await call('POST', PATH, body);

    expect(answer.status).toBe(400);
    expect(answer.body.error).toEqual({ code: 'INVALID_REQUEST', message: expect.stringMatching(message) as string });
  });

  test('must be UTF-8', async () => {
    const { admin } = setupWithoutEngine();
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const body = new Uint8Array([0x7b, 0xff, 0x7d]);

    const answer = await admin.fetch(new Request(`http://localhost${PATH}`, { method: 'POST', headers, body }));

    expect(answer.status).toBe(400);
  });
});
