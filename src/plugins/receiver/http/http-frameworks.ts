// The routes as middleware for Express, Fastify, Koa and Hono. The types name only what is used of each framework, so
// that none has to be installed.
import { InvalidReceiverError } from '../../../kernel/errors/errors.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BodyTooLargeError, HttpError, type HttpAnswer, type HttpRequest, type WorkflowRoutes } from './http-routes.js';

type NodeRequest = IncomingMessage & { readonly body?: unknown };

/** For Express, Connect and Node's own server: `app.use(expressRoutes(routes))`, before any body parser. */
export function expressRoutes(
  routes: WorkflowRoutes,
): (request: NodeRequest, response: ServerResponse, next: (error?: unknown) => void) => void {
  return (request, response, next) => {
    routes.answer(fromNode(request, { raw: request, parsed: request.body })).then((answer) => {
      if (!answer) return next();
      // A middleware may have given up waiting. Headers set now would throw, with no one to catch it.
      if (response.headersSent) return;
      response.statusCode = answer.status;
      response.setHeader('content-type', 'application/json');
      // The rest of a body that is too large stays unread, so the connection can't be reused.
      if (answer.status === 413) response.setHeader('connection', 'close');
      response.end(answer.text);
    }, next);
  };
}

interface KoaContext {
  readonly req: IncomingMessage;
  readonly request: object;
  status: number;
  body: unknown;
  set(name: string, value: string): void;
}

/** For Koa: `app.use(koaRoutes(routes))`, before any body parser. */
export function koaRoutes(
  routes: WorkflowRoutes,
): (context: KoaContext, next: () => Promise<unknown>) => Promise<void> {
  return async (context, next) => {
    const { body } = context.request as { readonly body?: unknown };
    const answer = await routes.answer(fromNode(context.req, { raw: context, parsed: body }));
    if (!answer) return void (await next());
    context.status = answer.status;
    if (answer.status === 413) context.set('connection', 'close');
    context.set('content-type', 'application/json');
    context.body = answer.text;
  };
}

interface HonoContext {
  readonly req: { readonly raw: Request };
}

/** For Hono, on any runtime that runs `DBOS`: `app.use(honoRoutes(routes))`. */
export function honoRoutes(
  routes: WorkflowRoutes,
): (context: HonoContext, next: () => Promise<void>) => Promise<Response | void> {
  return async (context, next) => {
    const answer = await routes.answer({ ...fromWeb(context.req.raw), raw: context });
    if (!answer) return next();
    return new Response(answer.text, {
      status: answer.status,
      headers: { 'content-type': 'application/json' },
    });
  };
}

interface FastifyLike {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(type: string, parser: (request: unknown, payload: IncomingMessage, done: Done) => void): unknown;
  route(options: {
    method: string;
    url: string;
    handler: (request: { readonly raw: IncomingMessage }, reply: FastifyReplyLike) => Promise<unknown>;
  }): unknown;
}

const NOT_FOUND: HttpAnswer = { status: 404, text: '{"error":"not_found"}' };

type Done = (error: Error | null, body?: unknown) => void;

interface FastifyReplyLike {
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: unknown): unknown;
}

/** For Fastify: `app.register(fastifyRoutes(routes))`. The routes parse bodies themselves. */
export function fastifyRoutes(routes: WorkflowRoutes): (app: FastifyLike) => Promise<void> {
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_, __, done) => done(null));
    for (const { method, path } of routes.list) {
      app.route({
        method,
        url: path,
        handler: async (request, reply) => {
          const answer = (await routes.answer(fromNode(request.raw, { raw: request }))) ?? NOT_FOUND;
          reply.code(answer.status);
          if (answer.status === 413) reply.header('connection', 'close');
          reply.header('content-type', 'application/json');
          return answer.text;
        },
      });
    }
  };
}

/** `raw` is the framework's request, and `parsed` the result of a body parser that ran before. */
function fromNode(
  request: IncomingMessage,
  { raw, parsed }: { readonly raw: unknown; readonly parsed?: unknown },
): HttpRequest {
  const { path, parameters } = splitTarget(request.url ?? '/');
  return {
    method: request.method ?? 'GET',
    path,
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    query: (name) => parameters.get(name) ?? undefined,
    raw,
    body: (limit) => readNodeBody(request, parsed, limit),
  };
}

/** Leaves the path as sent, which is what the framework matches. `URL` would resolve it to another one. */
function splitTarget(target: string): { readonly path: string; readonly parameters: URLSearchParams } {
  const end = target.indexOf('?');
  return {
    path: end < 0 ? target : target.slice(0, end),
    parameters: new URLSearchParams(end < 0 ? '' : target.slice(end + 1)),
  };
}

/** If a body parser has consumed the body, its bytes are only known if the parser returned them. */
async function readNodeBody(request: IncomingMessage, parsed: unknown, limit: number): Promise<Uint8Array> {
  if (parsed instanceof Uint8Array || typeof parsed === 'string') return bounded(Buffer.from(parsed), limit);
  if (parsed !== undefined && request.readableEnded) {
    throw new InvalidReceiverError('The body was already parsed. Mount the workflow routes before the body parser.');
  }
  if (Number(request.headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError();
  return collect(request, limit);
}

function fromWeb(request: Request): HttpRequest {
  const { path, parameters } = splitTarget(request.url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, ''));
  return {
    method: request.method,
    path,
    header: (name) => request.headers.get(name) ?? undefined,
    query: (name) => parameters.get(name) ?? undefined,
    body: async (limit) => {
      if (Number(request.headers.get('content-length') ?? 0) > limit) throw new BodyTooLargeError();
      return request.body ? collect(request.body, limit) : new Uint8Array();
    },
  };
}

async function collect(chunks: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of chunks) {
      length += chunk.length;
      if (length > limit) throw new BodyTooLargeError();
      parts.push(chunk);
    }
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, 'body_incomplete');
  }
  return Buffer.concat(parts);
}

function bounded(body: Uint8Array, limit: number): Uint8Array {
  if (body.length > limit) throw new BodyTooLargeError();
  return body;
}
