// The methods that we need of a SQLite library, implemented for the built-in `node:sqlite` and for `better-sqlite3`. All
// calls are synchronous.
import { invariant } from '../../kernel/base/assert.js';
import { SqliteDriverMissingError } from '../../kernel/errors/database-errors.js';
import type { Value } from '../../kernel/sql/sql.js';
import type { Row } from '../database.js';

export type BindValue = string | number | bigint | null | Uint8Array;

export interface SqliteStatement {
  /** Runs the statement to completion and returns its rows, if any. */
  all(values: readonly BindValue[]): Row[];
}

export interface SqliteHandle {
  prepare(text: string): SqliteStatement;
  exec(text: string): void;
  close(): void;
}

export interface SqliteLibrary {
  readonly name: 'node:sqlite' | 'better-sqlite3';
  /** Of SQLite itself. */
  readonly version: string;
  open(path: string, options?: OpenOptions): SqliteHandle;
}

interface OpenOptions {
  /** Such a connection changes nothing, and makes no checkpoint, not even when it is closed. */
  readonly isReadOnly?: boolean;
}

/** The parts of `node:sqlite` that we use. The types of Node 20 lack it. */
interface NodeSqlite {
  DatabaseSync: new (
    path: string,
    options: { readonly readOnly: boolean },
  ) => {
    prepare(text: string): {
      all(...values: BindValue[]): Record<string, unknown>[];
      setReadBigInts(isEnabled: boolean): void;
    };
    exec(text: string): void;
    close(): void;
  };
}

/** The parts of `better-sqlite3` that we use. */
type BetterSqlite = new (
  path: string,
  options: { readonly readonly: boolean },
) => {
  prepare(text: string): {
    readonly reader: boolean;
    all(...values: BindValue[]): Row[];
    run(...values: BindValue[]): unknown;
  };
  exec(text: string): void;
  close(): void;
};

/**
 * `better-sqlite3` if it is installed, else the built-in library. The data sources for SQLite use `better-sqlite3`, and two
 * copies of SQLite in one process do not see each other's locks on a file.
 */
export async function findSqliteLibrary(): Promise<SqliteLibrary> {
  const builtIn = nodeSqlite();
  return builtIn ? betterSqlite().catch(() => builtIn) : betterSqlite();
}

export function nodeSqlite(): SqliteLibrary | undefined {
  const library = process.getBuiltinModule('node:sqlite') as unknown as NodeSqlite | undefined;
  if (!library) return undefined;
  const open = (path: string, { isReadOnly = false }: OpenOptions = {}): SqliteHandle => {
    const handle = new library.DatabaseSync(path, { readOnly: isReadOnly });
    return {
      prepare(text) {
        const statement = handle.prepare(text);
        // Otherwise it throws for an integer that is no safe one, when the statement has already taken effect.
        statement.setReadBigInts(true);
        return { all: (values) => statement.all(...values).map(withNumbers) };
      },
      exec: (text) => handle.exec(text),
      close: () => handle.close(),
    };
  };
  return { name: 'node:sqlite', version: versionOf(open), open };
}

function versionOf(open: SqliteLibrary['open']): string {
  const handle = open(':memory:');
  try {
    return handle.prepare('SELECT sqlite_version() AS version').all([])[0]?.['version'] as string;
  } finally {
    handle.close();
  }
}

/** As `better-sqlite3` returns them: integers beyond 2^53 lose digits. */
function withNumbers(row: Record<string, unknown>): Row {
  for (const column in row) if (typeof row[column] === 'bigint') row[column] = Number(row[column]);
  return row;
}

export async function betterSqlite(): Promise<SqliteLibrary> {
  try {
    const { default: Library } = await import('better-sqlite3');
    const open: SqliteLibrary['open'] = (path, options) => openBetterSqlite(Library, path, options);
    // Loads the native part too, which may have been built for another runtime.
    return { name: 'better-sqlite3', version: versionOf(open), open };
  } catch (cause) {
    throw new SqliteDriverMissingError(
      `Node ${process.versions.node} has no built-in SQLite, and loading the package "better-sqlite3" failed. ` +
        'Run: npm install better-sqlite3@12 (or use Node 22.13 or newer).',
      { cause },
    );
  }
}

function openBetterSqlite(Library: BetterSqlite, path: string, { isReadOnly = false }: OpenOptions = {}): SqliteHandle {
  const handle = new Library(path, { readonly: isReadOnly });
  return {
    prepare(text) {
      const statement = handle.prepare(text);
      if (statement.reader) return { all: (values) => statement.all(...values) };
      return {
        all(values) {
          statement.run(...values);
          return [];
        },
      };
    },
    exec: (text) => handle.exec(text),
    close: () => handle.close(),
  };
}

/** A parameter in a form that both libraries bind with the right SQLite type. */
export function toBindValue(value: Value): BindValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  // better-sqlite3 binds a number outside 32 bits as a float; a bigint stays an integer.
  if (typeof value === 'number' && Number.isSafeInteger(value) && Math.abs(value) > 0x7fffffff) return BigInt(value);
  // better-sqlite3 takes the elements of an array for further parameters, which would shift the columns.
  invariant(typeof value !== 'object' || value === null || value instanceof Uint8Array, 'Only primitives are bound.');
  return value;
}
