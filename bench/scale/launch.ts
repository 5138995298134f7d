// What a launch on an up-to-date Postgres database costs: time, connections and round trips.
import { createRequire } from 'node:module';
import type pg from 'pg';
import { createDBOS, type DBOSInstance } from '../../src/faces/library/dbos.js';
import type { Databases } from '../engine/databases.js';
import { median, printTable, timed } from '../report.js';

const LAUNCHES = 11;
// Not the copy that the benchmarks have for other libraries.
const { Client } = createRequire(new URL('../../src/index.ts', import.meta.url))('pg') as typeof pg;

type Query = (this: unknown, sent: unknown, ...rest: unknown[]) => unknown;
type Connect = (this: unknown, ...rest: unknown[]) => unknown;

export async function printLaunch(databases: Databases): Promise<void> {
  const url = await databases.postgres();
  const prepare = (): DBOSInstance => {
    const DBOS = createDBOS();
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, applicationVersion: '1', logLevel: 'error' });
    DBOS.registerWorkflow(async () => {}, { name: 'work' });
    return DBOS;
  };
  const launched = async (): Promise<number> => {
    const DBOS = prepare();
    const elapsedMs = await timed(() => DBOS.launch());
    await DBOS.shutdown();
    return elapsedMs;
  };
  // The first migrates.
  await launched();
  const times: number[] = [];
  for (let n = 0; n < LAUNCHES; n += 1) times.push(await launched());
  const DBOS = prepare();
  const { connections, roundTrips } = await counted(() => DBOS.launch());
  await DBOS.shutdown();
  printTable('A launch on an up-to-date database', [
    { label: 'time', value: `${median(times).toFixed(1)} ms` },
    { label: 'connections', value: String(connections) },
    { label: 'round trips besides', value: String(roundTrips) },
  ]);
}

/** Counts what all clients of this process do meanwhile. */
async function counted(body: () => Promise<void>): Promise<{ connections: number; roundTrips: number }> {
  const clients = Client.prototype as unknown as { query: Query; connect: Connect };
  const { query, connect } = clients;
  let connections = 0;
  let roundTrips = 0;
  clients.connect = function (...rest) {
    connections += 1;
    return connect.call(this, ...rest);
  };
  clients.query = function (sent, ...rest) {
    roundTrips += 1;
    return query.call(this, sent, ...rest);
  };
  try {
    await body();
  } finally {
    Object.assign(clients, { query, connect });
  }
  return { connections, roundTrips };
}
