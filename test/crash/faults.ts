// The faults of the campaign. Each strikes a group of workers at a random moment, and is over when it resolves or soon
// after.
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import type { Proxy } from '../rig/proxy.js';
import type { Worker } from './processes.js';
import type { RandomSource } from './random.js';

/** A worker process, started again when it was killed. */
export interface Station {
  worker: Worker;
  /** The way to the database, where there is a network. */
  readonly proxy?: Proxy;
  /** The way to the application's database. */
  readonly ledgerProxy?: Proxy;
  restart(): Promise<void>;
}

export interface Ground {
  /** The system database, past all proxies. */
  readonly url: string;
  readonly stations: readonly Station[];
  /** The way of the test's own client. */
  readonly clientProxy?: Proxy;
  readonly random: RandomSource;
}

export type Fault = (ground: Ground) => Promise<void>;

/** Longer than the lease of two seconds, or shorter. */
const FREEZE_MAX_MS = 4500;

const kill: Fault = async ({ stations, random }) => {
  const station = pick(stations, random);
  await station.worker.kill();
  await station.restart();
};

const freeze: Fault = async ({ stations, random }) => {
  const { worker } = pick(stations, random);
  worker.signal('SIGSTOP');
  await pause(random.below(FREEZE_MAX_MS));
  worker.signal('SIGCONT');
};

const lockFile: Fault = async ({ url, random }) => {
  // Waiting for the lock would block the test, also when a frozen worker holds it.
  const file = new BetterSqlite3(url.replace('sqlite:///', ''), { timeout: 0 });
  const isLocked = (): boolean => {
    try {
      file.exec('BEGIN IMMEDIATE');
      return true;
    } catch {
      return false;
    }
  };
  try {
    while (!isLocked()) await pause(5);
    await pause(random.below(1500));
    file.exec('ROLLBACK');
  } finally {
    file.close();
  }
};

type Strike = (proxy: Proxy, random: RandomSource) => void | Promise<void>;

const networkOf =
  (proxiesOf: (ground: Ground) => readonly (Proxy | undefined)[]) =>
  (strike: Strike): Fault =>
  async (ground) => {
    const proxies = proxiesOf(ground).filter((proxy) => proxy !== undefined);
    await strike(pick(proxies, ground.random), ground.random);
  };

const toSystem = ({ stations, clientProxy }: Ground) => [...stations.map(({ proxy }) => proxy), clientProxy];
const toLedger = ({ stations }: Ground) => stations.map(({ ledgerProxy }) => ledgerProxy);
const network = networkOf((ground) => [...toSystem(ground), ...toLedger(ground)]);
/** The pool of a data source is the application's, and has the limits that the application gives it. */
const systemNetwork = networkOf(toSystem);

const cut = network(async (proxy, random) => {
  proxy.cut();
  await pause(random.below(800));
  proxy.restore();
});
const loseAnswer = network((proxy) => proxy.loseNextAnswer());
const loseRequest = network((proxy) => proxy.loseNextRequest());
const loseCommitAnswer = network((proxy) => proxy.loseNextAnswer(/COMMIT/));
const silence = systemNetwork((proxy) => proxy.swallow());
const deliverLate = network(async (proxy, random) => {
  proxy.holdNextRequest(/COMMIT|UPDATE|INSERT/);
  for (let waits = 0; waits < 20 && !proxy.isHolding; waits += 1) await pause(50);
  proxy.restore();
  if (!proxy.isHolding) return;
  await pause(random.below(2500));
  await proxy.deliver();
});

/** The application name of sessions that no fault strikes. */
export const OBSERVER = 'observer';

/** Runs statements on the server, past all proxies. */
const onServer =
  (body: (client: pg.Client, random: RandomSource) => Promise<void>): Fault =>
  async ({ url, random }) => {
    const options = '-c statement_timeout=0 -c default_transaction_read_only=off';
    const client = new pg.Client({ connectionString: url, application_name: OBSERVER, options });
    await client.connect();
    try {
      await body(client, random);
    } finally {
      await client.end();
    }
  };

const terminateAll = (client: pg.Client): Promise<unknown> =>
  client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> '${OBSERVER}'`);

const terminate = onServer(async (client) => void (await terminateAll(client)));

/** A setting of the database that makes statements fail for a while, for reasons that pass. */
const hostileSetting = (setting: string): Fault =>
  onServer(async (client, random) => {
    const { database } = client;
    await client.query(`ALTER DATABASE "${database}" SET ${setting}`);
    await terminateAll(client);
    await pause(random.below(700));
    await client.query(`ALTER DATABASE "${database}" RESET ${setting.split(' ')[0]}`);
    await terminateAll(client);
  });

const lockRow = onServer(async (client, random) => {
  await client.query('BEGIN');
  await client.query(`SELECT 1 FROM dbos.workflow_status WHERE status = 'PENDING' LIMIT 1 FOR UPDATE`);
  await pause(random.below(2000));
  await client.query('ROLLBACK');
});

export const FAULTS: Readonly<Record<'sqlite' | 'postgres', Readonly<Record<string, Fault>>>> = {
  sqlite: { kill, freeze, lockFile },
  postgres: {
    kill,
    freeze,
    cut,
    loseAnswer,
    loseCommitAnswer,
    loseRequest,
    silence,
    deliverLate,
    terminate,
    readOnly: hostileSetting('default_transaction_read_only = on'),
    statementTimeout: hostileSetting('statement_timeout = 1'),
    lockRow,
  },
};

export function pick<T>(list: readonly T[], random: RandomSource): T {
  const one = list[random.below(list.length)];
  if (one === undefined) throw new Error('There is nothing to pick from.');
  return one;
}

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
