// Counting what a library asks of its database: on the server, the same for every library, and in Everstep's driver.
import pg from 'pg';
import { render, type Sql } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

/** Counts statements to one database with pg_stat_statements, from a connection to another. */
export class ServerCounter {
  readonly #client: pg.Client;
  readonly #databaseName: string;

  private constructor(client: pg.Client, databaseName: string) {
    this.#client = client;
    this.#databaseName = databaseName;
  }

  static async connect(url: string): Promise<ServerCounter> {
    const maintenance = new URL(url);
    const databaseName = maintenance.pathname.slice(1);
    maintenance.pathname = '/postgres';
    const client = new pg.Client(maintenance.toString());
    await client.connect();
    return new ServerCounter(client, databaseName);
  }

  /** Statements so far; NaN if the server does not count them. BEGIN and COMMIT count, since each is a round trip. */
  async statements(): Promise<number> {
    const loaded = await this.#client.query<{ libraries: string }>(
      `SELECT current_setting('shared_preload_libraries') AS libraries`,
    );
    if (!loaded.rows[0]?.libraries.includes('pg_stat_statements')) return NaN;
    const { rows } = await this.#client.query<{ calls: string | null }>(
      `SELECT sum(s.calls) AS calls
       FROM pg_stat_statements AS s
       JOIN pg_database AS d ON d.oid = s.dbid
       WHERE d.datname = $1`,
      [this.#databaseName],
    );
    return Number(rows[0]?.calls ?? 0);
  }

  /** The same by text. */
  async statementsByText(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#client.query<{ text: string; calls: string }>(
      `SELECT s.query AS text, sum(s.calls) AS calls
       FROM pg_stat_statements AS s
       JOIN pg_database AS d ON d.oid = s.dbid
       WHERE d.datname = $1
       GROUP BY s.query`,
      [this.#databaseName],
    );
    return new Map(rows.map(({ text, calls }) => [text, Number(calls)]));
  }

  /** Connections to the database now. */
  async connections(): Promise<number> {
    const { rows } = await this.#client.query<{ n: string }>(
      'SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = $1',
      [this.#databaseName],
    );
    return Number(rows[0]?.n);
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}

export interface DriverCounts {
  commits: number;
  commitMs: number;
  reads: number;
  /** In commits and reads, without those that the group writer sends. */
  statementsBesides: number;
}

/** Counts the calls of Everstep's driver. What a transaction or a migration does inside is not seen. */
export function countDriverCalls(driver: { readonly prototype: Database }): DriverCounts {
  const counts: DriverCounts = { commits: 0, commitMs: 0, reads: 0, statementsBesides: 0 };
  before(
    driver.prototype,
    'commit',
    () => {
      counts.commits += 1;
    },
    (ms) => {
      counts.commitMs += ms;
    },
  );
  before(driver.prototype, 'run', () => {
    counts.commits += 1;
    counts.statementsBesides += 1;
  });
  before(driver.prototype, 'read', () => {
    counts.reads += 1;
    counts.statementsBesides += 1;
  });
  return counts;
}

type Methods = Record<'commit' | 'run' | 'read', (this: Database, ...given: unknown[]) => Promise<unknown>>;

/** Has every call of a method noted before it is made, and how long it took. */
function before(prototype: Database, name: keyof Methods, note: () => void, onEnd?: (ms: number) => void): void {
  const methods = prototype as unknown as Methods;
  const original = methods[name];
  methods[name] = async function (...given) {
    note();
    const startedAt = performance.now();
    try {
      return await original.apply(this, given);
    } finally {
      onEnd?.(performance.now() - startedAt);
    }
  };
}

/** The texts of all statements from now on; what a transaction does inside is not seen. */
export function noteStatements(database: Database): string[] {
  const sent: string[] = [];
  const note = (statement: Sql): number => sent.push(render(statement, database.dialect).text);
  const [run, read, observe, commit] = [
    database.run.bind(database),
    database.read.bind(database),
    database.observe.bind(database),
    database.commit.bind(database),
  ];
  let isObserving = false;
  database.run = (statement) => (note(statement), run(statement));
  // On SQLite, `observe` reads.
  database.read = (statement) => (isObserving || note(statement), read(statement));
  database.observe = (statement, options) => {
    note(statement);
    isObserving = true;
    try {
      return observe(statement, options);
    } finally {
      isObserving = false;
    }
  };
  database.commit = (statements) => (statements.forEach(note), commit(statements));
  return sent;
}
