// Between Node's requests and those of the Web standard.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { jsonAnswer } from './answer.js';

type Fetch = (request: Request) => Promise<Response>;

/** Answers a request of Node's HTTP server. Resolves when all is sent, or the client has gone. */
export async function serveNode(fetch: Fetch, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const request = toRequest(incoming);
  const response = request
    ? await fetch(request)
    : jsonAnswer({ error: { code: 'INVALID_REQUEST', message: 'The request cannot be read.' } }, 400);
  outgoing.statusCode = response.status;
  response.headers.forEach((value, name) => outgoing.setHeader(name, value));
  // The rest of a body that is too large is not waited for.
  if (response.status === 413) outgoing.setHeader('connection', 'close');
  if (response.body) await sendBody(response.body, outgoing);
  else outgoing.end();
}

/** Undefined for a request that has no form in the Web standard. */
function toRequest(incoming: IncomingMessage): Request | undefined {
  const { method = 'GET', url = '/' } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  try {
    // The name of the host is in the headers. What stands here must not come from the client.
    const target = new URL(url.startsWith('/') ? `http://localhost${url}` : url);
    const body = hasBody ? bodyOf(incoming) : undefined;
    return new Request(`http://localhost${target.pathname}${target.search}`, { method, headers, body, duplex: 'half' });
  } catch {
    // A method or an address that browsers would not send either.
    return undefined;
  }
}

/** The body, or what a framework has made of it already. */
function bodyOf(incoming: IncomingMessage & { readonly body?: unknown }): RequestInit['body'] {
  const { body } = incoming;
  // Node's stream of the Web standard is the one that its requests take.
  if (!incoming.readableEnded) return Readable.toWeb(incoming) as RequestInit['body'];
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return body as RequestInit['body'];
  return JSON.stringify(body);
}

/** Sends no faster than the client reads. */
async function sendBody(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader();
  // The client may have gone while the answer was made.
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
