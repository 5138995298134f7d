// The package as it is built in `dist/`, for tests of what users install. `npm test` builds it before the tests; a run of
// single files builds it if a source is newer.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Written last. */
const BUILT = join(root, 'dist/cjs/package.json');
const INPUTS = [
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'scripts/build.mjs',
  'scripts/bundle.mjs',
  'scripts/declarations.mjs',
];
/** A lock that is older was left by a run that was killed. */
const WAIT_MS = 150_000;

/** Two workers must not build at once. */
export async function buildPackage(): Promise<void> {
  const lock = join(root, '.tmp', 'build.lock');
  mkdirSync(join(root, '.tmp'), { recursive: true });
  for (const startedAt = Date.now(); !tryLock(lock) && Date.now() < startedAt + WAIT_MS;) await sleep(200);
  try {
    if (!isFresh()) execFileSync('node', ['scripts/build.mjs'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryLock(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    // Another worker has it.
    return false;
  }
}

function isFresh(): boolean {
  const builtAt = changedAt(BUILT);
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join('src', file));
  return [...INPUTS, ...sources].every((file) => changedAt(join(root, file)) <= builtAt);
}

function changedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
