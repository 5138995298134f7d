// Serves the dashboard under `/ui/`. The files hold no data, so they need no token: the pages read everything through the
// JSON API.
//
// The prefix under which the interface is mounted may be unknown here, as frameworks and proxies strip it. All addresses
// are therefore relative: the page gets a `<base>` that leads from the requested path back to `/ui/`.
import { respond, textResponse } from '../http/response.js';
import type { DashboardFile, DashboardFiles } from './files.js';

const HOME = '/ui';
const ASSETS = 'assets/';

const PAGE_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join('; ');

const MISSING = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><title>Everstep</title></head>
  <body>
    <h1>The dashboard is not built</h1>
    <p>Run <code>npm run build</code> in the repository of Everstep. If your application is bundled, exclude the package
    <code>everstep</code> from the bundle, or pass <code>dashboardFolder</code> to <code>createAdmin</code>.</p>
  </body>
</html>
`;

export function isDashboardPath(path: string): boolean {
  return path === HOME || path.startsWith(`${HOME}/`);
}

/** Whether a browser asks for the root of the interface, where DBOS 4's server has nothing. */
export function isVisit(request: Request, path: string): boolean {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  return isRead && path === '/' && (request.headers.get('accept') ?? '').includes('text/html');
}

/** Leads to the dashboard from the root of the interface, or from `/ui`. `visiblePath` is the path that the client sees. */
export function redirectToDashboard(visiblePath: string): Response {
  const last = visiblePath.slice(visiblePath.lastIndexOf('/') + 1);
  const isHome = visiblePath.endsWith(HOME);
  const location = last === '' ? './ui/' : `./${last}/${isHome ? '' : 'ui/'}`;
  return textResponse('', 302, { location });
}

export function dashboardResponse(files: DashboardFiles, request: Request, path: string): Response {
  const inner = path.slice(HOME.length + 1);
  const file = inner === 'index.html' ? undefined : files.find(inner);
  if (file) return send(file, request, inner.startsWith(ASSETS) ? 'public, max-age=31536000, immutable' : 'no-cache');
  if (inner.startsWith(ASSETS)) return textResponse('Not Found', 404);
  const page = files.page(baseOf(inner));
  return page
    ? send(page, request, 'no-cache')
    : textResponse(MISSING, 404, { 'content-type': 'text/html; charset=utf-8' });
}

/** The way back from a path below `/ui/`, as a browser resolves it. */
function baseOf(inner: string): string {
  const depth = inner.split('/').length - 1;
  return depth === 0 ? './' : '../'.repeat(depth);
}

function send({ type, bytes, gzipped, etag }: DashboardFile, request: Request, caching: string): Response {
  const headers = {
    'cache-control': caching,
    'content-security-policy': PAGE_POLICY,
    'cross-origin-resource-policy': 'same-origin',
    etag,
    vary: 'accept-encoding',
  };
  if (isKnown(request.headers.get('if-none-match'), etag)) return respond(null, 304, headers);
  const isGzipped = gzipped !== undefined && /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
  const body = new Uint8Array(isGzipped ? gzipped : bytes);
  return respond(body, 200, {
    ...headers,
    'content-type': type,
    'content-length': String(body.byteLength),
    ...(isGzipped && { 'content-encoding': 'gzip' }),
  });
}

/** Proxies that compress mark the tag as weak. */
function isKnown(tags: string | null, etag: string): boolean {
  return (tags ?? '').split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
