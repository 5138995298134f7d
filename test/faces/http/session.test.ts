import { describe, expect, test } from 'vitest';
import type { AdminOptions } from '../../../src/faces/http/admin.js';
import { Sessions } from '../../../src/faces/http/http/session.js';
import { LEGACY_ROUTES } from '../../../src/faces/http/legacy.js';
import { ROUTES } from '../../../src/faces/http/routes.js';
import { forEachDialect, sqlite, type TestDialect } from '../../rig/dialects.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { readAnswer, setup, setupWithoutEngine, TOKEN } from './scene.js';

const READ_ONLY_TOKEN = 'token-that-only-reads';
const HOUR_MS = 3_600_000;

/** A browser at the interface: it keeps the cookie and says where its requests come from. */
async function browse(dialect: TestDialect, options: Partial<AdminOptions> = {}) {
  const { admin, ...rest } = await setup(dialect, { readOnlyToken: READ_ONLY_TOKEN, ...options });
  let cookie = '';
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const request = new Request(`http://ops.example/api/v1${path}`, {
      method,
      headers: {
        host: 'ops.example',
        'sec-fetch-site': 'same-origin',
        ...(cookie !== '' && { cookie: `other=1; ${cookie}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const answer = await readAnswer(await admin.fetch(request));
    const set = answer.headers.get('set-cookie');
    if (set !== null) cookie = set.slice(0, set.indexOf(';'));
    return answer;
  };
  const logIn = (token: string, headers: Record<string, string> = {}) => send('POST', '/session', { token }, headers);
  return { ...rest, admin, send, logIn, cookie: () => cookie };
}

const address = '10.0.0.1';

describe('a session', () => {
  forEachDialect((dialect) => {
    test('begins with a login and lets a browser read and, with its CSRF value, change', async () => {
      const { send, logIn } = await browse(dialect);

      const before = await send('GET', '/session');
      const login = await logIn(TOKEN);
      const csrf = login.body.csrf as string;
      const read = await send('GET', '/queues');
      const bare = await send('POST', '/queues/q/pause');
      const changed = await send('POST', '/queues/q/pause', undefined, { 'x-everstep-csrf': csrf });

      const nothing = { csrf: null, expiresAt: null, version: null, dialect: null, appName: null };
      expect(before.body).toEqual({ authenticated: false, readOnly: true, ...nothing });
      expect(login.body).toMatchObject({
        authenticated: true,
        readOnly: false,
        dialect: dialect.name,
        appName: 'test',
      });
      expect((await send('GET', '/session')).body).toEqual(login.body);
      expect(read.status).toBe(200);
      expect([bare.status, bare.body.error.message]).toEqual([403, expect.stringContaining('x-everstep-csrf')]);
      expect([changed.status, changed.body]).toEqual([200, { changed: true }]);
    });
  });

  test('that is over is refused everywhere, and begins again with a login', async () => {
    const { admin, logIn, send } = await browse(sqlite);
    const yesterday = new ManualClock(Date.now() - 24 * HOUR_MS);
    const sessions = new Sessions({ token: TOKEN, readOnlyToken: READ_ONLY_TOKEN });
    const { cookie } = sessions.logIn(TOKEN, new Request('http://ops.example/'), { clock: yesterday, address });
    const expired = { cookie: cookie.slice(0, cookie.indexOf(';')) };
    const paths = ['/workflows', '/queues', '/overview', '/events', '/workflows/w/streams'];

    const statuses = await Promise.all(paths.map(async (path) => (await send('GET', path, undefined, expired)).status));
    const session = await send('GET', '/session', undefined, expired);
    const changed = await send('POST', '/queues/q/pause', undefined, expired);
    const login = await logIn(TOKEN);

    expect(statuses).toEqual(paths.map(() => 401));
    expect(session.body).toMatchObject({ authenticated: false });
    expect(changed.status).toBe(401);
    expect(login.status).toBe(200);
    expect((await send('GET', '/queues')).status).toBe(200);
    admin.close();
  });

  test('has a cookie that scripts cannot read and other sites cannot send', async () => {
    const { logIn } = await browse(sqlite);

    const plain = (await logIn(TOKEN)).headers.get('set-cookie') ?? '';
    const proxied = (await logIn(TOKEN, { 'x-forwarded-proto': 'https' })).headers.get('set-cookie') ?? '';
    const direct = (await logIn(TOKEN, { origin: 'https://ops.example' })).headers.get('set-cookie') ?? '';

    for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=43200'])
      expect(plain).toContain(attribute);
    expect(plain).not.toContain('Secure');
    expect(plain).not.toContain(TOKEN);
    expect(proxied).toMatch(/; Secure$/);
    expect(direct).toMatch(/; Secure$/);
  });

  test('ends with a logout', async () => {
    const { send, logIn } = await browse(sqlite);
    await logIn(TOKEN);

    const logout = await send('DELETE', '/session');

    expect([logout.status, logout.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')]);
    expect((await send('GET', '/session')).body.authenticated).toBe(false);
    expect((await send('GET', '/queues')).status).toBe(401);
  });

  test.each([{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none' }])(
    'changes nothing for other pages: %j',
    async (headers) => {
      const { send, logIn } = await browse(sqlite);
      const { body } = await logIn(TOKEN);

      const answer = await send('POST', '/queues/q/pause', undefined, { 'x-everstep-csrf': body.csrf, ...headers });

      expect(answer.status).toBe(403);
      expect((await logIn(TOKEN, headers)).status).toBe(403);
    },
  );

  test('goes by the origin where a browser says nothing else', async () => {
    const { admin, logIn, cookie } = await browse(sqlite);
    const { body } = await logIn(TOKEN);
    const pause = async (headers: Record<string, string>): Promise<number> => {
      const all = { cookie: cookie(), host: 'inside:3001', 'x-everstep-csrf': body.csrf as string, ...headers };
      const request = new Request('http://localhost/api/v1/queues/q/pause', { method: 'POST', headers: all });
      return (await admin.fetch(request)).status;
    };

    expect(await pause({ origin: 'http://evil.example' })).toBe(403);
    expect(await pause({ origin: 'null' })).toBe(403);
    expect(await pause({ origin: 'http://inside:3001' })).toBe(200);
    expect(await pause({ origin: 'https://ops.example', 'x-forwarded-host': 'ops.example' })).toBe(200);
  });

  test('is for the JSON API only', async () => {
    const { admin, logIn, cookie } = await browse(sqlite);
    await logIn(TOKEN);

    for (const path of ['/metrics', '/deactivate', '/workflows/x', '/conductor']) {
      const answer = await admin.fetch(new Request(`http://localhost${path}`, { headers: { cookie: cookie() } }));
      expect([path, answer.status]).toEqual([path, 401]);
    }
  });

  test('is not needed where the application guards the interface', async () => {
    const { call } = await setup(sqlite, { token: undefined, isOpen: true });

    const session = await call('GET', '/api/v1/session', undefined, { authorization: '', host: 'localhost' });
    const login = await call('POST', '/api/v1/session', { token: 'any' }, { authorization: '', host: 'localhost' });
    const changed = await call('POST', '/api/v1/queues/q/pause', undefined, { authorization: '', host: 'localhost' });
    const foreign = await call('GET', '/api/v1/session', undefined, { authorization: '', host: 'evil.example' });

    expect(session.body).toMatchObject({ authenticated: true, readOnly: false, csrf: null });
    expect([login.status, login.headers.get('set-cookie')]).toEqual([200, null]);
    expect(changed.status).toBe(200);
    expect(foreign.status).toBe(403);
  });
});

describe('a forged cookie', () => {
  const clock = new ManualClock();
  const request = (cookie = ''): Request => new Request('http://localhost/', { headers: { cookie } });
  const cookieOf = (sessions: Sessions, token = TOKEN): string =>
    sessions.logIn(token, request(), { clock, address }).cookie.replace(/;.*$/, '');

  test('is refused', () => {
    const sessions = new Sessions({ token: TOKEN, readOnlyToken: READ_ONLY_TOKEN });
    const [full, read] = [cookieOf(sessions), cookieOf(sessions, READ_ONLY_TOKEN)];
    const other = cookieOf(new Sessions({ token: 'another' }), 'another').replace(
      /^[^=]*/,
      full.slice(0, full.indexOf('=')),
    );

    expect(sessions.find(request(full), clock)).toMatchObject({ role: 'full' });
    expect(sessions.find(request(read), clock)).toMatchObject({ role: 'read' });
    const forged = [
      read.replace('=read.', '=full.'),
      full.replace(/\.\d+\./, '.9999999999999.'),
      full.slice(0, -2),
      `${full}x`,
      full.replace(/\.[^.]*$/, '.'),
      other,
      full.replace(/=.*/, '='),
      full.replace(/=.*/, '=full.1e9.a.b'),
    ];
    for (const one of forged) expect([one, sessions.find(request(one), clock)]).toEqual([one, undefined]);
  });

  test('of a session that is over is refused', () => {
    const timed = new ManualClock();
    const sessions = new Sessions({ token: TOKEN });
    const cookie = sessions.logIn(TOKEN, request(), { clock: timed, address }).cookie.replace(/;.*$/, '');

    timed.advance(12 * HOUR_MS - 1);
    expect(sessions.find(request(cookie), timed)).toBeDefined();
    timed.advance(1);
    expect(sessions.find(request(cookie), timed)).toBeUndefined();
  });

  test('is that of another application on the same host', () => {
    const [one, other] = [new Sessions({ token: 'one' }), new Sessions({ token: 'other' })];

    const both = `${cookieOf(one, 'one')}; ${cookieOf(other, 'other')}`;

    expect(one.find(request(both), clock)).toBeDefined();
    expect(other.find(request(both), clock)).toBeDefined();
  });
});

describe('logins', () => {
  const request = new Request('http://localhost/');
  const codeOf = (act: () => unknown): unknown => {
    try {
      return act() && 'ok';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  test('with a wrong token have to wait after some from one address, and those with the right one never', () => {
    const clock = new ManualClock();
    const sessions = new Sessions({ token: TOKEN, clock });
    const logIn = (token: string, from = address): unknown =>
      codeOf(() => sessions.logIn(token, request, { clock, address: from }));

    for (let attempt = 0; attempt < 10; attempt++) expect(logIn(`wrong ${attempt}`)).toBe('UNAUTHORIZED');
    expect(logIn('wrong')).toBe('TOO_MANY_ATTEMPTS');
    expect(logIn('wrong', '10.0.0.2')).toBe('UNAUTHORIZED');
    expect(logIn(TOKEN)).toBe('ok');
    clock.advance(60_000);
    expect(logIn('wrong')).toBe('UNAUTHORIZED');
  });

  test('with a token for one time work once', () => {
    const clock = new ManualClock();
    const sessions = new Sessions({ token: TOKEN, isOneTime: true });

    const { cookie } = sessions.logIn(TOKEN, request, { clock, address });

    expect(codeOf(() => sessions.logIn(TOKEN, request, { clock, address }))).toBe('UNAUTHORIZED');
    expect(sessions.roleOf(TOKEN)).toBeUndefined();
    const again = new Request('http://localhost/', { headers: { cookie: cookie.replace(/;.*$/, '') } });
    expect(sessions.find(again, clock)).toBeDefined();
  });
});

describe('a read-only access', () => {
  const pathOf = (path: string): string => path.replaceAll(/\{\w+\}/g, 'some');
  const changes = [
    ...ROUTES.filter(({ method, isReading, isPublic }) => method !== 'GET' && !isReading && !isPublic).map(
      ({ method, path }) => ({ method, path: `/api/v1${pathOf(path)}` }),
    ),
    ...LEGACY_ROUTES.filter(({ method, isReading = method === 'GET' }) => !isReading).map(({ method, path }) => ({
      method,
      path: pathOf(path),
    })),
  ];

  test.each([
    ['of the token for it', { readOnlyToken: READ_ONLY_TOKEN }, READ_ONLY_TOKEN],
    ['of a read-only interface', { isReadOnly: true }, TOKEN],
  ])('%s is refused every change', async (_, options, token) => {
    const { call } = setupWithoutEngine(options);

    expect(changes).toContainEqual({ method: 'GET', path: '/deactivate' });
    for (const { method, path } of changes) {
      const { status } = await call(method, path, undefined, { authorization: `Bearer ${token}` });
      expect([method, path, status]).toEqual([method, path, 403]);
    }
  });

  test('reads, in a session too', async () => {
    const { send, logIn, call } = await browse(sqlite);
    const headers = { authorization: `Bearer ${READ_ONLY_TOKEN}` };

    const { body } = await logIn(READ_ONLY_TOKEN);
    const refused = await send('POST', '/queues/q/pause', undefined, { 'x-everstep-csrf': body.csrf });

    expect(body).toMatchObject({ authenticated: true, readOnly: true });
    expect(refused.status).toBe(403);
    expect((await send('GET', '/workflows')).status).toBe(200);
    expect((await call('POST', '/workflows', {}, headers)).status).toBe(200);
    const aggregates = { groupByStatus: true, selectCount: true };
    expect((await call('POST', '/api/v1/aggregates/workflows', aggregates, headers)).status).toBe(200);
  });
});
