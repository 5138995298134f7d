// A process that migrates the database at a URL when it is told to: prints "ready", waits for a line, prints the result.
import { once } from 'node:events';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';

async function main(url: string): Promise<void> {
  console.log('ready');
  await once(process.stdin, 'data');
  const database = url.startsWith('sqlite:///')
    ? await SqliteDatabase.open({ path: url.replace('sqlite:///', '') })
    : new PostgresDatabase({ url, poolSize: 2 });
  const result = await migrate(database, { logger: silentLogger, lockPollMs: 50 });
  await database.close();
  process.stdin.destroy();
  console.log(JSON.stringify(result));
}

void main(process.argv[2] ?? '');
