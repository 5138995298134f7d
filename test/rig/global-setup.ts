// Runs once around the whole test run. The Postgres server is started when a test first asks for it: this process
// holds it, so that all workers share one, and answers them over HTTP. See `postgres-url.ts` for their side.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { type PoolMode, startPgBouncer } from './pgbouncer.js';
import { isStock, startPostgres, wantedBinaries } from './postgres-server.js';
import { scratchFolder } from './scratch.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** A GET of this address starts Postgres if need be, and answers with the URL of its maintenance database. */
    postgresRequestURL: string;
    /** Folder for files of this run, removed at its end. */
    folder: string;
  }
}

/** A server with the migrated database that tests get copies of. */
interface PreparedPostgres {
  readonly url: string;
  /** The same through PgBouncer, if tests are to use one. */
  readonly pooledURL?: string;
  dispose(): Promise<void>;
}

/** A GET of this path answers with the URL through PgBouncer; empty without one. */
const POOLER_PATH = '/pooler';

/** Nothing has to outlast the run. */
const SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: 400, shared_buffers: '256MB' };

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Migrations may have been edited since the last build.
  execFileSync(process.execPath, ['scripts/embed-migrations.mjs']);
  const folder = mkdtempSync(join(scratchFolder(), 'everstep-test-'));
  let postgres: Promise<PreparedPostgres> | undefined;
  const requests = createServer((request, response) => {
    postgres ??= preparePostgres();
    postgres.then(
      ({ url, pooledURL }) => response.end(request.url === POOLER_PATH ? (pooledURL ?? '') : url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => requests.listen(0, '127.0.0.1', resolve));
  project.provide('postgresRequestURL', `http://127.0.0.1:${(requests.address() as AddressInfo).port}`);
  project.provide('folder', folder);
  return async () => {
    requests.close();
    requests.closeAllConnections();
    // The tests that asked for a server that did not start have failed already.
    const prepared = await postgres?.catch(() => undefined);
    await prepared?.dispose();
    rmSync(folder, { recursive: true, force: true });
  };
}

async function preparePostgres(): Promise<PreparedPostgres> {
  const prepared = await prepareServer();
  const mode = process.env['POOLER'] as PoolMode | undefined;
  if (!mode) return prepared;
  // Every test has a database, and with it a pool, of its own.
  const bouncer = await startPgBouncer(prepared.url, mode, { max_client_conn: 5_000, server_idle_timeout: 2 });
  return {
    url: prepared.url,
    pooledURL: bouncer.through(prepared.url),
    async dispose() {
      await bouncer.stop();
      await prepared.dispose();
    },
  };
}

async function prepareServer(): Promise<PreparedPostgres> {
  // Loads the library, which a run without Postgres can do without.
  const { createPostgresTemplate, dropPostgresDatabases } = await import('./templates.js');
  const givenURL = process.env['TEST_POSTGRES_URL'];
  if (givenURL !== undefined) {
    await createPostgresTemplate(givenURL);
    return { url: givenURL, dispose: () => dropPostgresDatabases(givenURL) };
  }
  const server = await startPostgres(isStock ? {} : SETTINGS, scratchFolder(), { binaries: wantedBinaries() });
  try {
    await createPostgresTemplate(server.url);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { url: server.url, dispose: () => server.stop() };
}
