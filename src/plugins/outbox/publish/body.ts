// Bodies as bytes. The encodings are those of FastStream: JSON, text, or bytes without a content type.
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import { isWellFormed } from '../../../kernel/check/validation.js';

export const CONTENT_TYPE = 'content-type';
export const CORRELATION_ID = 'correlation_id';
const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain';

export interface EncodedBody {
  /** One of the two is set. */
  readonly text: string | null;
  readonly hex: string | null;
  readonly contentType: string | undefined;
}

export function encodeBody(body: unknown): EncodedBody {
  if (body instanceof Uint8Array) return { text: null, hex: Buffer.from(body).toString('hex'), contentType: undefined };
  if (typeof body === 'string') return { ...storable(wellFormed(body)), contentType: TEXT_TYPE };
  return { ...storable(toJSON(body)), contentType: JSON_TYPE };
}

function toJSON(body: unknown): string {
  try {
    const text = JSON.stringify(body) as string | undefined;
    if (text !== undefined) return text;
  } catch (cause) {
    throw new InvalidOutboxError('The body cannot be written as JSON. Publish plain data, a string or bytes.', {
      cause,
    });
  }
  throw new InvalidOutboxError('The body has no JSON form. Publish plain data, a string or bytes.');
}

/** Half of a surrogate pair has no bytes: something else would arrive. */
function wellFormed(text: string): string {
  if (isWellFormed(text)) return text;
  throw new InvalidOutboxError('The body has half of a surrogate pair, which has no form in UTF-8. Publish bytes.');
}

/** Postgres has no text with NUL in it, but bytes. */
function storable(text: string): Pick<EncodedBody, 'text' | 'hex'> {
  return text.includes('\0') ? { text: null, hex: Buffer.from(text).toString('hex') } : { text, hex: null };
}

/** Decodes by content type. Without one it is JSON if it can be, else bytes. Throws for JSON that is none. */
export function decodeBody(payload: Uint8Array, contentType: string | undefined): unknown {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const type = contentType?.split(';')[0]?.trim().toLowerCase();
  if (type === JSON_TYPE || type?.endsWith('+json')) return JSON.parse(bytes.toString('utf8')) as unknown;
  if (type?.startsWith('text/')) return bytes.toString('utf8');
  if (type !== undefined) return bytes;
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch {
    // Programs publish bytes without a content type.
    return bytes;
  }
}
