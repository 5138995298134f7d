// Access control: a bearer token, or the session cookie of a browser that has logged in with it. An interface opened on
// purpose serves programs on this machine only, so it refuses cross-site browser requests and foreign host names.
import type { Clock } from '../../../kernel/base/clock.js';
import { Refusal } from './refusal.js';
import { isSameText } from './same-text.js';
import { type Role, type Session, Sessions, type SessionOptions } from './session.js';

export interface AccessOptions extends SessionOptions {
  /** Serves without a token. */
  readonly isOpen: boolean;
  /** Refuses changes, whatever the token. */
  readonly isReadOnly?: boolean;
  /** Host names an open interface accepts. Defaults to the loopback names. */
  readonly allowedHosts?: readonly string[];
}

/** What a request may do. */
export interface Access {
  readonly role: Role;
  /** Only for a request that comes with its cookie. */
  readonly session?: Session;
}

/** Where a request comes from, as far as its headers do not say it. */
export interface Origin {
  /** Says when a session is over. Without it, cookies do not count. */
  readonly clock?: () => Clock;
  /** '' if it is unknown. */
  readonly address: string;
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const CSRF_HEADER = 'x-everstep-csrf';

export class AccessControl {
  readonly sessions: Sessions;
  readonly #options: AccessOptions;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.sessions = new Sessions(options);
  }

  /**
   * Undefined for a request without a token or session. Throws for one that an open interface refuses, and after too many
   * wrong tokens from its address.
   */
  find(request: Request, { clock, address }: Origin): Access | undefined {
    const token = bearerOf(request);
    const role = token === undefined ? undefined : this.sessions.roleOf(token);
    if (role !== undefined) return { role: this.limit(role) };
    if (this.#options.isOpen) {
      refuseForeign(request, this.#options.allowedHosts);
      return { role: this.limit('full') };
    }
    const session = clock && request.headers.has('cookie') ? this.sessions.find(request, clock()) : undefined;
    if (session) return { role: this.limit(session.role), session };
    if (token !== undefined) this.sessions.countWrong(address);
    return undefined;
  }

  /** Throws if there is no access. */
  require(request: Request, origin: Origin): Access {
    const access = this.find(request, origin);
    if (!access) throw unauthorized();
    return access;
  }

  get isOpen(): boolean {
    return this.#options.isOpen;
  }

  /** The role that is left if everything is read-only. */
  limit(role: Role): Role {
    return this.#options.isReadOnly === true ? 'read' : role;
  }
}

/** Without a pattern for what follows: its cost would grow with the square of the spaces in it. */
function bearerOf(request: Request): string | undefined {
  const header = request.headers.get('authorization') ?? '';
  const token = /^Bearer /i.test(header) ? header.slice('Bearer '.length).trim() : '';
  return token === '' ? undefined : token;
}

/** Throws unless the request may change something. */
export function requireChange(request: Request, { role, session }: Access): void {
  if (role === 'read') throw forbidden('Changes are refused: this access is read-only.');
  if (!session) return;
  if (isFromElsewhere(request.headers)) throw forbidden('Cross-site requests are refused.');
  if (!isSameText(request.headers.get(CSRF_HEADER) ?? '', session.csrf)) {
    throw forbidden(`Changes in a session need the header ${CSRF_HEADER} with the csrf of GET /session.`);
  }
}

function refuseForeign(request: Request, allowedHosts: readonly string[] | undefined): void {
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

/** Browsers send the origin of a request; other programs do not. */
function isCrossSite(headers: Headers, host: string): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none') return true;
  const origin = headers.get('origin');
  if (origin === null) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}

/** For requests with a session. The browser's own judgement counts first: a proxy may have changed the host name. */
export function isFromElsewhere(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null) return site !== 'same-origin';
  const host = headers.get('x-forwarded-host') ?? headers.get('host');
  return host !== null && isCrossSite(headers, host.toLowerCase());
}

function unauthorized(): Refusal {
  return new Refusal(401, 'UNAUTHORIZED', 'Send the token as "Authorization: Bearer …", or log in.', {
    'www-authenticate': 'Bearer realm="everstep"',
  });
}

export function forbidden(message: string): Refusal {
  return new Refusal(403, 'FORBIDDEN', message);
}
