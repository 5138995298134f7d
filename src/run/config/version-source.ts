// Application versions that do not depend on how the code was compiled. The one computed from the workflows' source does:
// tsx, tsc, esbuild and Bun make different JavaScript of the same TypeScript.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';

/** `git`: the checked-out commit. `package`: the version in package.json. Anything else is the version itself. */
export function resolveVersion(given: string | undefined, folder: string): string | undefined {
  if (given === 'git') return commitOf(folder);
  if (given === 'package') return packageVersionOf(folder);
  return given;
}

function packageVersionOf(folder: string): string {
  const path = findUpwards(folder, 'package.json');
  const { version } = path === undefined ? {} : (JSON.parse(readFileSync(path, 'utf8')) as { version?: unknown });
  if (typeof version === 'string' && version !== '') return version;
  throw new DBOSInitializationError(
    `applicationVersion is 'package', but ${path === undefined ? `there is no package.json in "${folder}" or above it` : `"${path}" has no version`}. ` +
      'Add one, or set applicationVersion to a version.',
  );
}

/** Read from the files of Git: a container may have them without the command. */
function commitOf(folder: string): string {
  const found = findUpwards(folder, '.git');
  const commit = found === undefined ? undefined : readHead(gitFolderOf(found));
  if (commit !== undefined) return commit;
  throw new DBOSInitializationError(
    `applicationVersion is 'git', but there is no commit in "${folder}" or above it. ` +
      'Ship the .git folder, or set applicationVersion or DBOS__APPVERSION to the commit when you build.',
  );
}

/** In a worktree or submodule, `.git` is a file that names the folder. */
function gitFolderOf(path: string): string {
  if (statSync(path).isDirectory()) return path;
  const [, target = ''] = /^gitdir: (.+)$/m.exec(readFileSync(path, 'utf8')) ?? [];
  return resolve(dirname(path), target.trim());
}

function readHead(gitFolder: string): string | undefined {
  const head = read(join(gitFolder, 'HEAD'));
  const [, ref] = /^ref: (.+)$/.exec(head ?? '') ?? [];
  if (ref === undefined) return head;
  // A worktree has its own HEAD, and shares the branches.
  const shared = resolve(gitFolder, read(join(gitFolder, 'commondir')) ?? '.');
  return read(join(gitFolder, ref)) ?? read(join(shared, ref)) ?? packedRef(shared, ref);
}

function packedRef(gitFolder: string, ref: string): string | undefined {
  const lines = read(join(gitFolder, 'packed-refs'))?.split('\n') ?? [];
  return lines.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0];
}

function read(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

function findUpwards(folder: string, name: string): string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const path = join(at, name);
    if (existsSync(path)) return path;
    if (at === dirname(at)) return undefined;
  }
}
