// The databases of a run: one Postgres server for all libraries, with a database for each command, and SQLite files.
// `BENCH_POSTGRES_URL` names a server to use instead of starting one. Statements are counted there only if it has loaded
// pg_stat_statements.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type PostgresServer, startPostgres } from '../../test/rig/postgres-server.js';

export interface Databases {
  /** A fresh Postgres database. The server counts its statements if wanted, which takes a little time for each. */
  postgres(options?: { readonly isCounted?: boolean }): Promise<string>;
  /** A fresh SQLite file. */
  sqlite(): string;
  close(): Promise<void>;
}

export async function openDatabases(): Promise<Databases> {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-bench-'));
  const given = process.env['BENCH_POSTGRES_URL'];
  const server = given ? { url: given, stop: async () => {} } : await startOwn();
  const client = new pg.Client(server.url);
  await client.connect();
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements').catch((error: unknown) => {
    if (!given) throw error;
  });
  let count = 0;
  const names: string[] = [];
  return {
    async postgres({ isCounted = false } = {}) {
      count += 1;
      const name = `bench_${process.pid}_${count}`;
      names.push(name);
      await client.query(`CREATE DATABASE ${name}`);
      if (isCounted) await client.query(`ALTER DATABASE ${name} SET pg_stat_statements.track = 'top'`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return url.toString();
    },
    sqlite() {
      count += 1;
      return `sqlite:///${join(folder, `bench-${count}.sqlite`)}`;
    },
    async close() {
      if (given) for (const name of names) await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await client.end();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function startOwn(): Promise<PostgresServer> {
  return startPostgres({
    max_connections: 1000,
    shared_buffers: '512MB',
    max_wal_size: '4GB',
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track': 'none',
  });
}
