// Adapts Node's HTTP requests to the Fetch API.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isAmbiguousPath } from '../../../kernel/base/url.js';
import { jsonResponse } from './response.js';

/** What a request does not say about itself. */
export interface Connection {
  /** The path that the client sees, if a framework has stripped a part of it. */
  readonly visiblePath?: string | undefined;
  readonly address?: string | undefined;
}

type Fetch = (request: Request, connection: Connection) => Promise<Response>;

/** Handles a request of Node's HTTP server. Resolves when the response is sent or the client has disconnected. */
export async function serveNode(fetch: Fetch, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const request = toRequest(incoming);
  const response = request
    ? await fetch(request, { visiblePath: pathBefore(incoming), address: incoming.socket.remoteAddress })
    : jsonResponse({ error: { code: 'INVALID_REQUEST', message: 'The request cannot be read.' } }, 400);
  outgoing.statusCode = response.status;
  response.headers.forEach((value, name) => outgoing.setHeader(name, value));
  // Do not wait for the rest of an oversized body.
  if (response.status === 413) outgoing.setHeader('connection', 'close');
  if (response.body) await sendBody(response.body, outgoing);
  else outgoing.end();
}

/** Express and others keep the whole URL when they strip the mount path. */
function pathBefore({ originalUrl }: IncomingMessage & { readonly originalUrl?: unknown }): string | undefined {
  return typeof originalUrl === 'string' ? originalUrl.replace(/[?#].*$/, '') : undefined;
}

/** Undefined for a request that the Fetch API cannot represent. */
function toRequest(incoming: IncomingMessage): Request | undefined {
  const { method = 'GET', url = '/' } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // The host name is in the headers; do not take this one from the client.
  const target = url.replace(/^https?:\/\/[^/?#]+/i, '');
  // A guard in front of us may have seen another path than the one that `URL` would resolve it to.
  if (isAmbiguousPath(target.replace(/\?.*$/, ''))) return undefined;
  const scheme = 'encrypted' in incoming.socket ? 'https' : 'http';
  try {
    const body = hasBody ? bodyOf(incoming) : undefined;
    return new Request(`${scheme}://localhost${target}`, { method, headers, body, duplex: 'half' });
  } catch {
    // Invalid method or URL.
    return undefined;
  }
}

/** The body stream, or what a framework has already parsed. */
function bodyOf(incoming: IncomingMessage & { readonly body?: unknown }): RequestInit['body'] {
  const { body } = incoming;
  // The types of Node's web streams and of RequestInit differ; at run time they match.
  if (!incoming.readableEnded) return Readable.toWeb(incoming) as RequestInit['body'];
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return body as RequestInit['body'];
  return JSON.stringify(body);
}

/** Sends the body with backpressure. */
async function sendBody(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader();
  // The client may have disconnected meanwhile.
  if (outgoing.destroyed) return reader.cancel();
  const gone = new Promise<'gone'>((resolve) => outgoing.once('close', () => resolve('gone')));
  outgoing.flushHeaders();
  for (;;) {
    const part = await Promise.race([reader.read(), gone]);
    if (part === 'gone') break;
    if (part.done) {
      outgoing.end();
      return;
    }
    if (outgoing.write(part.value)) continue;
    const drained = new Promise<void>((resolve) => outgoing.once('drain', resolve));
    if ((await Promise.race([drained, gone])) === 'gone') break;
  }
  await reader.cancel();
}
