// A database of the application's, a system database, and engines on them.
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import { createDBOS, type DBOSInstance } from '../../../src/faces/library/dbos.js';
import type { Row } from '../../../src/plugins/transaction/driver.js';
import { postgres, sqlite } from '../../rig/dialects.js';
import { postgresURL } from '../../rig/postgres-url.js';
import { createPostgresDatabase, dropPostgresDatabase } from '../../rig/templates.js';
import { type Adapter, type AdapterName, ADAPTERS, type SourceUnderTest } from './adapters.js';

export interface Scene {
  readonly adapter: Adapter;
  /** The application's database. */
  readonly url: string;
  readonly systemURL: string;
  /** Runs a statement on the application's database, apart from all data sources. */
  query(text: string): Promise<Row[]>;
  /** An engine with a data source, not launched yet. The data source may go through a proxy. */
  engine(config?: Partial<DBOSConfig>, url?: string): Promise<EngineUnderTest>;
}

export interface EngineUnderTest extends SourceUnderTest {
  readonly DBOS: DBOSInstance;
}

const TABLES = [
  'CREATE TABLE effects (workflow_id TEXT NOT NULL, note TEXT NOT NULL)',
  'CREATE TABLE counters (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)',
  'INSERT INTO counters (id, value) VALUES (1, 0)',
];

/** `isShared`: the application's tables are in the system database. */
export async function setScene(name: AdapterName, { isShared = false } = {}): Promise<Scene> {
  const adapter: Adapter = ADAPTERS[name];
  const url = await databaseFor(adapter, isShared);
  const systemURL = isShared ? url : await sqlite.createURL();
  const query = queryOn(url);
  for (const table of TABLES) await query(table);
  const engine: Scene['engine'] = async (config = {}, through = url) => {
    const DBOS = createDBOS();
    DBOS.setConfig({
      name: 'test',
      applicationVersion: 'v1',
      executorID: 'one',
      systemDatabaseUrl: systemURL,
      logger: silentLogger,
      ...config,
    });
    const created = await adapter.create(through, DBOS, inject('folder'));
    onTestFinished(async () => {
      await DBOS.shutdown();
      await created.close?.();
    });
    return { DBOS, ...created };
  };
  return { adapter, url, systemURL, query, engine };
}

/** On Postgres the tests of a file share a database, which each of them empties first: to create one takes its time. */
async function databaseFor(adapter: Adapter, isShared: boolean): Promise<string> {
  if (adapter.dialect === 'sqlite') return sqlite.createURL({ isMigrated: isShared });
  if (isShared) return postgres.createURL();
  shared ??= postgresURL().then((serverURL) => createPostgresDatabase(serverURL, false));
  const url = await shared;
  for (const schema of ['public', 'dbos']) await queryOn(url)(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await queryOn(url)('CREATE SCHEMA public');
  return url;
}

let shared: Promise<string> | undefined;

/** To be called when all tests of a file are through. */
export async function dropDatabase(): Promise<void> {
  if (shared) dropPostgresDatabase(await postgresURL(), await shared);
  shared = undefined;
}

export function queryOn(url: string): (text: string) => Promise<Row[]> {
  return url.startsWith('sqlite') ? (text) => querySqlite(url, text) : (text) => queryPostgres(url, text);
}

async function querySqlite(url: string, text: string): Promise<Row[]> {
  const database = new BetterSqlite3(url.replace('sqlite:///', ''));
  try {
    const statement = database.prepare<[], Row>(text);
    return statement.reader ? statement.all() : (statement.run(), []);
  } finally {
    database.close();
  }
}

async function queryPostgres(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** The notes of all effects that were committed. */
export async function effectsIn(scene: Scene): Promise<unknown[]> {
  return (await scene.query('SELECT note FROM effects ORDER BY note')).map(({ note }) => note);
}

/** The steps of which the data source keeps a record. */
export async function recordsIn(scene: Scene): Promise<Row[]> {
  const table = scene.adapter.dialect === 'postgres' ? 'dbos.transaction_completion' : 'transaction_completion';
  return scene.query(`SELECT workflow_id, function_num FROM ${table} ORDER BY workflow_id, function_num`);
}
