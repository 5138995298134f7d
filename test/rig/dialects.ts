// `forEachDialect` runs a group of tests on SQLite and on Postgres. Each test opens databases of its own, which are
// closed and removed when it ends.
import { rmSync } from 'node:fs';
import { describe, inject, onTestFinished } from 'vitest';
import type { Database } from '../../src/database/database.js';
import { PARTITIONED, partitionTable } from '../../src/features/retention/partitioned-tables.sql.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import type { PostgresOptions } from '../../src/database/postgres/postgres-options.js';
import { SqliteDatabase, type SqliteOptions } from '../../src/database/sqlite/sqlite-database.js';
import { pooledIfWanted, postgresURL } from './postgres-url.js';
import { createPostgresDatabase, createSqliteFile, dropPostgresDatabase } from './templates.js';

export interface TestDialect {
  readonly name: 'sqlite' | 'postgres';
  /** The URL of a database of this test alone: migrated, unless `isMigrated` is false. */
  createURL(options?: { isMigrated?: boolean }): Promise<string>;
  /** Opens the database behind a URL; it is closed when the test ends. */
  open(url: string, options?: Partial<PostgresOptions> & Partial<SqliteOptions>): Promise<Database>;
  /** A fresh migrated database, opened. */
  create(options?: Partial<PostgresOptions> & Partial<SqliteOptions>): Promise<Database>;
}

export const sqlite: TestDialect = {
  name: 'sqlite',
  async createURL({ isMigrated = true } = {}) {
    const path = await createSqliteFile(inject('folder'), isMigrated);
    onTestFinished(() => {
      for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    });
    return `sqlite:///${path}`;
  },
  async open(url, options = {}) {
    const database = await SqliteDatabase.open({ ...options, path: url.replace('sqlite:///', '') });
    onTestFinished(() => database.close());
    return database;
  },
  async create(options) {
    return sqlite.open(await sqlite.createURL(), options);
  },
};

export const postgres: TestDialect = {
  name: 'postgres',
  async createURL({ isMigrated = true } = {}) {
    const serverURL = await postgresURL();
    const url = await createPostgresDatabase(serverURL, isMigrated);
    onTestFinished(() => dropPostgresDatabase(serverURL, url));
    return pooledIfWanted(url);
  },
  async open(url, options = {}) {
    const isTransactionPooler = process.env['POOLER'] === 'transaction';
    const database = new PostgresDatabase({ isTransactionPooler, ...options, url });
    onTestFinished(() => database.close());
    return database;
  },
  async create(options) {
    return postgres.open(await postgres.createURL(), options);
  },
};

/** Postgres with a journal and an archive index that have partitions. */
export const partitioned: TestDialect = {
  ...postgres,
  async createURL({ isMigrated = true } = {}) {
    const url = await postgres.createURL({ isMigrated });
    if (!isMigrated) return url;
    const database = new PostgresDatabase({ url });
    for (const name of PARTITIONED)
      await partitionTable(database, name, { every: 'day', ahead: 1, patiently: (body) => body() });
    await database.close();
    return url;
  },
  async create(options) {
    return postgres.open(await partitioned.createURL(), options);
  },
};

/** False if the tests go through a pooler in transaction mode: no process can be notified then. */
export const hasPush = process.env['POOLER'] !== 'transaction';

export function wantsDialect(name: TestDialect['name']): boolean {
  return (process.env['DIALECTS'] ?? 'sqlite,postgres').split(',').includes(name);
}

/** Runs the tests that `body` defines once a dialect. `DIALECTS=sqlite` leaves Postgres out. */
export function forEachDialect(body: (dialect: TestDialect) => void): void {
  onlyOn('sqlite', body);
  onlyOn('postgres', body);
}

/** The same, and also on Postgres with partitions. */
export function forEachForm(body: (dialect: TestDialect) => void): void {
  forEachDialect(body);
  describe.skipIf(!wantsDialect('postgres'))('postgres with partitions', () => body(partitioned));
}

/** Tests that make sense on one dialect only. */
export function onlyOn(name: TestDialect['name'], body: (dialect: TestDialect) => void): void {
  const dialect = name === 'sqlite' ? sqlite : postgres;
  describe.skipIf(!wantsDialect(name))(name, () => body(dialect));
}
