// The few methods that we need of a SQLite library, with one implementation for the runtime's own `node:sqlite`
// and one for `better-sqlite3`. All calls are synchronous; ordering them is left to the database above.
import { createRequire } from 'node:module';
import { SqliteDriverMissingError } from '../../model/errors/database-errors.js';
import type { Value } from '../../sql/sql.js';
import type { Row } from '../database.js';

export type BindValue = string | number | bigint | null | Uint8Array;

export interface SqliteStatement {
  /** Runs the statement to its end and returns its rows, none if it yields none. */
  all(values: readonly BindValue[]): Row[];
}

export interface SqliteHandle {
  prepare(text: string): SqliteStatement;
  exec(text: string): void;
  close(): void;
}

export interface SqliteLibrary {
  readonly name: 'node:sqlite' | 'better-sqlite3';
  open(path: string): SqliteHandle;
}

/** What `node:sqlite` offers and we use. Its types are not in the Node 20 type package. */
interface NodeSqlite {
  DatabaseSync: new (path: string) => {
    prepare(text: string): { all(...values: BindValue[]): Row[] };
    exec(text: string): void;
    close(): void;
  };
}

/** What `better-sqlite3` offers and we use. */
type BetterSqlite = new (path: string) => {
  prepare(text: string): {
    readonly reader: boolean;
    all(...values: BindValue[]): Row[];
    run(...values: BindValue[]): unknown;
  };
  exec(text: string): void;
  close(): void;
};

/** The library to use: the runtime's own where it has one, else `better-sqlite3`. */
export function findSqliteLibrary(): SqliteLibrary {
  return nodeSqlite() ?? betterSqlite();
}

export function nodeSqlite(): SqliteLibrary | undefined {
  const library = process.getBuiltinModule('node:sqlite') as unknown as NodeSqlite | undefined;
  if (!library) return undefined;
  return {
    name: 'node:sqlite',
    open(path) {
      const handle = new library.DatabaseSync(path);
      return {
        prepare(text) {
          const statement = handle.prepare(text);
          return { all: (values) => statement.all(...values) };
        },
        exec: (text) => handle.exec(text),
        close: () => handle.close(),
      };
    },
  };
}

export function betterSqlite(): SqliteLibrary {
  const Library = loadBetterSqlite();
  return {
    name: 'better-sqlite3',
    open(path) {
      const handle = new Library(path);
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
    },
  };
}

function loadBetterSqlite(): BetterSqlite {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as BetterSqlite;
  } catch (cause) {
    throw new SqliteDriverMissingError(
      `Node ${process.versions.node} has no built-in SQLite and the package "better-sqlite3" cannot be loaded. ` +
        'Run: npm install better-sqlite3@12 (or use Node 22.13 or newer).',
      { cause },
    );
  }
}

/** A statement's parameter in a form that both libraries store as SQLite means it. */
export function toBindValue(value: Value): BindValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  // better-sqlite3 binds a number outside 32 bits as a float; a bigint stays an integer.
  if (typeof value === 'number' && Number.isSafeInteger(value) && Math.abs(value) > 0x7fffffff) return BigInt(value);
  return value;
}
