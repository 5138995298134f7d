// Converts a table of dead letters to one with partitions. The application is held up only while the names change; the
// rows move afterwards, in batches, and an interrupted conversion is continued by the next call.
//
//   plain ──rename, create──► partitioned, rows in <table>_old ──move──► partitioned
import { InvalidOutboxError } from '../../model/errors/errors.js';
import { quoteIdentifier, sql } from '../../sql/sql.js';
import type { Transaction } from '../database.js';
import { qualifiedName } from '../schema/ddl.js';
import type { DlqTable } from '../schema/tables.js';
import { regclass } from '../validate/catalogue.js';
import { deleteBefore } from './deletion.js';
import type { RetentionSettings } from './options.js';
import { columnsOf, type LivePartitions, partitionText, readPartitions } from './partitions.js';
import { periodsFrom } from './periods.js';
import { exists, newPartitions, periodsIn } from './rotation.js';
import type { Session } from './session.js';

/** Rows per commit. */
const BATCH = 1000;

export interface Converted {
  /** False if the table had partitions already. */
  readonly converted: boolean;
  readonly moved: number;
  /** Rows that were too old to keep. */
  readonly deleted: number;
}

interface Parts {
  readonly session: Session;
  /** With its schema. */
  readonly dlq: DlqTable;
  readonly old: DlqTable;
  readonly settings: RetentionSettings;
}

export async function convert(session: Session, dlq: DlqTable, settings: RetentionSettings): Promise<Converted> {
  const live = await readPartitions(session, dlq);
  if (!live) throw new InvalidOutboxError(`There is no table ${qualifiedName(dlq)} to convert.`);
  const resolved = { ...dlq, schema: live.schema };
  const parts: Parts = { session, dlq: resolved, old: { ...resolved, tableName: `${dlq.tableName}_old` }, settings };
  if (!live.isPartitioned) await replace(parts, live);
  if (!(await exists(session, qualifiedName(parts.old)))) return { converted: false, moved: 0, deleted: 0 };
  const counts = await moveRows(parts, settings.cutoffMs(live.nowMs));
  return { converted: !live.isPartitioned, ...counts };
}

/** Puts an empty partitioned table in place of the old one. */
async function replace({ session, dlq, old, settings }: Parts, live: LivePartitions): Promise<void> {
  const { every, ahead } = settings;
  if (await exists(session, qualifiedName(old))) {
    throw new InvalidOutboxError(`The table ${qualifiedName(old)} exists. Rename or drop it, and convert again.`);
  }
  const held = await periodsIn(session, dlq, { every, sinceMs: settings.cutoffMs(live.nowMs) });
  const periods = new Map([...periodsFrom(live.nowMs, every, ahead), ...held].map((period) => [period.suffix, period]));
  const partitions = newPartitions(dlq, live, [...periods.values()]);
  await session.transact(async (tx) => {
    await tx.exec(`SET LOCAL lock_timeout = '5s'`);
    await tx.exec(`LOCK TABLE ${qualifiedName(dlq)} IN ACCESS EXCLUSIVE MODE`);
    const indexes = await indexesOf(tx, dlq);
    const grants = await grantsOf(tx, dlq);
    await tx.exec(`ALTER TABLE ${qualifiedName(dlq)} RENAME TO ${quoteIdentifier(old.tableName)}`);
    for (const { name, oid } of indexes) {
      const taken = qualifiedName({ tableName: name, schema: live.schema });
      await tx.exec(`ALTER INDEX ${taken} RENAME TO ${quoteIdentifier(`everstep_old_${oid}`)}`);
    }
    await createTable(tx, dlq, old);
    for (const { definition } of indexes) if (definition !== undefined) await tx.exec(definition);
    for (const { privileges, grantee } of grants) {
      await tx.exec(`GRANT ${privileges} ON ${qualifiedName(dlq)} TO ${grantee}`);
    }
    for (const partition of partitions) await tx.exec(partitionText(dlq, partition));
  });
}

/** The sequence goes on, so that no ID is given twice. */
async function createTable(tx: Transaction, dlq: DlqTable, old: DlqTable): Promise<void> {
  const name = qualifiedName(dlq);
  await tx.exec(
    `CREATE TABLE ${name} (LIKE ${qualifiedName(old)} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED ` +
      `INCLUDING STORAGE INCLUDING COMMENTS, PRIMARY KEY (id, failed_at)) PARTITION BY RANGE (failed_at)`,
  );
  const [row] = await tx.run(sql`
    SELECT s.oid::regclass::text AS sequence, a.attidentity <> '' AS is_identity
    FROM pg_catalog.pg_attribute AS a
    LEFT JOIN pg_catalog.pg_depend AS d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype IN ('a', 'i')
      AND d.classid = 'pg_class'::regclass
    LEFT JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE a.attrelid = ${regclass(old)} AND a.attname = 'id'
    ORDER BY s.oid NULLS LAST
    LIMIT 1`);
  const sequence = row?.['sequence'] as string | null | undefined;
  if (row?.['is_identity'] === true) {
    const [last] = await tx.exec(`SELECT COALESCE(MAX(id), 0) + 1 AS next FROM ${qualifiedName(old)}`);
    const start = String(last?.['next']);
    await tx.exec(`ALTER TABLE ${name} ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (START WITH ${start})`);
  } else if (sequence != null) await tx.exec(`ALTER SEQUENCE ${sequence} OWNED BY ${name}.id`);
}

/** All indexes, with the definitions of those that the new table gets. */
async function indexesOf(tx: Transaction, dlq: DlqTable) {
  const rows = await tx.run(sql`
    SELECT c.relname::text AS name, c.oid::text AS oid, i.indisprimary AS is_primary, i.indisunique AS is_unique,
      pg_get_indexdef(c.oid) AS definition
    FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
    WHERE i.indrelid = ${regclass(dlq)}`);
  return rows.map((row) => {
    const name = String(row['name']);
    const isPrimary = row['is_primary'] === true;
    if (row['is_unique'] === true && !isPrimary) {
      throw new InvalidOutboxError(
        `The index "${name}" is unique over all dead letters, which partitions cannot be. Drop it, and convert again.`,
      );
    }
    return { name, oid: String(row['oid']), definition: isPrimary ? undefined : String(row['definition']) };
  });
}

/** What other roles may do with the table. */
async function grantsOf(tx: Transaction, dlq: DlqTable) {
  const rows = await tx.run(sql`
    SELECT string_agg(a.privilege_type, ', ') AS privileges,
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
    FROM pg_catalog.pg_class AS c, aclexplode(c.relacl) AS a
    WHERE c.oid = ${regclass(dlq)} AND a.grantee <> c.relowner
    GROUP BY a.grantee`);
  return rows.map((row) => ({ privileges: String(row['privileges']), grantee: String(row['grantee']) }));
}

/** Moves what is left in the old table, and drops it. */
async function moveRows({ session, dlq, old, settings }: Parts, cutoffMs: number) {
  const [from, to] = [qualifiedName(old), qualifiedName(dlq)];
  const deleted = await deleteBefore(session.transact, {
    table: old,
    beforeMs: cutoffMs,
    archive: settings.archive,
  });
  const columns = await columnsOf(session, dlq);
  const prefixed = columns.replaceAll(/(^|, )/g, '$1o.');
  for (let moved = 0; ;) {
    const count = await session.transact(async (tx) => {
      const [row] = await tx.exec(`
        WITH picked AS MATERIALIZED (SELECT id FROM ${from} ORDER BY id LIMIT ${BATCH} FOR UPDATE),
        moved AS (DELETE FROM ${from} AS o USING picked WHERE o.id = picked.id RETURNING ${prefixed}),
        added AS (INSERT INTO ${to} (${columns}) SELECT ${columns} FROM moved RETURNING 1)
        SELECT COUNT(*) AS count FROM added`);
      return Number(row?.['count']);
    });
    moved += count;
    if (count > 0) continue;
    await session.exec(`DROP TABLE ${from}`);
    return { moved, deleted };
  }
}
