// What is left of connections that could not be made: nothing, whoever wanted them and however they failed.
import type pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { NodePostgresDataSource } from '../../../src/plugins/transaction/adapters/node-postgres.js';
import type { OutboxDatabase } from '../../../src/plugins/outbox/database.js';
import { WakeUps } from '../../../src/plugins/outbox/consume/wake-ups.js';
import { inOwnSession } from '../../../src/plugins/outbox/retention/own-session.js';
import { postgresAdapter } from '../../../src/plugins/receiver/adapters/postgres.js';
import { describePresence, type Presence, presenceOn } from '../../../src/features/liveness/presence.sql.js';
import type { Peer } from '../../../src/features/liveness/executors.sql.js';
import { Hosts } from '../../../src/database/postgres/hosts.js';
import { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { PostgresListener } from '../../../src/database/postgres/postgres-listener.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { type Gate, startGate, type Treatment } from '../../rig/gate.js';

const POOL_SIZE = 4;
const CONNECT_MS = 400;

/** The URL of a database whose hosts are gates. */
function through(url: string, ...gates: Gate[]): string {
  return url.replace(new URL(url).host, gates.map(({ host }) => host).join(','));
}

function open(url: string, pool?: 'none'): PostgresDatabase {
  const database = new PostgresDatabase({ url, pool, poolSize: POOL_SIZE, poolTimeoutMs: CONNECT_MS });
  onTestFinished(() => database.close());
  return database;
}

/** On another machine, so that its lock is watched. */
function peerElsewhere(): Peer {
  return { incarnationID: 'peer', host: 'elsewhere', pid: 1, metadata: describePresence(true) } as unknown as Peer;
}

async function watch(presence: Presence): Promise<void> {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  await presence.untilSuspected(peerElsewhere(), controller.signal);
}

/** Each tries to connect until it fails. */
const KINDS: Record<string, (url: string) => Promise<unknown>> = {
  'a pool'(url) {
    const database = open(url);
    return Promise.all(Array.from({ length: POOL_SIZE + 1 }, () => database.read(sql`SELECT 1`)));
  },
  'a connection per operation': (url) => open(url, 'none').read(sql`SELECT 1`),
  'the watch of a peer': (url) => watch(presenceOn(open(url), { clock: systemClock })),
  'a probe': (url) => open(url).withSession('everstep probe', (session) => session.ask('SELECT 1')),
  async 'the listening connection'(url) {
    const database = open(url);
    const warn = vi.fn();
    const logger = { ...silentLogger, warn };
    const listener = new PostgresListener(database, { clock: systemClock, logger, channels: ['c'] });
    onTestFinished(() => listener.stop());
    await listener.start();
    await listener.stop();
    if (warn.mock.calls.length > 0) throw new Error(String(warn.mock.calls[0]));
  },
};

/** Those on the user's own database, which has one host. */
const OWN_KINDS: Record<string, (config: pg.ClientConfig) => Promise<unknown>> = {
  'a setup of a data source': (config) => NodePostgresDataSource.initializeDBOSSchema(config),
  'a receiver': (config) =>
    postgresAdapter(config).connect(
      { table: 't', keyColumns: ['id'], sequenceColumn: 'id' },
      {
        clock: systemClock,
        logger: silentLogger,
        batchSize: 1,
        functionName: 'f',
        loadPosition: async () => undefined,
      },
    ),
  'a retention pass': (config) =>
    inOwnSession({ config, dialect: open(String(config.connectionString)).dialect, lock: 'lock' }, async () => {}),
  async 'the wake-ups of an outbox'(config) {
    const database = { driver: { dialect: 'postgres' } } as unknown as OutboxDatabase;
    const failed = new Promise<void>((_, reject) => {
      const logger = { ...silentLogger, warn: (message: unknown) => reject(new Error(String(message))) };
      const wakeUps = new WakeUps({
        clock: systemClock,
        logger,
        database,
        channel: 'c',
        listenConfig: config,
        wake() {},
      });
      onTestFinished(() => wakeUps.stop());
      wakeUps.start();
    });
    await failed;
  },
};

const FAILURES: readonly Treatment[] = ['refused', 'silent', 'cut', 'away'];

onlyOn('postgres', (dialect) => {
  const everyKind = Object.keys(KINDS).flatMap((kind) =>
    [...FAILURES, 'read-only' as const].map((failure) => [kind, failure] as const),
  );

  test.each(everyKind)('%s leaves nothing behind: %s', async (kind, failure) => {
    const url = await dialect.createURL();
    const gates = [await startGate(url, failure), await startGate(url, failure)];

    await expect(KINDS[kind]?.(through(url, ...gates))).rejects.toThrow();

    await vi.waitFor(() => expect(gates.map((gate) => gate.open)).toEqual([0, 0]), { timeout: 1_500 });
    // The end of one may reach the gate after the beginning of the next.
    for (const gate of gates) expect(gate.most).toBeLessThanOrEqual(2);
  });

  const everyOwnKind = Object.keys(OWN_KINDS).flatMap((kind) => FAILURES.map((failure) => [kind, failure] as const));

  test.each(everyOwnKind)('%s leaves nothing behind: %s', async (kind, failure) => {
    const url = await dialect.createURL();
    const gate = await startGate(url, failure);
    const config = { connectionString: through(url, gate), connectionTimeoutMillis: CONNECT_MS };

    await expect(OWN_KINDS[kind]?.(config)).rejects.toThrow();

    await vi.waitFor(() => expect(gate.open).toBe(0), { timeout: 1_500 });
    expect(gate.most).toBeLessThanOrEqual(2);
  });

  test('while no host accepts writes, one search is made at a time, and ever more rarely', async () => {
    const url = await dialect.createURL();
    const [primary, standby] = [await startGate(url), await startGate(url, 'read-only')];
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: through(url, primary, standby) });
    const workflow = DBOS.registerWorkflow((n: number) => DBOS.runStep(async () => n, { name: 's' }), { name: 'w' });
    await DBOS.launch();
    expect(await workflow(0)).toBe(0);
    expect(standby.open).toBe(0);

    primary.treat('away');
    standby.treat('read-only');
    primary.cutAll();
    const started = Array.from({ length: 50 }, (_, n) => workflow(n));
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const searches = standby.made;
    primary.treat('let in');

    expect(await Promise.all(started)).toHaveLength(50);
    expect(standby.most).toBe(1);
    expect(searches).toBeLessThan(12);
    await vi.waitFor(() => expect(standby.open).toBe(0));
  });

  test('the listening connection leaves a server when another one takes its place', async () => {
    const url = await dialect.createURL();
    const gate = await startGate(url);
    const hosts = Hosts.of(`${through(url, gate)}?target_session_attrs=primary`);
    const database = new PostgresDatabase({ url: through(url, gate), hosts });
    onTestFinished(() => database.close());
    const listener = new PostgresListener(database, { clock: systemClock, logger: silentLogger, channels: ['c'] });
    onTestFinished(() => listener.stop());
    await listener.start();
    expect(listener.session).toBe(1);

    hosts?.timelines.see('00000099', 'another server');

    await vi.waitFor(() => expect(listener.session).toBe(0));
    await vi.waitFor(() => expect(gate.made).toBeGreaterThan(1));
    await expect(database.read(sql`SELECT 1`)).rejects.toThrow('is a former primary');
    expect(listener.session).toBe(0);
  });
});
