// What an adapter knows about its client: how to open a transaction, and how to run a statement in it.
import { DBOSInvalidArgumentError } from '../model/errors/errors.js';
import { shown } from '../model/validation/validation.js';
import type { Value } from '../sql/sql.js';

/** The isolation levels of Postgres. */
export const PGIsolationLevel = Object.freeze({
  ReadUncommitted: 'READ UNCOMMITTED',
  ReadCommitted: 'READ COMMITTED',
  RepeatableRead: 'REPEATABLE READ',
  Serializable: 'SERIALIZABLE',
} as const);
export type PGIsolationLevel = (typeof PGIsolationLevel)[keyof typeof PGIsolationLevel];

/** Options of a transaction on Postgres. */
export interface PGTransactionConfig {
  /** Default: that of the database. */
  isolationLevel?: PGIsolationLevel;
  /** Default: false. */
  readOnly?: boolean;
}

/** A row of a result. */
export type Row = Readonly<Record<string, unknown>>;

export interface TransactionDriver<Client> {
  readonly dialect: 'postgres' | 'sqlite';
  /** Connects. */
  open(): Promise<void>;
  /** Closes what `open` has opened. */
  close(): Promise<void>;
  /**
   * Opens a transaction and runs `body` in it. Commits when it returns; rolls back and throws the same error when it
   * throws.
   */
  transact<T>(options: PGTransactionConfig, body: (client: Client) => Promise<T>): Promise<T>;
  /** Runs one statement in the transaction. Placeholders are `$1`, `$2` … on Postgres, each used once, and `?` on SQLite. */
  query(client: Client, text: string, values: readonly Value[]): Promise<readonly Row[]>;
  /**
   * Runs one last statement and commits, in one round trip; `transact` then commits no more. If the statement fails,
   * nothing is committed. Only where the client can do that; Postgres only.
   */
  finish?(client: Client, text: string, values: readonly Value[]): Promise<void>;
}

/** The options of a transaction, in the spelling of any client. */
export function transactionOptionsOf(config: unknown): PGTransactionConfig {
  const { isolationLevel, readOnly, accessMode } = (config ?? {}) as Record<string, unknown>;
  return {
    isolationLevel: typeof isolationLevel === 'string' ? levelNamed(isolationLevel) : undefined,
    readOnly: readOnly === true || accessMode === 'read only',
  };
}

/** Clients write the levels differently: `REPEATABLE READ`, `repeatable read`, `RepeatableRead`. */
function levelNamed(name: string): PGIsolationLevel {
  const bare = (level: string): string => level.toLowerCase().replace(/[^a-z]/g, '');
  const known = Object.values(PGIsolationLevel).find((level) => bare(level) === bare(name));
  if (known) return known;
  throw new DBOSInvalidArgumentError(
    `Unknown isolation level ${shown(name)}. Use one of PGIsolationLevel.`,
    'config.isolationLevel',
  );
}

/** The level as most clients spell it. */
export function lowerLevel(level: PGIsolationLevel | undefined): Lowercase<PGIsolationLevel> | undefined {
  return level?.toLowerCase() as Lowercase<PGIsolationLevel> | undefined;
}

/** How Postgres opens a transaction of this kind. */
export function beginPG({ isolationLevel, readOnly }: PGTransactionConfig): string {
  return `BEGIN${isolationLevel === undefined ? '' : ` ISOLATION LEVEL ${isolationLevel}`}${readOnly ? ' READ ONLY' : ''}`;
}
