// What a run needs before it begins: the libraries to compare with, and the workers as plain JavaScript, bundled as Everstep
// is published.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const benchFolder = join(root, 'bench');
const compiled = join(root, 'node_modules', '.cache', 'everstep-bench');

/** They are dependencies of this folder only. */
export function installPeers(): void {
  if (areInstalled()) return;
  console.log('Installing the libraries to compare with into bench/node_modules.');
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** Whether the folder has what its lock file says. npm keeps a lock file of what it has installed. */
function areInstalled(): boolean {
  const installed = join(benchFolder, 'node_modules', '.package-lock.json');
  if (!existsSync(installed)) return false;
  const there = versionsIn(installed);
  return [...versionsIn(join(benchFolder, 'package-lock.json'))].every(
    ([name, version]) => there.get(name) === version,
  );
}

function versionsIn(lockFile: string): Map<string, string | undefined> {
  const { packages } = JSON.parse(readFileSync(lockFile, 'utf8')) as {
    readonly packages: Record<string, { readonly version?: string; readonly optional?: boolean }>;
  };
  const entries = Object.entries(packages).filter(([name, { optional }]) => name !== '' && !optional);
  return new Map(entries.map(([name, { version }]) => [name, version]));
}

export function compileWorkers(): void {
  run(process.execPath, ['bundle-workers.mjs', compiled]);
  writeFileSync(join(compiled, 'package.json'), '{ "type": "module" }\n');
}

/** The benchmarks that have workers of their own. */
export type Bench = 'engine' | 'messages' | 'plugins';

/** The compiled script of a worker. */
export function workerPath(bench: Bench, library: 'everstep' | 'dbos'): string {
  return join(compiled, 'bench', bench, `${library}-worker.js`);
}

/** The compiled form of a script. */
export function compiledPath(source: URL): string {
  return join(compiled, relative(root, fileURLToPath(source)).replace(/\.ts$/, '.js'));
}

/** A file of bench/, from which its libraries are found. */
export function peerFolder(): string {
  return join(benchFolder, 'package.json');
}

/** The file to import for a library in bench/node_modules. */
export function peerPath(packageName: string): string {
  return createRequire(peerFolder()).resolve(packageName);
}

function run(command: string, args: readonly string[]): void {
  const { status } = spawnSync(command, args, { cwd: benchFolder, stdio: 'inherit' });
  if (status !== 0) throw new Error(`"${command} ${args.join(' ')}" has failed in ${benchFolder}`);
}
