// Reads a request body up to a limit, and parses it as JSON.
import { invalid, Refusal } from './refusal.js';

/** The chunks of the body, up to a limit. */
export async function* chunksOf(request: Request, maxBytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  if (!request.body) return;
  // A false length is caught below.
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of request.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

/** The body as text; undefined if it is empty. */
export async function readBody(request: Request, maxBytes: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of chunksOf(request, maxBytes)) chunks.push(chunk);
  } catch (error) {
    // Anything else means that the client disconnected.
    throw error instanceof Refusal ? error : invalid('The body could not be read.');
  }
  const whole = Buffer.concat(chunks);
  return whole.byteLength === 0 ? undefined : decode(whole);
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(413, 'PAYLOAD_TOO_LARGE', `The body is larger than ${maxBytes} bytes.`);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid('The body is not valid UTF-8.');
  }
}

/** The body as JSON; an empty object without a body. */
export async function readJSON(request: Request, maxBytes: number): Promise<unknown> {
  const text = await readBody(request, maxBytes);
  if (text === undefined) return {};
  requireType(request, 'application/json');
  return parseJSON(text);
}

/** Refuses other media types. A browser sends these cross-site only after a CORS preflight. */
export function requireType(request: Request, ...types: string[]): void {
  const [type = ''] = (request.headers.get('content-type') ?? '').toLowerCase().split(';');
  if (types.includes(type.trim())) return;
  throw new Refusal(415, 'UNSUPPORTED_MEDIA_TYPE', `The body must be sent as ${types.join(' or ')}.`);
}

export function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body.
    throw invalid('The body is not valid JSON.');
  }
}
