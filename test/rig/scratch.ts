// Where tests keep their databases. A Postgres database is some 300 files; creating them takes a quarter of a second on
// an ordinary disk and a tenth of that in memory, and nearly every test wants one.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
/** What a whole test run may take. */
const NEEDED_BYTES = 3e9;

/** A folder in memory if the system has one with enough room, else the one for temporary files. */
export function scratchFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= NEEDED_BYTES ? MEMORY : tmpdir();
  } catch {
    // Only Linux has it.
    return tmpdir();
  }
}
