// Several hosts in one URL, as libpq has them: `postgresql://user@host1:5432,host2:5432/database`. A connection goes to the host
// that accepts writes. When a connection fails there or is refused, that host is sought: one search for all that want to
// connect, with a connection to each host.
//
// A former primary may come back and accept writes, too. A promotion begins a new timeline, so the host with a lower one than
// was seen before is refused.
import pg from 'pg';
import { type BackoffPolicy, backoffMs } from '../../kernel/base/backoff.js';
import { sleep, systemClock } from '../../kernel/base/clock.js';
import { DatabaseUnavailableError, InvalidDatabaseURLError } from '../../kernel/errors/database-errors.js';
import { type Address, type PgSession, type SessionConfig, withSession } from './pg-session.js';
import { lacksStatement, sqlState } from './postgres-errors.js';
import { urlsOf } from './postgres-url.js';
import { SERVER, TIMELINE, Timelines } from './timelines.js';

const ATTRIBUTE = 'target_session_attrs';
const WRITABLE = new Set(['read-write', 'primary']);
/** Between searches in a row. */
const PAUSE: BackoffPolicy = { firstMs: 100, maxMs: 3_000, rate: 2, jitter: 0.5 };
/** How long the search waits for the other hosts when one accepts writes: it may be a former primary. */
const OTHERS_MS = 1_000;

/** What to ask a server. One that refuses it is asked the next. */
const LOOKS = [
  ...[SERVER, TIMELINE].map(
    (server) => `SELECT current_setting('transaction_read_only') AS transaction_read_only, ${server} AS server`,
  ),
  'SHOW transaction_read_only',
];

/** Where the connections of a database go. */
export class Hosts {
  readonly timelines = new Timelines();
  readonly #all: readonly Address[];
  #current: Address | undefined;
  #search: Promise<Address> | undefined;
  #hasSought = false;
  /** Losses of the current host, and searches in vain, since a connection was accepted. */
  #failures = 0;

  private constructor(all: readonly Address[]) {
    this.#all = all;
  }

  /** Undefined if there is one host only, which may be read-only for all we know, or if the URL cannot be parsed. */
  static of(text: string): Hosts | undefined {
    const urls = urlsOf(text);
    if (!urls.every((one) => URL.canParse(one))) return undefined;
    const wanted = new URL(urls[0]).searchParams.get(ATTRIBUTE) ?? undefined;
    if (wanted !== undefined && wanted !== 'any' && !WRITABLE.has(wanted)) {
      throw new InvalidDatabaseURLError(
        `Invalid database URL: ${ATTRIBUTE} must be read-write, primary or any: Everstep writes to its database.`,
      );
    }
    if (urls.length === 1 && (wanted === undefined || wanted === 'any')) return undefined;
    return new Hosts(urls.map(addressOf));
  }

  /** Connects to the host that accepts writes. Whoever comes while it is sought waits for the same search. */
  async connect(session: PgSession, config: SessionConfig): Promise<void> {
    const address = this.#current ?? (await this.#find(config));
    try {
      await session.connectTo(address);
      this.timelines.see(await serverOf(session), nameOf(address));
      this.#failures = 0;
    } catch (error) {
      if (this.#current === address) {
        this.#current = undefined;
        this.#failures += 1;
      }
      throw error;
    }
  }

  #find(config: SessionConfig): Promise<Address> {
    this.#search ??= this.#seek(config).finally(() => (this.#search = undefined));
    return this.#search;
  }

  async #seek(config: SessionConfig): Promise<Address> {
    if (this.#failures > 1) await sleep(systemClock, backoffMs(PAUSE, this.#failures - 1));
    try {
      return (this.#current = await this.#choose(config));
    } catch (error) {
      this.#failures += 1;
      throw error;
    }
  }

  async #choose(config: SessionConfig): Promise<Address> {
    const found: { readonly address: Address; readonly server: string | null; readonly place: number }[] = [];
    const chosen = new AbortController();
    const visits = this.#all.map(async (address, place) => {
      const there = { ...config, hosts: undefined, address };
      found.push({ address, server: await withSession(there, serverOf, chosen.signal), place });
    });
    const all = Promise.allSettled(visits);
    const enough = Promise.any(visits)
      .then(() => sleep(systemClock, OTHERS_MS, chosen.signal))
      .catch(() => all);
    // At first, nothing is known about a former primary.
    await (this.#hasSought ? Promise.race([all, enough]) : all);
    chosen.abort();
    const best = this.timelines.newest(found.sort((left, right) => left.place - right.place));
    if (!best) throw whyNone((await all).map((visit) => (visit as PromiseRejectedResult).reason as Error));
    this.timelines.see(best.server, nameOf(best.address));
    this.#hasSought = true;
    return best.address;
  }
}

/** As `pg` reads it. Other parameters may name files. */
function addressOf(text: string): Address {
  const url = new URL(text);
  const { searchParams: given } = new URL(text);
  url.search = '';
  const { host, port } = new pg.Client(url.href);
  return { host: given.get('host') ?? host, port: Number(given.get('port') ?? port) };
}

function nameOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

/** What a server said tells more than that others are away. */
function whyNone(reasons: readonly Error[]): Error {
  const said = reasons.find((reason) => sqlState(reason) !== undefined);
  const texts = reasons.map((reason) => reason.message || (reason as NodeJS.ErrnoException).code);
  return said ?? new DatabaseUnavailableError(`No host of the URL accepts writes. ${texts.join(' ')}`);
}

/** As `Timelines` take it. Throws if the server must not be written to. */
async function serverOf(session: PgSession): Promise<string | null> {
  let refusal: unknown;
  for (const look of LOOKS) {
    try {
      const { rows } = await session.ask<{ transaction_read_only: string; server?: string | null }>(look);
      if (rows[0]?.transaction_read_only === 'off') return rows[0].server ?? null;
      throw new DatabaseUnavailableError(`Postgres at ${nameOf(session)} is read-only.`);
    } catch (error) {
      if (!lacksStatement(error)) throw error;
      refusal = error;
    }
  }
  throw refusal;
}
