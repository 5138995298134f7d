// The interface as one function from request to response, independent of server and framework.
//
//   /healthz, /readyz      no token needed
//   /metrics               for Prometheus
//   /ui/…                  the dashboard; no token needed for its files
//   /api/v1/…              the JSON API
//   anything else          the legacy endpoints of DBOS 4
import { internals } from '../../kernel/base/internals.js';
import type { Clock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { silentLogger } from '../../kernel/base/log.js';
import { withTimeLimit } from '../../kernel/base/time-limit.js';
import { readNow } from '../../database/now.js';
import { DashboardFiles } from './dashboard/files.js';
import { Readings } from './dashboard/readings.js';
import { dashboardResponse, isDashboardPath, isVisit, redirectToDashboard } from './dashboard/pages.js';
import { type Access, AccessControl, type AccessOptions, requireChange } from './http/access.js';
import { emptyResponse, jsonResponse, textResponse, withoutBody } from './http/response.js';
import type { Connection } from './http/node.js';
import { parseJSON, readBody, readJSON } from './http/body.js';
import { EXPOSITION_TYPE } from './metrics/exposition.js';
import { ChangeFeed, type FeedOptions } from './changes/feed.js';
import { LEGACY_ROUTES } from './legacy.js';
import { EventLoop, metricsText } from './metrics/metrics.js';
import { readQuery } from './http/query.js';
import { notFound, readRequest, Refusal, refusalOf } from './http/refusal.js';
import { type Environment, isReading, type Match, type Routed, Router } from './http/route.js';
import { ROUTES } from './routes.js';
import { nonEmpty } from './shape.js';
import { type AdminSource, beginRequest, type StoreOperator } from './source.js';
import type { AdminOutbox } from '../../plugins/outbox/outbox-view.http.js';

export interface HandlerOptions extends AccessOptions {
  readonly source: AdminSource;
  /** Path prefix, if the interface is not mounted at the root. */
  readonly basePath: string;
  /** Default: 1 MiB. */
  readonly bodyMaxBytes?: number | undefined;
  readonly feed?: FeedOptions;
  readonly outboxes?: ReadonlyMap<string, AdminOutbox>;
  /** A check of the application's own, for `/readyz`. */
  readonly isReady?: () => boolean | Promise<boolean>;
  /** The built dashboard, if it is not in this package. */
  readonly dashboardFolder?: string;
}

const API = '/api/v1';
const BODY_MAX_BYTES = 1_048_576;
const READY_MS = 1000;
/** The methods of paths that only read. */
const READING: ReadonlyMap<string, unknown> = new Map([['GET', undefined]]);

export class Handler {
  readonly #options: HandlerOptions;
  readonly #environment: Environment;
  readonly #eventLoop = new EventLoop();
  readonly #api = new Router(ROUTES);
  readonly #legacy = new Router(LEGACY_ROUTES);
  readonly #dashboard: DashboardFiles;

  constructor(options: HandlerOptions) {
    this.#options = options;
    this.#dashboard = new DashboardFiles(options.dashboardFolder);
    const { source, outboxes = new Map<string, AdminOutbox>() } = options;
    const access = new AccessControl(options);
    const feed = new ChangeFeed(source, options.feed);
    this.#environment = { source, access, feed, readings: new Readings(), outboxes };
  }

  get #bodyMaxBytes(): number {
    return this.#options.bodyMaxBytes ?? BODY_MAX_BYTES;
  }

  /** Ends the event streams. */
  close(): void {
    this.#environment.feed.end();
    this.#eventLoop.stop();
  }

  async fetch(request: Request, { visiblePath, address = '' }: Connection = {}): Promise<Response> {
    const path = this.#pathOf(request);
    try {
      const response =
        this.#respondStatic(request, path, visiblePath ?? new URL(request.url).pathname) ??
        (await this.#respond(request, path, address));
      return request.method === 'HEAD' ? await withoutBody(response) : response;
    } catch (error) {
      const { status, code, message, headers } = refusalOf(error, this.#logger);
      return jsonResponse({ error: { code, message } }, status, headers);
    }
  }

  /** Undefined for a path outside `basePath`. */
  #pathOf(request: Request): string | undefined {
    const { pathname } = new URL(request.url);
    const { basePath } = this.#options;
    const path = pathname.startsWith(basePath) ? pathname.slice(basePath.length) : undefined;
    return path === '' ? '/' : path?.startsWith('/') ? path : undefined;
  }

  /** The dashboard's files. */
  #respondStatic(request: Request, path: string | undefined, visiblePath: string): Response | undefined {
    if (path === undefined) return undefined;
    if (isVisit(request, path)) return redirectToDashboard(visiblePath);
    if (!isDashboardPath(path)) return undefined;
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(READING, request);
    return path === '/ui' ? redirectToDashboard(visiblePath) : dashboardResponse(this.#dashboard, request, path);
  }

  async #respond(request: Request, path: string | undefined, address: string): Promise<Response> {
    if (path === '/healthz') return readOnly(request, () => textResponse('ok'));
    if (path === '/readyz') return readOnly(request, () => this.#readiness());
    if (path === API || path?.startsWith(`${API}/`)) {
      return this.#respondAPI(request, path.slice(API.length), address);
    }
    const access = this.#environment.access.require(request, { address });
    if (path === undefined) throw notFound('Unknown path.');
    if (path === '/metrics') return readOnly(request, () => this.#metrics());
    return this.#respondLegacy(request, path, access);
  }

  async #respondAPI(request: Request, path: string, address: string): Promise<Response> {
    const found = this.#api.find(path);
    const match = found && matchOf(found, request);
    const access = this.#accessOf(request, match?.route.isPublic ?? false, address);
    if (!found || found.size === 0) throw notFound('Unknown path.');
    if (!match) return refuseMethod(found, request);
    const { route } = match;
    if (access && !route.isPublic && !isReading(route)) requireChange(request, access);
    for (const [name, value] of Object.entries(match.path)) readRequest(nonEmpty, value, name);
    const query = readQuery(route.query, route.queryCheck, new URL(request.url).searchParams);
    const body = route.body && readRequest(route.body, await readJSON(request, this.#bodyMaxBytes), 'The body');
    return this.#withOperator(async (operator) => {
      const environment = this.#environment;
      const result = await route.handle({
        operator,
        environment,
        request,
        address,
        access,
        path: match.path,
        query,
        body,
      });
      // Subscribers see changes made here at once.
      if (!isReading(route)) environment.feed.refresh();
      if (result instanceof Response) return result;
      return route.status === 204 ? emptyResponse() : jsonResponse(result, route.status);
    });
  }

  #accessOf(request: Request, isPublic: boolean, address: string): Access | undefined {
    const { access, source } = this.#environment;
    const clock = (): Clock => source[internals].operator.clock;
    return isPublic ? access.find(request, { clock, address }) : access.require(request, { clock, address });
  }

  /** Reports failures the way the DBOS 4 server does, except for requests that make no sense. */
  async #respondLegacy(request: Request, path: string, access: Access): Promise<Response> {
    if (request.method === 'OPTIONS') return emptyResponse(200);
    const match = matchOf(this.#legacy.find(path) ?? new Map<string, never>(), request);
    if (!match) return textResponse('Not Found', 404);
    if (!isReading(match.route)) requireChange(request, access);
    try {
      for (const [name, value] of Object.entries(match.path)) readRequest(nonEmpty, value, name);
      const text = await readBody(request, this.#bodyMaxBytes);
      const body = match.route.method === 'POST' && text !== undefined ? parseJSON(text) : {};
      const { source } = this.#options;
      const workflowID = match.path['workflowID'] ?? '';
      return await this.#withOperator((operator) =>
        match.route.handle({ operator, source, perf: this.#eventLoop, workflowID, body }),
      );
    } catch (error) {
      const refusal = refusalOf(error, this.#logger);
      if (isClientFault(refusal)) return jsonResponse({ error: refusal.message }, refusal.status);
      return jsonResponse({ error: 'Internal server error' }, 500);
    }
  }

  async #withOperator<T>(act: (operator: StoreOperator) => Promise<T>): Promise<T> {
    const scope = beginRequest(this.#environment.source);
    try {
      return await act(scope.operator);
    } finally {
      scope.end();
    }
  }

  async #metrics(): Promise<Response> {
    const text = await this.#withOperator((operator) => metricsText(operator, this.#environment, this.#eventLoop));
    return textResponse(text, 200, { 'content-type': EXPOSITION_TYPE });
  }

  /** Ready means launched, with a database that answers in time, and what the application itself asks for. */
  async #readiness(): Promise<Response> {
    return (await this.#isReady()) ? textResponse('ready') : textResponse('not ready', 503);
  }

  async #isReady(): Promise<boolean> {
    try {
      const { clock, database } = this.#options.source[internals].operator;
      const { isReady = () => true } = this.#options;
      const answered = Promise.all([readNow(database), isReady()]).then(
        ([, isOwnReady]) => isOwnReady,
        () => false,
      );
      return await withTimeLimit(clock, READY_MS, answered, () => false);
    } catch {
      // Not launched.
      return false;
    }
  }

  get #logger(): DLogger {
    try {
      return this.#options.source[internals].operator.logger;
    } catch {
      // Not launched: there is no logger yet.
      return silentLogger;
    }
  }
}

/** The DBOS 4 server answers 500 to these too. Its clients do not tell them apart, and monitoring does. */
function isClientFault({ status }: Refusal): boolean {
  return status === 400 || status === 413 || status === 422;
}

type Matches<R extends Routed> = ReadonlyMap<string, Match<R>>;

/** HEAD is routed as GET. */
function matchOf<R extends Routed>(found: Matches<R>, { method }: Request): Match<R> | undefined {
  return found.get(method === 'HEAD' ? 'GET' : method);
}

function refuseMethod(found: ReadonlyMap<string, unknown>, { method }: Request): Response {
  const allow = [...found.keys(), ...(found.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  if (method === 'OPTIONS') return emptyResponse(204, { allow });
  throw new Refusal(405, 'METHOD_NOT_ALLOWED', `Method not allowed. Use one of ${allow}.`, { allow });
}

async function readOnly(request: Request, respond: () => Response | Promise<Response>): Promise<Response> {
  if (request.method === 'GET' || request.method === 'HEAD') return respond();
  return refuseMethod(READING, request);
}
