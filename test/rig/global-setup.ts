// Runs once around the whole test run: starts the Postgres server (unless one is given, or none is wanted) and
// prepares the migrated databases that each test gets a copy of.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres-server.js';
import { scratchFolder } from './scratch.js';
import { createPostgresTemplate, createSqliteTemplate, dropPostgresDatabases } from './templates.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the server's maintenance database; empty when Postgres is not tested. */
    postgresURL: string;
    /** Folder for files of this run, removed at its end. */
    folder: string;
  }
}

/** Nothing has to outlast the run. */
const SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: 400, shared_buffers: '256MB' };

export function wantsDialect(dialect: 'sqlite' | 'postgres'): boolean {
  return (process.env['DIALECTS'] ?? 'sqlite,postgres').split(',').includes(dialect);
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(scratchFolder(), 'everstep-test-'));
  const givenURL = process.env['TEST_POSTGRES_URL'];
  const server =
    wantsDialect('postgres') && givenURL === undefined ? await startPostgres(SETTINGS, scratchFolder()) : undefined;
  const postgresURL = server?.url ?? (wantsDialect('postgres') ? (givenURL ?? '') : '');
  try {
    if (postgresURL !== '') await createPostgresTemplate(postgresURL);
    await createSqliteTemplate(folder);
  } catch (error) {
    await server?.stop();
    throw error;
  }
  project.provide('postgresURL', postgresURL);
  project.provide('folder', folder);
  return async () => {
    // A server of ours goes with all that is on it.
    if (server) await server.stop();
    else if (postgresURL !== '') await dropPostgresDatabases(postgresURL);
    rmSync(folder, { recursive: true, force: true });
  };
}
