// Several hosts in one URL, as libpq has them: `postgresql://user@host1:5432,host2:5432/database`. A connection goes to the host
// that accepts writes. All connections of a database go where the last one has succeeded; when that fails, the next one
// tries the next host.
//
// A former primary may come back and accept writes, too. A promotion begins a new timeline, so the host with a lower one than
// was seen before is refused.
import pg from 'pg';
import { DatabaseUnavailableError, InvalidDatabaseURLError } from '../../model/errors/database-errors.js';
import { urlsOf } from './postgres-url.js';
import { TIMELINE, Timelines } from './timelines.js';

const ATTRIBUTE = 'target_session_attrs';
const WRITABLE = new Set(['read-write', 'primary']);

const STATE = `
  SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS is_read_only, ${TIMELINE} AS timeline`;

/** Where the connections of a database go. */
export class Hosts {
  readonly #urls: readonly string[];
  readonly timelines = new Timelines();
  #index = 0;

  private constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** Undefined if there is one host only, which may be read-only for all we know, or if the URL cannot be parsed. */
  static of(text: string): Hosts | undefined {
    if (!urlsOf(text).every((one) => URL.canParse(one))) return undefined;
    const urls = urlsOf(text).map((one) => new URL(one));
    const wanted = urls[0]?.searchParams.get(ATTRIBUTE) ?? undefined;
    if (wanted !== undefined && wanted !== 'any' && !WRITABLE.has(wanted)) {
      throw new InvalidDatabaseURLError(
        `Invalid database URL: ${ATTRIBUTE} must be read-write, primary or any: Everstep writes to its database.`,
      );
    }
    if (urls.length === 1 && (wanted === undefined || wanted === 'any')) return undefined;
    for (const url of urls) url.searchParams.delete(ATTRIBUTE);
    return new Hosts(urls.map(String));
  }

  get count(): number {
    return this.#urls.length;
  }

  /** The one that the next connection goes to. */
  get current(): string {
    return this.#urls[this.#index] ?? '';
  }

  /** A connection to it failed, or was refused. */
  skip(url: string): void {
    if (url === this.current) this.#index = (this.#index + 1) % this.#urls.length;
  }

  /** Throws if the server behind the connection must not be written to. */
  async check(client: pg.ClientBase, url: string): Promise<void> {
    const { isReadOnly, timeline } = await stateOf(client);
    const { host } = new URL(url);
    if (isReadOnly) throw new DatabaseUnavailableError(`Postgres at ${host} is read-only.`);
    this.timelines.see(timeline, host);
  }

  /** At launch: visits all hosts, so that a former primary is not taken for the present one. */
  async survey(config: pg.ClientConfig): Promise<void> {
    const visits = this.#urls.map(async (connectionString) => {
      const client = new pg.Client({ ...config, connectionString });
      client.on('error', () => {});
      try {
        await client.connect();
        const { isReadOnly, timeline } = await stateOf(client);
        if (!isReadOnly && this.timelines.begin(timeline)) this.#index = this.#urls.indexOf(connectionString);
      } finally {
        await client.end();
      }
    });
    // An unreachable host is no primary. If none can be reached, the next connection says why.
    await Promise.allSettled(visits);
  }
}

interface HostState {
  readonly isReadOnly: boolean;
  /** Null for a standby. */
  readonly timeline: string | null;
}

async function stateOf(client: pg.ClientBase): Promise<HostState> {
  try {
    const { rows } = await client.query<{ is_read_only: boolean; timeline: string | null }>(STATE);
    return { isReadOnly: rows[0]?.is_read_only ?? true, timeline: rows[0]?.timeline ?? null };
  } catch (error) {
    // Servers that only speak the protocol have no timelines.
    if (!(error instanceof pg.DatabaseError) || error.severity !== 'ERROR') throw error;
    const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only');
    return { isReadOnly: rows[0]?.transaction_read_only === 'on', timeline: null };
  }
}

/** Not `typeof pg.Client`: our declarations have the types of `pg` without its values. */
export type ClientClass = new (config?: string | pg.ClientConfig) => pg.Client;

/** A client that connects to the current host, and fails if that must not be written to. */
export function clientFor(hosts: Hosts): ClientClass {
  return class extends pg.Client {
    readonly #url: string;

    constructor(config?: string | pg.ClientConfig) {
      const url = hosts.current;
      super({ ...(config as pg.ClientConfig), connectionString: url });
      this.#url = url;
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void;
    override connect(callback?: (error: never, client: pg.Client) => void): Promise<pg.Client> | void {
      const connected = this.#connect();
      if (!callback) return connected;
      const call = callback as (error?: Error, client?: pg.Client) => void;
      connected.then(
        () => call(undefined, this),
        (error: Error) => call(error),
      );
    }

    async #connect(): Promise<pg.Client> {
      try {
        await super.connect();
        await hosts.check(this, this.#url);
        return this;
      } catch (error) {
        hosts.skip(this.#url);
        throw error;
      }
    }
  };
}
