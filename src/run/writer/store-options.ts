// How a store is opened.
import type { Clock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { PostgresOptions } from '../../database/postgres/postgres-options.js';

export interface StoreOptions extends Omit<PostgresOptions, 'clock' | 'logger'> {
  readonly logger: DLogger;
  readonly clock?: Clock;
  /** False only verifies the version. */
  readonly runMigrations?: boolean;
  /** Without migrations: whether a database that only DBOS has migrated will do. */
  readonly acceptsDBOS?: boolean;
  /** False disables LISTEN, NOTIFY and the triggers; waits then poll. */
  readonly useListenNotify?: boolean;
  /** Whether several processes may use a SQLite file although this version of SQLite can corrupt it then. Default: no. */
  readonly allowAffectedSqlite?: boolean;
  /** Otherwise, whether such a file is opened for reading beside another process, instead of not at all. For clients. */
  readonly readsBesideOthers?: boolean;
  /** The advisory lock to hold on the listening connection. */
  readonly sessionLock?: string;
  /** False defers listening until `listener.start()` is called. */
  readonly isListening?: boolean;
  /** Whether the writer waits out conditions of the database that may need an operator. For engines. */
  readonly isPatient?: boolean;
  /** How long callers outside of workflows wait for a write. */
  readonly callTimeoutMs?: number;
  /** How long notifications are collected before they are sent. */
  readonly notificationCoalesceMs?: number;
}
