// The body of a request: read up to a limit, and understood as JSON.
import { invalid, Refusal } from './refusal.js';

/** The text of the body, undefined if there is none. */
export async function readBody(request: Request, maxBytes: number): Promise<string | undefined> {
  if (!request.body) return undefined;
  // A length that is a lie is noticed below.
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      // Leaving the loop cancels the body.
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    // Otherwise the client has gone in the middle of it.
    throw error instanceof Refusal ? error : invalid('The body could not be read.');
  }
  return bytes === 0 ? undefined : decode(Buffer.concat(chunks));
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(413, 'PAYLOAD_TOO_LARGE', `The body has more than ${maxBytes} bytes.`);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid('The body is not valid UTF-8.');
  }
}

/** The body as JSON; an empty object if there is none. */
export async function readJSON(request: Request, maxBytes: number): Promise<unknown> {
  const text = await readBody(request, maxBytes);
  if (text === undefined) return {};
  if (!isJSON(request.headers.get('content-type'))) {
    throw new Refusal(415, 'UNSUPPORTED_MEDIA_TYPE', 'The body must be sent as application/json.');
  }
  return parseJSON(text);
}

function isJSON(contentType: string | null): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType?.trim() ?? '');
}

export function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body.
    throw invalid('The body is not valid JSON.');
  }
}
