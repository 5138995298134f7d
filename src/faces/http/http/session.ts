// Sessions of browsers. A login with the token gives a cookie that is signed with a key derived from the token: nothing is
// stored, every process that knows the token accepts it, and another token ends all sessions. Changes also need the
// session's CSRF value in a header, which pages of other sites can neither read nor send.
import { createHmac, randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../../kernel/base/clock.js';
import { Guesses } from './guesses.js';
import { isSameText } from './same-text.js';
import { Refusal } from './refusal.js';

/** `read` may not change anything. */
export type Role = 'full' | 'read';

export interface Session {
  readonly role: Role;
  readonly expiresAt: number;
  readonly csrf: string;
}

export interface SessionOptions {
  readonly token?: string;
  /** Gives the role `read`. */
  readonly readOnlyToken?: string;
  /** Whether the tokens are good for one login only. */
  readonly isOneTime?: boolean;
  readonly clock?: Clock;
}

const SESSION_MS = 12 * 60 * 60 * 1000;

export class Sessions {
  readonly #tokens: ReadonlyMap<Role, string>;
  readonly #isOneTime: boolean;
  readonly #cookieName: string;
  readonly #spent = new Set<Role>();
  readonly #guesses: Guesses;

  constructor({ token, readOnlyToken, isOneTime = false, clock = systemClock }: SessionOptions) {
    this.#guesses = new Guesses(clock);
    this.#tokens = new Map<Role, string>([
      ...(token === undefined ? [] : [['full', token] as const]),
      ...(readOnlyToken === undefined ? [] : [['read', readOnlyToken] as const]),
    ]);
    this.#isOneTime = isOneTime;
    // Cookies are shared by all ports of a host: two applications on one machine must not log each other out.
    const name = sign(token ?? readOnlyToken ?? '', 'everstep cookie').slice(0, 8);
    this.#cookieName = `everstep_session_${name.replaceAll(/\W/g, '_')}`;
  }

  /** The role of a token; undefined for a wrong one. */
  roleOf(token: string): Role | undefined {
    // All are compared, so that the time says nothing.
    const roles = [...this.#tokens].filter(([role, known]) => isSameText(token, known) && !this.#spent.has(role));
    return roles[0]?.[0];
  }

  /** Counts a wrong token. Throws if there were too many from this address. */
  countWrong(address: string): void {
    if (this.#tokens.size > 0) this.#guesses.count(address);
  }

  /** Checks a token and begins a session. Returns it with its cookie. */
  logIn(
    token: string,
    request: Request,
    { clock, address }: { readonly clock: Clock; readonly address: string },
  ): { readonly session: Session; readonly cookie: string } {
    const now = clock.now();
    const role = this.roleOf(token);
    if (role === undefined) {
      this.countWrong(address);
      throw new Refusal(401, 'UNAUTHORIZED', 'The token is wrong.');
    }
    if (this.#isOneTime) this.#spent.add(role);
    const expiresAt = now + SESSION_MS;
    const payload = `${role}.${expiresAt}.${randomBytes(16).toString('base64url')}`;
    const value = `${payload}.${this.#sign(role, payload)}`;
    return {
      session: this.#sessionOf(role, expiresAt, payload),
      cookie: this.#cookie(value, SESSION_MS / 1000, request),
    };
  }

  /** The session of a request; undefined if it has none, or one that is over or forged. */
  find(request: Request, clock: Clock): Session | undefined {
    const [, role, expiry, id, signature] = /^(full|read)\.(\d{1,16})\.([\w-]+)\.([\w-]+)$/.exec(
      this.#cookieIn(request),
    ) ?? [undefined, 'read', '', '', ''];
    if (expiry === '' || (role !== 'full' && role !== 'read') || !this.#tokens.has(role)) return undefined;
    const payload = `${role}.${expiry}.${id}`;
    if (!isSameText(signature ?? '', this.#sign(role, payload))) return undefined;
    return Number(expiry) > clock.now() ? this.#sessionOf(role, Number(expiry), payload) : undefined;
  }

  /** A cookie that ends the session. */
  logOut(request: Request): string {
    return this.#cookie('', 0, request);
  }

  #sessionOf(role: Role, expiresAt: number, payload: string): Session {
    return { role, expiresAt, csrf: this.#sign(role, `csrf.${payload}`) };
  }

  #sign(role: Role, text: string): string {
    return sign(sign(this.#tokens.get(role) ?? '', 'everstep session'), text);
  }

  #cookieIn(request: Request): string {
    const cookies = (request.headers.get('cookie') ?? '').split(';').map((one) => one.trim());
    const own = cookies.find((one) => one.startsWith(`${this.#cookieName}=`));
    return own?.slice(this.#cookieName.length + 1) ?? '';
  }

  /** For all paths: the one under which the interface is mounted may be unknown here. */
  #cookie(value: string, seconds: number, request: Request): string {
    const attributes = [`Max-Age=${seconds}`, 'Path=/', 'HttpOnly', 'SameSite=Strict'];
    return [`${this.#cookieName}=${value}`, ...attributes, ...(isOverTLS(request) ? ['Secure'] : [])].join('; ');
  }
}

function sign(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

/** A proxy may have ended TLS. A forged header has no use: it adds `Secure` to the forger's own cookie. */
function isOverTLS({ url, headers }: Request): boolean {
  return (
    url.startsWith('https:') ||
    (headers.get('origin') ?? '').startsWith('https:') ||
    /^https\b/.test(headers.get('x-forwarded-proto') ?? '')
  );
}
