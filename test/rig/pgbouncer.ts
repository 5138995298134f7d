// PgBouncer as Debian ships it, in front of a Postgres server, with its default settings but for where it listens.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.mjs';

export type PoolMode = 'session' | 'transaction';

export interface PgBouncer {
  /** The given URL, through PgBouncer. */
  through(url: string): string;
  stop(): Promise<void>;
}

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'].find(existsSync);

export const hasPgBouncer = PROGRAM !== undefined;

/** Starts PgBouncer for all databases of the server. `settings` are further lines of its configuration. */
export async function startPgBouncer(
  serverURL: string,
  mode: PoolMode,
  settings: Record<string, string | number> = {},
): Promise<PgBouncer> {
  if (PROGRAM === undefined) throw new Error('PgBouncer is not installed.');
  const folder = mkdtempSync(join(tmpdir(), 'everstep-pgbouncer-'));
  const { hostname, port: serverPort, username, password } = new URL(serverURL);
  const port = await freePort();
  const configuration = { listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', pool_mode: mode };
  const users = join(folder, 'users.txt');
  writeFileSync(users, `"${username}" "${password}"\n`, { mode: 0o644 });
  const lines = Object.entries({ ...configuration, auth_type: 'trust', auth_file: users, ...settings });
  const path = join(folder, 'pgbouncer.ini');
  writeFileSync(
    path,
    [
      '[databases]',
      `* = host=${hostname} port=${serverPort}`,
      '[pgbouncer]',
      ...lines.map(([key, value]) => `${key} = ${value}`),
    ].join('\n'),
  );
  // It refuses to run as root. The wrapper ends it when this process is gone, however it ended.
  const user = process.getuid?.() === 0 ? '-u nobody' : '';
  const script = `chmod 755 "$1"; "$2" -q ${user} "$1/pgbouncer.ini" >"$1/log" 2>&1 & bouncer=$!; cat >/dev/null; kill -TERM $bouncer; wait $bouncer`;
  const wrapper = spawn('/bin/sh', ['-c', script, 'sh', folder, PROGRAM], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  const hasExited = new Promise<void>((resolve) => wrapper.once('exit', () => resolve()));
  await untilListening(port);
  return {
    through(url) {
      const pooled = new URL(url);
      pooled.host = `127.0.0.1:${port}`;
      return pooled.toString();
    },
    async stop() {
      wrapper.stdin.end();
      await hasExited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const ATTEMPTS_MAX = 200;

async function untilListening(port: number): Promise<void> {
  for (let attempt = 1; !(await accepts(port)); attempt += 1) {
    if (attempt === ATTEMPTS_MAX) throw new Error('PgBouncer does not listen.');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
