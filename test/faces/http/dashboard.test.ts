import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { AdminOptions } from '../../../src/faces/http/admin.js';
import { builtDashboard, emptyFolder, SCRIPT } from './built-dashboard.js';
import { setupWithoutEngine } from './scene.js';

function setup(options: Partial<AdminOptions> = {}) {
  const { admin } = setupWithoutEngine({ dashboardFolder: builtDashboard(), ...options });
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    admin.fetch(new Request(`http://ops.example${path}`, { method, headers }));
  return { get };
}

/** Where a page is, and where its base leads a browser. */
async function baseOf(response: Response, url: string): Promise<string> {
  const [, base = ''] = /<base href="([^"]*)"/.exec(await response.text()) ?? [];
  return new URL(base, url).pathname;
}

describe('the dashboard', () => {
  test.each(['/ui/', '/ui/workflows', '/ui/workflows/abc', '/ui/workflows/a%2Fb/', '/ui/queues/x/partitions/y'])(
    'has a page at %s whose base is /ui/',
    async (path) => {
      const { get } = setup();

      const response = await get(path, { accept: 'text/html' });

      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(await baseOf(response, `http://ops.example${path}`)).toBe('/ui/');
    },
  );

  test('finds its base below a prefix, whether it knows the prefix or not', async () => {
    const known = setup({ basePath: '/tools/admin' });
    const unknown = setup();

    const path = '/tools/admin/ui/workflows/abc';
    expect(await baseOf(await known.get(path), `http://ops.example${path}`)).toBe('/tools/admin/ui/');
    // A proxy or framework has stripped the prefix that the browser sees.
    const stripped = await unknown.get('/ui/workflows/abc');
    expect(await baseOf(stripped, `http://ops.example${path}`)).toBe('/tools/admin/ui/');
  });

  test('sends browsers from the root to it', async () => {
    const { get } = setup({ basePath: '/admin' });
    const locationOf = async (path: string): Promise<string> => {
      const response = await get(path, { accept: 'text/html,*/*' });
      expect(response.status).toBe(302);
      return new URL(response.headers.get('location') ?? '', `http://ops.example${path}`).pathname;
    };

    expect(await locationOf('/admin')).toBe('/admin/ui/');
    expect(await locationOf('/admin/')).toBe('/admin/ui/');
    expect(await locationOf('/admin/ui')).toBe('/admin/ui/');
    expect((await get('/admin/', { accept: 'application/json' })).status).toBe(401);
  });

  test('runs no script of another origin or in a page, and cannot be framed', async () => {
    const { get } = setup();

    const { headers } = await get('/ui/');

    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  test('lets browsers keep hashed assets, and checks the page each time', async () => {
    const { get } = setup();

    const page = await get('/ui/');
    const asset = await get('/ui/assets/index-a1b2.js');
    const etag = page.headers.get('etag') ?? '';

    expect(page.headers.get('cache-control')).toBe('no-cache');
    expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(asset.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect((await get('/ui/', { 'if-none-match': `"other", W/${etag}` })).status).toBe(304);
    expect((await get('/ui/', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('is compressed for clients that can read it', async () => {
    const { get } = setup();

    const zipped = await get('/ui/assets/index-a1b2.js', { 'accept-encoding': 'br, gzip' });
    const plain = await get('/ui/assets/index-a1b2.js');

    expect(zipped.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(Buffer.from(await zipped.arrayBuffer())).toString()).toBe(SCRIPT);
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toBe(SCRIPT);
  });

  test.each(['/ui/assets/missing.js', '/ui/assets/..%2F..%2Fsecret', '/ui/assets/%2e%2e%2findex.html', '/ui/assets/'])(
    'has no file at %s',
    async (path) => {
      const { get } = setup();

      expect((await get(path)).status).toBe(404);
    },
  );

  test('takes a path that leads out of it for a page', async () => {
    const { get } = setup();

    const response = await get('/ui/..%2F..%2Fetc%2Fpasswd');

    expect(await response.text()).toContain('<base href="./" />');
  });

  test('is only read', async () => {
    const { get } = setup();

    expect((await get('/ui/', {}, 'POST')).status).toBe(405);
    const head = await get('/ui/icon.svg', {}, 'HEAD');
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([200, 'image/svg+xml', '']);
  });

  test('that was not built says so, until it is', async () => {
    const folder = join(emptyFolder(), 'later');
    const { get } = setup({ dashboardFolder: folder });

    const before = await get('/ui/');
    mkdirSync(folder);
    writeFileSync(join(folder, 'index.html'), '<html><head></head></html>');
    const after = await get('/ui/');

    expect([before.status, before.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(await before.text()).toContain('npm run build');
    expect(after.status).toBe(200);
  });
});
