// Migrations of tables that are in use. CREATE and DROP INDEX CONCURRENTLY cannot run in a transaction, so a slow runner may
// run one that is obsolete because faster runners have moved on to later versions. This is repaired at the end: a run that
// had anything to do only returns when every index is as the last statement about it demands. All runners agree on that, so
// the last one leaves the right schema. Other statements cannot be late: each locks the version row, and only runs at its
// own version.
import { MigrationError } from '../../kernel/errors/errors.js';
import { sql, table } from '../../kernel/sql/sql.js';
import type { Connection } from '../database.js';
import { dropIndex, type IndexState, readIndexStates } from './index-states.js';
import type { Migration, Track } from './migration.js';
import { ATTEMPTS_MAX, isRetryable, type MigrationRun, sleepWithJitter } from './migration-run.js';
import { marked } from './other-library.js';
import { changedIndex, pendingMigrations, renderMigration, splitStatements } from './plan.js';

/** The version at which a migration is due, and no other. */
interface MigrationPosition {
  readonly versionTable: Track['versionTable'];
  readonly version: number;
}

/** What the last migration about an index demands. */
interface WantedIndex {
  readonly name: string;
  readonly isWanted: boolean;
  readonly statement: string;
  /** Whether that migration, or an earlier one about the index, was pending when this run started. */
  readonly wasPending: boolean;
}

interface WrongIndex extends WantedIndex {
  /** Whether it must be dropped, because it is INVALID or unwanted. */
  readonly isThere: boolean;
}

/** Runs a migration's statements. False if the caller must check again: another runner was faster or is at it. */
export async function runOnline(
  run: MigrationRun,
  migration: Migration,
  position: MigrationPosition,
): Promise<boolean> {
  const statements = splitStatements(renderMigration(migration, run));
  const names = new Set(statements.map((statement) => changedIndex(statement)?.name));
  const before = await readIndexStates(run.connection, run.schema);
  if (before.some(({ isBeingBuilt }) => isBeingBuilt)) return retryLater(run);
  // Drop INVALID indexes left by a killed runner: they are unused, and IF NOT EXISTS would keep them.
  for (const { name } of before.filter((index) => !index.isValid && names.has(index.name))) {
    if (!(await isAt(run.connection, position))) return false;
    await dropIndex(run.connection, run.schema, name);
  }
  for (const statement of statements) {
    const isInTime = changedIndex(statement)
      ? await runConcurrently(run.connection, statement, position)
      : await runHoldingVersion(run.connection, statement, position);
    if (!isInTime) return false;
  }
  // Another runner may still be building an index, which this one then skipped.
  const after = await readIndexStates(run.connection, run.schema);
  return after.some((index) => !index.isValid && names.has(index.name)) ? retryLater(run) : true;
}

async function retryLater(run: MigrationRun): Promise<false> {
  await sleepWithJitter(run);
  return false;
}

/** Checking the version saves needless work; another runner may still move it before the statement starts. */
async function runConcurrently(
  connection: Connection,
  statement: string,
  position: MigrationPosition,
): Promise<boolean> {
  if (!(await isAt(connection, position))) return false;
  await connection.script(marked(statement));
  return true;
}

function runHoldingVersion(connection: Connection, statement: string, position: MigrationPosition): Promise<boolean> {
  return connection.transaction(async (tx) => {
    const held = await tx.run(sql`
      SELECT version
      FROM ${table(position.versionTable)}
      WHERE version = ${position.version}
      FOR UPDATE`);
    if (held.length === 0) return false;
    await tx.script(marked(statement));
    return true;
  });
}

async function isAt(connection: Connection, { versionTable, version }: MigrationPosition): Promise<boolean> {
  const found = await connection.run(sql`SELECT version FROM ${table(versionTable)} WHERE version = ${version}`);
  return found.length > 0;
}

/**
 * Brings every index into the state that the pending migrations demand, and leaves none of ours INVALID. If all is right,
 * this costs one query.
 */
export async function settleIndexes(
  run: MigrationRun,
  tracks: readonly Track[],
  before: readonly number[],
): Promise<void> {
  const wanted = wantedIndexes(run, tracks, before);
  if (!wanted.some(({ wasPending }) => wasPending)) return;
  let cause: unknown;
  for (let attempt = 1; ; attempt += 1) {
    const wrong = await findWrong(run, wanted);
    if (wrong.length === 0) return;
    if (attempt > ATTEMPTS_MAX) throw settlingFailure(wrong, cause);
    try {
      for (const index of wrong) await settle(run, index);
    } catch (error) {
      if (!isRetryable(error, { isOnline: true })) throw settlingFailure(wrong, error);
      cause = error;
      run.logger.warn(`Retrying to repair ${quotedNames(wrong)}: ${(error as Error).message}`);
      await sleepWithJitter(run);
    }
  }
}

/** For each index that migrations change concurrently, the last statement about it in all tracks. */
function wantedIndexes(run: MigrationRun, tracks: readonly Track[], before: readonly number[]): WantedIndex[] {
  const pending = new Set(tracks.flatMap((track, index) => pendingMigrations(track, before[index] ?? 0)));
  const last = new Map<string, WantedIndex>();
  for (const migration of tracks.flatMap(({ migrations }) => migrations).filter(({ isOnline }) => isOnline)) {
    for (const statement of splitStatements(renderMigration(migration, { ...run, isOnline: true }))) {
      const index = changedIndex(statement);
      if (!index) continue;
      const wasPending = pending.has(migration) || last.get(index.name)?.wasPending === true;
      last.set(index.name, { ...index, statement, wasPending });
    }
  }
  return [...last.values()];
}

/** The indexes in the wrong state, once no other session is working on them. */
async function findWrong(run: MigrationRun, wanted: readonly WantedIndex[]): Promise<WrongIndex[]> {
  for (;;) {
    const found = new Map((await readIndexStates(run.connection, run.schema)).map((index) => [index.name, index]));
    const wrong = wanted.filter((index) => isWrong(index, found.get(index.name)));
    if (!wrong.some(({ name }) => found.get(name)?.isBeingBuilt)) {
      return wrong.map((index) => ({ ...index, isThere: found.has(index.name) }));
    }
    await sleepWithJitter(run);
  }
}

function isWrong({ isWanted, wasPending }: WantedIndex, found: IndexState | undefined): boolean {
  if (found && !found.isValid) return true;
  return wasPending && isWanted !== (found !== undefined);
}

async function settle(run: MigrationRun, { name, isThere, isWanted, statement }: WrongIndex): Promise<void> {
  if (isThere) await dropIndex(run.connection, run.schema, name);
  if (isWanted) await run.connection.script(marked(statement));
}

/** The version is already the latest: another run would find nothing to do. */
function settlingFailure(wrong: readonly WrongIndex[], cause: unknown): MigrationError {
  const reason = cause instanceof Error ? `: ${cause.message.replace(/\.?$/, '.')}` : '.';
  return new MigrationError(
    `The migrations are done, but other runners left wrong indexes that could not be repaired${reason} ` +
      `Drop those that are INVALID, then run:\n${wrong.map(({ statement }) => `${statement};`).join('\n')}`,
    { cause },
  );
}

function quotedNames(indexes: readonly WantedIndex[]): string {
  return indexes.map(({ name }) => `"${name}"`).join(', ');
}
