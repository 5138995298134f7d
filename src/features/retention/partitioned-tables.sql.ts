// The tables of the system database that may have partitions, which they do on Postgres if an operator has asked for it
// (decision 40).
import { PartitioningError } from '../../kernel/errors/errors.js';
import { sql } from '../../kernel/sql/sql.js';
import type { Connection, Database } from '../../database/database.js';
import { type InPlace, partitionInPlace, refusesFrom } from '../../database/partitions/in-place.js';
import { missingPartitions } from '../../database/partitions/lacking-partitions.js';
import { readPartitions } from '../../database/partitions/partitions.js';
import type { PartitionSession } from '../../database/partitions/session.js';
import { nameOf, type TableName, type TimedTable } from '../../database/partitions/timed-table.js';
import { keepAhead } from '../../database/partitions/upkeep.js';

type Resolved = TimedTable & { readonly schema: string };

/** The journal. Its keys are unique within a partition; writers also look for theirs in the others. */
function journalIn(schema: string): Resolved {
  const guard = nameOf({ tableName: 'everstep_guard_journal', schema });
  return {
    tableName: 'journal',
    schema,
    column: 'at',
    unit: 'milliseconds',
    key: ['xid', 'seq', 'at'],
    preparing: [`SET LOCAL everstep.prune = 'on'`],
    completing: (partition: TableName) => [
      `CREATE UNIQUE INDEX ON ${nameOf(partition)} (workflow_id, key) WHERE key IS NOT NULL`,
      // Row triggers come with the table; one for a whole statement does not.
      `CREATE TRIGGER everstep_journal_not_truncated BEFORE TRUNCATE ON ${nameOf(partition)} ` +
        `FOR EACH STATEMENT EXECUTE FUNCTION ${guard}()`,
    ],
  };
}

/** Where archived workflows are. Writers replace the row of a workflow, so that it has one in all partitions. */
function archiveIndexIn(schema: string): Resolved {
  return {
    tableName: 'archived_workflows',
    schema,
    column: 'archived_at',
    unit: 'milliseconds',
    key: ['workflow_uuid', 'archived_at'],
  };
}

const TABLES = { journal: journalIn, archived_workflows: archiveIndexIn } as const;
export type PartitionedName = keyof typeof TABLES;
export const PARTITIONED = Object.keys(TABLES) as readonly PartitionedName[];

/** Undefined on SQLite, and if the table does not exist. */
export async function describeTable(
  database: Pick<Database, 'dialect' | 'run'>,
  name: PartitionedName,
): Promise<Resolved | undefined> {
  if (database.dialect.name === 'sqlite') return undefined;
  const [row] = await database.run(sql`
    SELECT n.nspname::text AS schema
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass(CAST(${database.dialect.table(name)} AS TEXT))`);
  return row && TABLES[name](String(row['schema']));
}

/** Gives the table partitions. Returns false if it has them already. */
export async function partitionTable(database: Database, name: PartitionedName, options: InPlace): Promise<boolean> {
  if (database.dialect.name === 'sqlite') {
    throw new PartitioningError('SQLite has no partitions. They are for system databases on Postgres.');
  }
  return database.exclusive(async (connection) => {
    const table = await describeTable(connection, name);
    if (!table) throw new PartitioningError(`There is no table ${database.dialect.table(name)}. Run: everstep migrate`);
    return partitionInPlace(sessionOn(connection), table, options);
  });
}

/** Creates the partitions that are missing, in one transaction. Returns their names. */
export async function keepPartitions(database: Database): Promise<string[]> {
  const created: string[] = [];
  for (const name of PARTITIONED) {
    const table = await describeTable(database, name);
    if (!table || !(await needsUpkeep(database, table))) continue;
    const names = await database.exclusive((connection) =>
      connection.transaction(async (tx) => {
        // Engines of other applications do the same.
        await tx.run(
          sql`SELECT pg_advisory_xact_lock(hashtextextended(CAST(${`everstep.partitions.${nameOf(table)}`} AS TEXT), 0))`,
        );
        return keepAhead(sessionOn(tx), table);
      }),
    );
    created.push(...names);
  }
  return created;
}

async function needsUpkeep(database: Database, table: TimedTable): Promise<boolean> {
  const live = await readPartitions(database, table);
  return live?.isPartitioned === true || (await refusesFrom(database, table)) !== undefined;
}

/** What is wrong with the partitions, as sentences. */
export async function findPartitionFaults(database: Database): Promise<string[]> {
  const faults: string[] = [];
  for (const name of PARTITIONED) {
    const table = await describeTable(database, name);
    if (!table) continue;
    const untilMs = await refusesFrom(database, table);
    if (untilMs !== undefined) {
      faults.push(
        `A conversion of the table "${name}" was interrupted, or is at work. If it is not continued, the table refuses ` +
          `rows from ${new Date(untilMs).toISOString()} on. Run: everstep history partition`,
      );
    }
    const live = await readPartitions(database, table);
    if (live?.isPartitioned !== true) continue;
    for (const { fromMs } of missingPartitions(table, live)) {
      faults.push(
        `The table "${name}" lacks a partition for ${new Date(fromMs).toISOString()}. Start an engine whose role owns the ` +
          'table, or run: everstep history partition',
      );
    }
  }
  return faults;
}

/** A session on a connection, or in a transaction: transactions in it are parts of that. */
function sessionOn(connection: Connection): PartitionSession {
  return {
    isFree: true,
    run: (statement) => connection.run(statement),
    exec: (text) => connection.script(text),
    transact: (body) =>
      connection.transaction((tx) => body({ run: (statement) => tx.run(statement), exec: (text) => tx.script(text) })),
  };
}
