// SQLite 3.7.0 to 3.51.2 can corrupt a file in WAL mode if two connections, in different processes or threads, write or
// checkpoint at the same instant. Within a thread they take turns. So with such a version a file is for one thread of one
// process, which holds a lock for as long as it has the file open: on a file of its own beside it, since the connections to
// the database itself share that. The system frees the lock when the process ends, however that happens.
import { closeSync, openSync, realpathSync } from 'node:fs';
import { AffectedSqliteError } from '../../kernel/errors/database-errors.js';
import { isBusy } from './sqlite-errors.js';
import type { SqliteHandle, SqliteLibrary } from './sqlite-handle.js';

/** The releases with the fix: the first of each line, and of everything behind. */
const FIXED = [
  [3, 44, 6],
  [3, 50, 7],
  [3, 51, 3],
] as const;
const OLDEST = [3, 7, 0] as const;

export const REMEDY =
  'Install SQLite 3.51.3 or newer: `npm install better-sqlite3@^12.8.0`, which is used where it is installed, or a Node ' +
  'with that SQLite, such as 24.15 (`node -p process.versions.sqlite`).';

/** `allowAffectedSqlite` from outside of the program: for engines and commands. */
export function isAffectedAllowed(environment: NodeJS.ProcessEnv): boolean {
  return ['1', 'true'].includes(environment['EVERSTEP_ALLOW_AFFECTED_SQLITE']?.trim().toLowerCase() ?? '');
}

/** Whether this version of SQLite has the bug. */
export function hasWalResetBug(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const last = FIXED[2];
  if (compare([major, minor, patch], OLDEST) < 0 || compare([major, minor, patch], last) >= 0) return false;
  return !FIXED.some((fixed) => major === fixed[0] && minor === fixed[1] && patch >= fixed[2]);
}

type Version = readonly [number, number, number];

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
}

interface Claim {
  readonly lock: SqliteHandle;
  users: number;
}

const KEY = Symbol.for('everstep.sqlite-files');

/** The files that this thread has open, for all copies of the package in it. */
function claims(): Map<string, Claim> {
  const holder = globalThis as { [KEY]?: Map<string, Claim> };
  holder[KEY] ??= new Map<string, Claim>();
  return holder[KEY];
}

export function describeBug({ name, version }: SqliteLibrary): string {
  return `SQLite ${version} (${name}) can corrupt a file that several processes or threads use`;
}

/**
 * Claims an existing file for this thread. Returns the function that gives it up; throws if another process or thread has it
 * open. `warn` is called for the first claim in this thread.
 */
export function claimFile(library: SqliteLibrary, path: string, warn?: (message: string) => void): () => void {
  const key = realpathSync(path);
  const known = claims().get(key);
  const claim = known ?? { lock: lockBeside(library, key), users: 0 };
  if (!known) {
    claims().set(key, claim);
    warn?.(
      `${describeBug(library)}. "${path}" is refused to other applications, and read-only for clients and commands, while this process has it open. ${REMEDY}`,
    );
  }
  claim.users += 1;
  return () => {
    claim.users -= 1;
    if (claim.users > 0) return;
    claims().delete(key);
    claim.lock.close();
  };
}

function lockBeside(library: SqliteLibrary, path: string): SqliteHandle {
  const lockPath = `${path}-everstep`;
  // Who may read it can hold a lock on it.
  closeSync(openSync(lockPath, 'a', 0o600));
  const lock = library.open(lockPath);
  try {
    lock.exec('PRAGMA busy_timeout = 0');
    // Otherwise a journal lies beside it.
    lock.exec('PRAGMA journal_mode = OFF');
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new AffectedSqliteError(
      `${describeBug(library)}, and another one has "${path}" open: an application, a client or a command. Stop it, or update ` +
        `SQLite in all of them. ${REMEDY} Or set allowAffectedSqlite, or ` +
        'EVERSTEP_ALLOW_AFFECTED_SQLITE=true, to take the risk, or if your SQLite has the fix under an old version number.',
      { cause: error },
    );
  }
}
