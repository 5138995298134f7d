// Deletes old rows in batches: dead letters of a table without partitions, and remembered keys of `once`.
import { oneOf, type Sql, sql } from '../../../kernel/sql/sql.js';
import type { Transaction } from '../database.js';
import { LETTER, toLetter } from '../dead-letters/letter.js';
import type { qualifiedName } from '../schema/ddl.js';
import type { StateTable } from '../schema/tables.js';
import { atTime, bigint, now, tableToken } from '../tokens.js';
import type { RetentionOptions } from './options.js';

/** Rows per commit. */
const BATCH = 1000;

type Transact = <T>(body: (tx: Transaction) => Promise<T>) => Promise<T>;
type Name = Parameters<typeof qualifiedName>[0];

export interface Deletion {
  readonly table: Name;
  readonly beforeMs: number;
  readonly archive: RetentionOptions['archive'];
  readonly onProgress?: (deleted: number) => void;
}

/** Deletes the dead letters that failed before a time. Each batch goes to the archive before it is deleted. */
export async function deleteBefore(transact: Transact, deletion: Deletion): Promise<number> {
  const { archive, onProgress } = deletion;
  const table = tokenOf(deletion.table);
  const before = atTime(deletion.beforeMs);
  let deleted = 0;
  for (let after = '0'; ;) {
    const rows = await transact((tx) =>
      tx.run(sql`
    SELECT ${archive ? LETTER : sql`d.id`}
    FROM ${table} AS d
    WHERE d.id > ${bigint(after)} AND d.failed_at < ${before}
    ORDER BY d.id
    LIMIT ${bigint(BATCH)}`),
    );
    if (rows.length === 0) return deleted;
    await archive?.(rows.map(toLetter));
    const ids = rows.map((row) => String(row['id']));
    const gone = await transact((tx) =>
      tx.run(sql`DELETE FROM ${table} WHERE id ${oneOf(ids, 'bigint')} AND failed_at < ${before} RETURNING id`),
    );
    deleted += gone.length;
    onProgress?.(deleted);
    after = ids.at(-1) ?? after;
  }
}

/** Hands all dead letters of a partition to the archive. */
export async function archiveAll(
  transact: Transact,
  name: Name,
  archive: NonNullable<RetentionOptions['archive']>,
): Promise<void> {
  const table = tokenOf(name);
  for (let after = '0'; ;) {
    const rows = await transact((tx) =>
      tx.run(sql`
    SELECT ${LETTER}
    FROM ${table} AS d
    WHERE d.id > ${bigint(after)}
    ORDER BY d.id
    LIMIT ${bigint(BATCH)}`),
    );
    if (rows.length === 0) return;
    await archive(rows.map(toLetter));
    after = String(rows.at(-1)?.['id']);
  }
}

export function countBefore(name: Name, beforeMs: number): Sql {
  return sql`SELECT COUNT(*) AS count FROM ${tokenOf(name)} AS d WHERE d.failed_at < ${atTime(beforeMs)}`;
}

export function countExpiredKeys(table: StateTable): Sql {
  return sql`SELECT COUNT(*) AS count FROM ${tableToken(table)} AS s WHERE s.kind = 'once' AND s.until <= ${now}`;
}

/** Forgets the keys of `once` whose time is over. A publisher would replace them; this is about the room they take. */
export async function deleteExpiredKeys(transact: Transact, table: StateTable): Promise<number> {
  const state = tableToken(table);
  for (let deleted = 0; ;) {
    const gone = await transact((tx) =>
      tx.run(sql`
    DELETE FROM ${state}
    WHERE (queue, kind, "key") IN (
      SELECT s.queue, s.kind, s."key"
      FROM ${state} AS s
      WHERE s.kind = 'once' AND s.until <= ${now}
      LIMIT ${bigint(BATCH)})
    RETURNING queue`),
    );
    deleted += gone.length;
    if (gone.length < BATCH) return deleted;
  }
}

function tokenOf(name: Name): ReturnType<typeof tableToken> {
  return tableToken({ ...name, columns: [], primaryKey: [], indexes: [], checks: [] });
}
