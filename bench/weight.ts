// What the package costs before it does anything: CPU time and files of an import, and the size of its installation, beside
// other libraries of bench/node_modules.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { installPeers, peerFolder, peerPath } from './engine/preparations.js';
import { median, printTable } from './report.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const ROUNDS = 11;
const PEERS = ['dbos-5', 'pg-boss', 'graphile-worker', 'openworkflow'];

interface Subject {
  readonly label: string;
  /** The module to import; none for Node alone. */
  readonly url?: string;
  /** The folder of its package. */
  readonly folder?: string;
}

export async function benchWeight(): Promise<void> {
  installPeers();
  const built = spawnSync(process.execPath, ['scripts/build.mjs'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (built.status !== 0) throw new Error('The package could not be built.');
  const lines = subjects().map((subject) => {
    const files = count(subject);
    const size = subject.folder === undefined ? '' : `, ${megabytes(installedBytes(subject.folder))} MB installed`;
    return { label: subject.label, value: `${cpuSeconds(subject).toFixed(3)} s`, ratio: `${files} files${size}` };
  });
  printTable('CPU time of a process that only imports, median', lines);
}

function subjects(): Subject[] {
  const own = (label: string, file: string): Subject => ({
    label,
    url: pathToFileURL(join(root, 'dist', file)).href,
    folder: root,
  });
  const missing = PEERS.filter((name) => !existsSync(join(dirname(peerFolder()), 'node_modules', name)));
  for (const name of missing) console.log(`${name} is not installed in bench/.`);
  const peers = PEERS.filter((name) => !missing.includes(name)).map((name) => ({
    label: name,
    url: pathToFileURL(peerPath(name)).href,
    folder: join(dirname(peerFolder()), 'node_modules', name),
  }));
  return [{ label: 'Node alone' }, own('everstep', 'index.js'), own('everstep/client', 'client.js'), ...peers];
}

function cpuSeconds({ url }: Subject): number {
  const script = `${importOf(url)} const { user, system } = process.cpuUsage(); console.log((user + system) / 1e6);`;
  return median(Array.from({ length: ROUNDS }, () => Number(run(script))));
}

/** Files are counted as V8 parses them, so ES modules and CommonJS count alike. */
function count({ url }: Subject): number {
  return Number(
    run(`
      const { Session } = await import('node:inspector');
      const session = new Session();
      let files = 0;
      session.connect();
      session.on('Debugger.scriptParsed', ({ params }) => (files += params.url.startsWith('file:') ? 1 : 0));
      session.post('Debugger.enable');
      const before = files;
      ${importOf(url)}
      console.log(files - before);
      process.exit();`),
  );
}

const importOf = (url: string | undefined): string =>
  url === undefined ? '' : `await import(${JSON.stringify(url)});`;

function run(script: string): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly files?: readonly string[];
}

/** A package and all that it depends on; of this one, what is published. */
function installedBytes(folder: string, seen = new Set<string>()): number {
  if (seen.has(folder)) return 0;
  seen.add(folder);
  const { dependencies = {}, files = [] } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const own = folder === root ? files.map((file) => bytesIn(join(folder, file))) : [bytesIn(folder)];
  const others = Object.keys(dependencies).map((name) => {
    const found = createRequire(join(folder, 'package.json'))
      .resolve.paths(name)
      ?.map((path) => join(path, name))
      .find((path) => existsSync(join(path, 'package.json')));
    return found === undefined ? 0 : installedBytes(found, seen);
  });
  return [...own, ...others].reduce((sum, bytes) => sum + bytes, 0);
}

function bytesIn(path: string): number {
  const entry = statSync(path, { throwIfNoEntry: false });
  if (!entry?.isDirectory()) return entry?.size ?? 0;
  return readdirSync(path)
    .filter((name) => name !== 'node_modules')
    .reduce((sum, name) => sum + bytesIn(join(path, name)), 0);
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
