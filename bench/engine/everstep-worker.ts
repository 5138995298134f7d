// A process that carries out one command with Everstep.
import { locateDatabase } from '../../src/kernel/base/url.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import type { Database } from '../../src/database/database.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import type { Command } from './commands.js';
import { rateByHand } from './hand-loop.js';
import { countDriverCalls } from './statements.js';
import { runTask } from './tasks.js';

const command = JSON.parse(process.argv[2] ?? '') as Command;
const isSqlite = locateDatabase(command.url)?.kind === 'sqlite';
/** The loop by hand has connections of its own, opened once. */
let database: Database | undefined;

await runTask(createDBOS(), command, {
  counts: countDriverCalls(isSqlite ? SqliteDatabase : PostgresDatabase),
  rateByHand(options) {
    database ??= new PostgresDatabase({ url: command.url });
    return rateByHand(database, options);
  },
});
await database?.close();
