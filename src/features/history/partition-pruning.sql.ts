// Prunes partitions of the journal as a whole: what has to stay is copied to a new table, which takes the place of the
// partition in one transaction. Writers are locked out only while what has changed since the copy is carried over.
import { quoteIdentifier, sql, table, type Token } from '../../kernel/sql/sql.js';
import type { Database, Executor } from '../../database/database.js';
import { describeTable } from '../retention/partitioned-tables.sql.js';
import { columnsOf, createApart, type Partition, readPartitions } from '../../database/partitions/partitions.js';
import { nameOf, rangeText, type TimedTable, verbatim } from '../../database/partitions/timed-table.js';
import { lastFormerSeq } from './epochs.sql.js';
import { isDue, KEPT, type PruneLimits, wasDeleted } from './pruning.sql.js';

/** More rows than these are not copied: pruning them one by one costs less, or locks nothing for long. */
const KEPT_SHARE_MAX = 0.5;
const KEPT_MAX = 100_000;

/**
 * Replaces the partitions in which all rows are older than the limit by what has to stay, and drops those of which nothing
 * has to. Returns how many rows are gone. A partition that cannot be locked in 2 seconds is an error.
 */
export async function prunePartitions(database: Database, limits: PruneLimits): Promise<number> {
  const journal = await describeTable(database, 'journal');
  if (!journal) return 0;
  const live = await readPartitions(database, journal);
  if (live?.isPartitioned !== true) return 0;
  let pruned = 0;
  for (const partition of live.partitions) {
    if (partition.isDefault || partition.toMs > limits.before) continue;
    const { all, kept } = await countRows(database, partition, limits);
    if (kept > all * KEPT_SHARE_MAX || kept > KEPT_MAX) continue;
    pruned += all - (await replacePartition(database, journal, { partition, limits }));
  }
  return pruned;
}

/** The rows of a partition `j`, with the workflow `w` if it is due. */
function withDue(partition: Partition, limits: PruneLimits): Token {
  return sql`${verbatim(nameOf(partition))} AS j
    LEFT JOIN ${table('workflow_status')} AS w ON w.workflow_uuid = j.workflow_id AND ${isDue(limits)}`;
}

/** All rows are old, so deletions are forgotten. */
const stays = sql`(NOT ${wasDeleted} AND (w.workflow_uuid IS NULL OR j.event_type IN ${KEPT}))`;

async function countRows(database: Database, partition: Partition, limits: PruneLimits) {
  const count = (tx: Executor) =>
    tx.run(sql`SELECT COUNT(*) AS number, COUNT(*) FILTER (WHERE ${stays}) AS kept FROM ${withDue(partition, limits)}`);
  const [row] = await database.transaction(count, { scans: 'all' });
  return { all: Number(row?.['number']), kept: Number(row?.['kept']) };
}

interface Replaced {
  readonly partition: Partition;
  readonly limits: PruneLimits;
}

/** Returns how many rows stay. */
function replacePartition(database: Database, journal: TimedTable, { partition, limits }: Replaced): Promise<number> {
  const [parent, old] = [nameOf(journal), nameOf(partition)];
  const fresh = { tableName: `${partition.tableName}_kept`, schema: partition.schema };
  return database.transaction(
    async (tx) => {
      const exec = (text: string) => tx.run(sql`${verbatim(text)}`);
      await exec(`SET LOCAL lock_timeout = '2s'`);
      // Whatever the copy does not see is of this transaction or a later one.
      const [mark] = await tx.run(sql`SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS xid`);
      await createApart({ run: (statement) => tx.run(statement), exec }, journal, fresh, { isIndexed: true });
      const columns = (await columnsOf(tx, journal)).split(', ');
      const selected = (alias: string): Token => verbatim(columns.map((column) => `${alias}.${column}`).join(', '));
      const into = verbatim(`${nameOf(fresh)} (${columns.join(', ')})`);
      await tx.run(sql`INSERT INTO ${into} SELECT ${selected('j')} FROM ${withDue(partition, limits)} WHERE ${stays}`);

      await exec(`LOCK TABLE ONLY ${parent} IN ACCESS EXCLUSIVE MODE`);
      await exec(`LOCK TABLE ${old} IN ACCESS EXCLUSIVE MODE`);
      const parts = { old: verbatim(old), fresh: verbatim(nameOf(fresh)), since: String(mark?.['xid']) };
      await carryOver(tx, { ...parts, into, selected: selected('p') });
      const [row] = await tx.run(sql`SELECT COUNT(*) AS kept FROM ${parts.fresh}`);
      const kept = Number(row?.['kept']);

      await exec(`ALTER TABLE ${parent} DETACH PARTITION ${old}`);
      await exec(`DROP TABLE ${old}`);
      if (kept === 0) await exec(`DROP TABLE ${nameOf(fresh)}`);
      else {
        await exec(`ALTER TABLE ${parent} ATTACH PARTITION ${nameOf(fresh)} ${rangeText(journal, partition)}`);
        await exec(`ALTER TABLE ${nameOf(fresh)} RENAME TO ${quoteIdentifier(partition.tableName)}`);
      }
      return kept;
    },
    { scans: 'all' },
  );
}

interface Changes {
  readonly old: Token;
  readonly fresh: Token;
  readonly into: Token;
  /** The columns of a row `p` of the old partition. */
  readonly selected: Token;
  /** The first transaction that the copy may not have seen. */
  readonly since: string;
}

/** What has happened to the rows since they were copied. */
async function carryOver(tx: Executor, { old, fresh, into, selected, since }: Changes): Promise<void> {
  const isSame = sql`p.xid = f.xid AND p.seq = f.seq AND p.at = f.at`;
  const isLater = (alias: Token) =>
    sql`(${alias}.xid >= CAST(CAST(${since} AS TEXT) AS XID8) AND ${alias}.seq > ${lastFormerSeq})`;
  // A workflow got another ID, or was deleted.
  await tx.run(
    sql`UPDATE ${fresh} AS f SET workflow_id = p.workflow_id FROM ${old} AS p WHERE ${isSame} AND p.workflow_id <> f.workflow_id`,
  );
  await tx.run(sql`DELETE FROM ${fresh} AS f WHERE NOT EXISTS (SELECT 1 FROM ${old} AS p WHERE ${isSame})`);
  // Rows were added, or a workflow that had ended runs again: that is in the journal, whichever program did it.
  await tx.run(sql`
    INSERT INTO ${into}
    SELECT ${selected}
    FROM ${old} AS p
    WHERE (${isLater(verbatim('p'))} OR p.workflow_id = ANY (ARRAY(
        SELECT j.workflow_id
        FROM ${table('journal')} AS j
        WHERE ${isLater(verbatim('j'))} AND j.event_type IN ('WorkflowResumed', 'WorkflowRewound'))))
      AND NOT EXISTS (SELECT 1 FROM ${fresh} AS f WHERE ${isSame})`);
}
