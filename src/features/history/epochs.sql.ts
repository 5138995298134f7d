// Rows of the journal have the numbers of the transactions that wrote them, and readers follow it in that order. On Postgres,
// the numbers of one cluster mean nothing on another one: tables that were moved by a dump or a logical replica may have rows
// with higher numbers than those that are written next. So rows that came along are of an earlier epoch: all up to the last
// one whose transaction has not begun here.
import { type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Reader, Row } from '../../database/database.js';
import { isPostgres } from '../../database/postgres/is-postgres.js';

const epochs = table('journal_epochs');
const journal = table('journal');

/** Begins a new epoch if the tables were moved to this cluster, and have rows whose numbers are ahead of it. */
export async function noteCluster(database: Database): Promise<void> {
  if (!isPostgres(database) || database.options.lacking?.has('system identifiers')) return;
  const [begun] = await database.run(sql`
    WITH moved AS MATERIALIZED (
      SELECT CAST(s.system_identifier AS TEXT) AS cluster
      FROM pg_control_system() AS s
      WHERE CAST(s.system_identifier AS TEXT) IS DISTINCT FROM (
        SELECT l.cluster FROM ${epochs} AS l ORDER BY l.epoch DESC LIMIT 1)),
    foreign_rows AS MATERIALIZED (
      SELECT m.cluster, (
        SELECT MAX(j.seq) FROM ${journal} AS j WHERE j.xid >= pg_snapshot_xmax(pg_current_snapshot())) AS last_seq
      FROM moved AS m)
    INSERT INTO ${epochs} AS e (epoch, cluster, after_seq)
    SELECT LEAST(
        COALESCE((SELECT MAX(CAST(l.epoch AS BIGINT)) FROM ${epochs} AS l), 0) + CASE WHEN f.last_seq IS NULL THEN 0 ELSE 1 END,
        2147483647),
      f.cluster, COALESCE(f.last_seq, -1)
    FROM foreign_rows AS f
    ON CONFLICT (epoch) DO UPDATE SET cluster = EXCLUDED.cluster
    RETURNING e.after_seq`);
  const afterSeq = Number(begun?.['after_seq'] ?? -1);
  if (afterSeq >= 0) await raiseSequence(database, afterSeq);
}

/** A logical replica does not get the state of sequences. Where the role may not set it, the operator has to. */
async function raiseSequence(database: Database, afterSeq: number): Promise<void> {
  await database.run(sql`
    SELECT setval(s.name, ${afterSeq})
    FROM (SELECT CAST(pg_get_serial_sequence(${database.dialect.table('journal')}, 'seq') AS REGCLASS) AS name) AS s
    WHERE has_sequence_privilege(s.name, 'SELECT') AND has_sequence_privilege(s.name, 'UPDATE')
      AND COALESCE(pg_sequence_last_value(s.name), 0) < ${afterSeq}`);
}

/** True for a row `j` of the epoch `e` of `readEpochs`. */
export const isOfEpoch = sql`j.seq > e.after_seq AND (e.last_seq IS NULL OR j.seq <= e.last_seq)`;
/** The epoch of a row `j`. */
export const epochOf = sql`COALESCE((SELECT MAX(n.epoch) FROM ${epochs} AS n WHERE n.after_seq < j.seq), 0)`;
/** The last row of former epochs, for comparison with a `seq`. */
export const lastFormerSeq = sql`COALESCE((SELECT n.after_seq FROM ${epochs} AS n ORDER BY n.epoch DESC LIMIT 1), -1)`;

export interface EpochRow {
  readonly epoch: number;
  readonly row: Row;
}

/**
 * Reads up to `limit` rows, from one epoch to the next. `page` selects from the journal `j` those of the epoch `e`, in order;
 * in the first epoch those after the cursor. `e.last_seq` is null for the present epoch. SQLite has one epoch.
 */
export async function readEpochs(
  database: Reader & Pick<Database, 'dialect'>,
  { epoch: first, limit }: { readonly epoch: number; readonly limit: number },
  page: (limit: number, isFirst: boolean) => Sql,
): Promise<EpochRow[]> {
  if (database.dialect.name === 'sqlite') {
    return (await database.read(page(limit, true))).map((row) => ({ epoch: 0, row }));
  }
  const found: EpochRow[] = [];
  for (let epoch = first; ; epoch += 1) {
    const rows = await database.read(sql`
      SELECT j.*, e.last_seq IS NOT NULL AS is_over
      FROM (
        SELECT COALESCE((SELECT b.after_seq FROM ${epochs} AS b WHERE b.epoch = ${epoch}), -1) AS after_seq,
          (SELECT n.after_seq FROM ${epochs} AS n WHERE n.epoch = ${epoch + 1}) AS last_seq) AS e
      LEFT JOIN LATERAL (${page(limit - found.length, epoch === first)}) AS j ON TRUE`);
    found.push(...rows.filter((row) => row['workflow_id'] !== null).map((row) => ({ epoch, row })));
    if (found.length >= limit || rows[0]?.['is_over'] !== true) return found;
  }
}
