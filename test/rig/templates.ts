// A migrated database that is copied for each test: far cheaper than migrating anew.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { silentLogger } from '../../src/kernel/base/log.js';
import { newID } from '../../src/kernel/base/ids.js';
import { migrate } from '../../src/database/migrations/migrate.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';

const TEMPLATE = 'everstep_template';
const PREFIX = 'everstep_test_';

/** A connection of this process on which statements are carried out one after the other. */
class Administrator {
  #client: Promise<pg.Client> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  perform(serverURL: string, statement: string): Promise<unknown> {
    const client = (this.#client ??= connect(serverURL));
    const done = this.#last.then(async () => (await client).query(statement));
    this.#last = done.catch(() => {
      // Whoever has asked for it is told.
    });
    return done;
  }
}

// A drop may take a while, and nobody waits for it.
const creator = new Administrator();
const dropper = new Administrator();

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
  const name = `${PREFIX}${newID().replaceAll('-', '')}`;
  await creator.perform(serverURL, `CREATE DATABASE ${name} TEMPLATE ${isMigrated ? TEMPLATE : 'template0'}`);
  return databaseURL(serverURL, name);
}

/**
 * Drops a database in the background. The server waits for sessions that are about to end, five seconds at most; only
 * then are they ended by force. What is left when the process ends goes with the run.
 */
export function dropPostgresDatabase(serverURL: string, url: string): void {
  const name = new URL(url).pathname.slice(1);
  dropper
    .perform(serverURL, `DROP DATABASE IF EXISTS "${name}"`)
    .catch(() => dropper.perform(serverURL, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`))
    .catch((error: unknown) => {
      console.error(`Database ${name} could not be dropped: ${String(error)}`);
    });
}

/** Removes what tests have left on the server. */
export async function dropPostgresDatabases(serverURL: string): Promise<void> {
  await onServer(serverURL, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      `SELECT datname FROM pg_database WHERE starts_with(datname, '${PREFIX}')`,
    );
    for (const { datname } of [...rows, { datname: TEMPLATE }]) {
      await client.query(`DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`);
    }
  });
}

/** The path of a new file, not there yet or a copy of the migrated one. */
export async function createSqliteFile(folder: string, isMigrated: boolean): Promise<string> {
  const path = join(folder, `${newID()}.sqlite`);
  if (isMigrated) copyFileSync(await (sqliteTemplate ??= createSqliteTemplate(folder)), path);
  return path;
}

let sqliteTemplate: Promise<string> | undefined;

/** Each process makes its own: that takes less time than to agree on one. */
async function createSqliteTemplate(folder: string): Promise<string> {
  const path = join(folder, `template-${process.pid}.sqlite`);
  const database = await SqliteDatabase.open({ path });
  await migrate(database, { logger: silentLogger });
  // Closing the last connection moves the log into the file, so that copying the file copies everything.
  await database.close();
  return path;
}

function databaseURL(serverURL: string, name: string): string {
  const url = new URL(serverURL);
  url.pathname = `/${name}`;
  return url.toString();
}

async function connect(serverURL: string): Promise<pg.Client> {
  const client = new pg.Client(serverURL);
  // At the end of the run the server may be gone before this process.
  client.on('error', () => {});
  await client.connect();
  // The process may end while this is open. The method is missing in the types of "pg".
  (client as pg.Client & { unref(): void }).unref();
  return client;
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
