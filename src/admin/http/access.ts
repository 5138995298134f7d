// Access control: a bearer token. An interface opened on purpose serves programs on this machine only, so it refuses
// cross-site browser requests and foreign host names.
import { createHash, timingSafeEqual } from 'node:crypto';
import { Refusal } from './refusal.js';

export interface AccessOptions {
  /** Clients send it as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Serves without a token. */
  readonly isOpen: boolean;
  /** Host names an open interface accepts. Defaults to the loopback names. */
  readonly allowedHosts?: readonly string[];
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Throws if the request is not allowed. */
export function checkAccess(request: Request, { token, isOpen, allowedHosts }: AccessOptions): void {
  if (token !== undefined && isBearer(request.headers.get('authorization'), token)) return;
  if (!isOpen) throw unauthorized();
  const host = (request.headers.get('host') ?? new URL(request.url).host).toLowerCase();
  // DNS rebinding: a page whose own name resolves to this machine could otherwise read every response.
  const name = host.replace(/:\d+$/, '');
  if (!(allowedHosts?.includes(name) ?? LOOPBACK_HOST.test(name))) {
    throw forbidden(
      'The interface is open to this machine only. Use a loopback name such as localhost, or set a token.',
    );
  }
  if (isCrossSite(request.headers, host)) throw forbidden('Cross-site requests are refused.');
}

function isBearer(authorization: string | null, token: string): boolean {
  const given = /^Bearer +(.+?) *$/i.exec(authorization ?? '')?.[1];
  // Digests have equal length, so the comparison leaks nothing about the token.
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Browsers send the origin of a request; other programs do not. */
function isCrossSite(headers: Headers, host: string): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none') return true;
  const origin = headers.get('origin');
  if (origin === null) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}

function unauthorized(): Refusal {
  return new Refusal(401, 'UNAUTHORIZED', 'Send the token as "Authorization: Bearer …".', {
    'www-authenticate': 'Bearer realm="everstep"',
  });
}

function forbidden(message: string): Refusal {
  return new Refusal(403, 'FORBIDDEN', message);
}
