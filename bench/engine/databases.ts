// The databases of a run: one Postgres server for all libraries, with a database for each command, and SQLite files.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../test/rig/postgres-server.js';

export interface Databases {
  /** A fresh Postgres database. The server counts its statements if wanted, which takes a little time for each. */
  postgres(options?: { readonly isCounted?: boolean }): Promise<string>;
  /** A fresh SQLite file. */
  sqlite(): string;
  close(): Promise<void>;
}

export async function openDatabases(): Promise<Databases> {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-bench-'));
  const server = await startPostgres({
    shared_buffers: '512MB',
    max_wal_size: '4GB',
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track': 'none',
  });
  const client = new pg.Client(server.url);
  await client.connect();
  await client.query('CREATE EXTENSION pg_stat_statements');
  let count = 0;
  return {
    async postgres({ isCounted = false } = {}) {
      count += 1;
      const name = `bench_${count}`;
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
      await client.end();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
