// Migrations and the error for a failed one.
import { MigrationError } from '../../kernel/errors/errors.js';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly isOnline: boolean;
}

/** A sequence of migrations with its own version. */
export interface Track {
  /** The table whose one row holds the version. */
  readonly versionTable: 'dbos_migrations' | 'everstep_migrations';
  readonly migrations: readonly Migration[];
}

const SAFE_TO_REPEAT = 'Nothing is lost or half-done: run the migrations again to continue.';

export function migrationFailure(what: string, cause: unknown, advice = SAFE_TO_REPEAT): MigrationError {
  const reason = (cause as Error).message.replace(/\.?$/, '.');
  return new MigrationError(`${what} failed: ${reason} ${advice}`, { cause });
}
