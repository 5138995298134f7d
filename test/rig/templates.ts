// A migrated database that is copied for each test: far cheaper than migrating anew.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { silentLogger } from '../../src/base/log.js';
import { newID } from '../../src/base/ids.js';
import { migrate } from '../../src/store/migrations/migrate.js';
import { PostgresDatabase } from '../../src/store/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/store/sqlite/sqlite-database.js';

const TEMPLATE = 'everstep_template';

export async function createPostgresTemplate(serverURL: string): Promise<void> {
  await onServer(serverURL, async (client) => {
    await client.query(`DROP DATABASE IF EXISTS ${TEMPLATE} WITH (FORCE)`);
    await client.query(`CREATE DATABASE ${TEMPLATE}`);
  });
  const database = new PostgresDatabase({ url: databaseURL(serverURL, TEMPLATE) });
  await migrate(database, { schema: 'dbos', logger: silentLogger });
  await database.close();
}

/** Creates a database on the server, empty or a copy of the migrated one, and returns its URL. */
export async function createPostgresDatabase(serverURL: string, isMigrated: boolean): Promise<string> {
  const name = `test_${newID().replaceAll('-', '')}`;
  await onServer(serverURL, (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${isMigrated ? TEMPLATE : 'template0'}`),
  );
  return databaseURL(serverURL, name);
}

export async function dropPostgresDatabase(serverURL: string, url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await onServer(serverURL, (client) => client.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`));
}

export async function createSqliteTemplate(folder: string): Promise<void> {
  const database = await SqliteDatabase.open({ path: templatePath(folder) });
  await migrate(database, { logger: silentLogger });
  // Closing the last connection moves the log into the file, so that copying the file copies everything.
  await database.close();
}

/** The path of a new file, not there yet or a copy of the migrated one. */
export function createSqliteFile(folder: string, isMigrated: boolean): string {
  const path = join(folder, `${newID()}.sqlite`);
  if (isMigrated) copyFileSync(templatePath(folder), path);
  return path;
}

function templatePath(folder: string): string {
  return join(folder, 'template.sqlite');
}

function databaseURL(serverURL: string, name: string): string {
  const url = new URL(serverURL);
  url.pathname = `/${name}`;
  return url.toString();
}

async function onServer<T>(serverURL: string, body: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(serverURL);
  await client.connect();
  try {
    return await body(client);
  } finally {
    await client.end();
  }
}
