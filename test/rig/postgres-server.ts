// A Postgres server for tests and benchmarks, held by a supervisor process that outlives nobody.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface PostgresServer {
  readonly url: string;
  /** Process ID of the server, for tests that stop or kill it. */
  readonly pid: number;
  readonly folder: string;
  stop(): Promise<void>;
}

export interface ServerPrograms {
  /** The folder of `postgres` and `initdb`. Default: the embedded ones. */
  readonly binaries?: string;
  /** Where the server's log goes. Default: nowhere. */
  readonly logPath?: string;
}

/** Starts a server on a free port, with its data in a folder of its own. `settings` are server settings. */
export async function startPostgres(
  settings: Record<string, string | number> = {},
  dataParent = tmpdir(),
  programs: ServerPrograms = {},
): Promise<PostgresServer> {
  const script = fileURLToPath(new URL('./postgres-supervisor.mjs', import.meta.url));
  // Detached: Ctrl-C reaches only the test run, which then closes the supervisor's input.
  const given = [dataParent, JSON.stringify(settings), JSON.stringify(programs)];
  const supervisor = spawn(process.execPath, [script, ...given], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const hasExited = new Promise<void>((resolve) => supervisor.once('exit', () => resolve()));
  const firstLine = new Promise<string>((resolve, reject) => {
    createInterface({ input: supervisor.stdout }).once('line', resolve);
    void hasExited.then(() => reject(new Error('the Postgres server for the tests did not start')));
  });
  const ready = JSON.parse(await firstLine) as { url: string; pid: number; folder: string };
  return {
    ...ready,
    async stop() {
      supervisor.stdin.end();
      await hasExited;
    },
  };
}

/** Whether the tests use Debian's Postgres with its default configuration, as many users do. */
export const isStock = process.env['TEST_POSTGRES'] === 'stock';

/** The programs that TEST_POSTGRES asks for: `stock`, or a folder. Undefined for the embedded ones. */
export function wantedBinaries(): string | undefined {
  if (!isStock) return process.env['TEST_POSTGRES'];
  const binaries = stockBinaries();
  if (!binaries) throw new Error('TEST_POSTGRES is "stock", but there is no Postgres in /usr/lib/postgresql.');
  return binaries;
}

const DEBIAN_FOLDER = '/usr/lib/postgresql';

/** The binaries of the newest Postgres that Debian's packages have installed; undefined if there is none. */
export function stockBinaries(): string | undefined {
  if (!existsSync(DEBIAN_FOLDER)) return undefined;
  const versions = readdirSync(DEBIAN_FOLDER).sort((a, b) => Number(b) - Number(a));
  return versions
    .map((version) => join(DEBIAN_FOLDER, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'postgres')));
}
