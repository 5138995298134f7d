// The contract between the data source kit and the adapter for a database client: how to open a transaction, and how to
// run a statement in it.
import type { ClientConfig } from 'pg';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { shown } from '../../kernel/check/validation.js';
import type { Value } from '../../kernel/sql/sql.js';

/** The isolation levels of Postgres. */
export const PGIsolationLevel = Object.freeze({
  ReadUncommitted: 'READ UNCOMMITTED',
  ReadCommitted: 'READ COMMITTED',
  RepeatableRead: 'REPEATABLE READ',
  Serializable: 'SERIALIZABLE',
} as const);
export type PGIsolationLevel = (typeof PGIsolationLevel)[keyof typeof PGIsolationLevel];

export interface PGTransactionConfig {
  /** Default: the database's. */
  isolationLevel?: PGIsolationLevel;
  /** Default: false. */
  readOnly?: boolean;
}

/** How to open a transaction. */
export interface TransactOptions<Client> extends PGTransactionConfig {
  /**
   * Whether the transaction must have begun when its body is called. Ask if BEGIN can go with the first statement instead;
   * a driver that always begins first need not.
   */
  mustBegin?(client: Client): boolean;
}

export type Row = Readonly<Record<string, unknown>>;

export interface TransactionDriver<Client> {
  readonly dialect: 'postgres' | 'sqlite';
  open(): Promise<void>;
  /** Closes what `open` opened. */
  close(): Promise<void>;
  /**
   * Runs `body` in a transaction. Commits when it returns. When it throws, rolls back and throws the same error.
   */
  transact<T>(options: TransactOptions<Client>, body: (client: Client) => Promise<T>): Promise<T>;
  /** Runs one statement in the transaction. Placeholders: `$1`, `$2` … on Postgres, each used once; `?` on SQLite. */
  query(client: Client, text: string, values: readonly Value[]): Promise<readonly Row[]>;
  /**
   * Runs one last statement and commits, in one round trip; `transact` then does not commit again. If the statement
   * fails, nothing is committed. May return the rows of the statement. Optional, for clients that can do this; Postgres only.
   */
  finish?(client: Client, text: string, values: readonly Value[]): Promise<readonly Row[] | undefined>;
  /** How `pg` connects to the same database, for a connection that listens. Optional; Postgres only. */
  listenConfig?(): ClientConfig | undefined;
}

/** Reads transaction options in the spelling of any client. */
export function transactionOptionsOf(config: unknown): PGTransactionConfig {
  const { isolationLevel, readOnly, accessMode } = (config ?? {}) as Record<string, unknown>;
  return {
    isolationLevel: typeof isolationLevel === 'string' ? levelNamed(isolationLevel) : undefined,
    readOnly: readOnly === true || accessMode === 'read only',
  };
}

/** Clients spell the levels differently: `REPEATABLE READ`, `repeatable read`, `RepeatableRead`. */
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

/** The `BEGIN` for these options. */
export function beginPG({ isolationLevel, readOnly }: PGTransactionConfig): string {
  return `BEGIN${isolationLevel === undefined ? '' : ` ISOLATION LEVEL ${isolationLevel}`}${readOnly ? ' READ ONLY' : ''}`;
}
