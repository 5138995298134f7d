// Who may use the interface: whoever has the token. One that is open on purpose is for programs of this machine only, so
// it refuses what a browser sends in the name of some web page.
import { createHash, timingSafeEqual } from 'node:crypto';
import { Refusal } from './refusal.js';

export interface AccessOptions {
  /** What clients send as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Serves without a token. */
  readonly isOpen: boolean;
  /** Names under which an open interface is reached; names of this machine unless given. */
  readonly allowedHosts?: readonly string[];
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Throws unless the request may pass. */
export function checkAccess(request: Request, { token, isOpen, allowedHosts }: AccessOptions): void {
  if (token !== undefined && isBearer(request.headers.get('authorization'), token)) return;
  if (!isOpen) throw unauthorized();
  const host = (request.headers.get('host') ?? new URL(request.url).host).toLowerCase();
  // A page under a name of its own that leads to this machine would otherwise read all answers.
  const name = host.replace(/:\d+$/, '');
  if (!(allowedHosts?.includes(name) ?? LOOPBACK_HOST.test(name))) {
    throw forbidden(
      'The interface is open to this machine only. Use a loopback name such as localhost, or set a token.',
    );
  }
  if (isFromElsewhere(request.headers, host)) throw forbidden('Cross-site requests are refused.');
}

function isBearer(authorization: string | null, token: string): boolean {
  const given = /^Bearer +(.+?) *$/i.exec(authorization ?? '')?.[1];
  // Digests have one length, so that the comparison tells nothing of the token.
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Browsers say from where a request comes; other programs say nothing. */
function isFromElsewhere(headers: Headers, host: string): boolean {
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
