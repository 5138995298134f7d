// A primary and a standby that follows it synchronously. Lines on standard input are commands, each answered by a line on
// standard output; the first line is the URL of both. When the input closes, servers and folder are removed.
//
//   lag     the standby stops to follow, and the primary does not wait for it any more
//   fail    the primary is killed, and the standby is promoted
//   return  the former primary is started again, as a primary that nothing keeps from writing
import { createInterface } from 'node:readline';
import pg from 'pg';
import { Cluster, freePort, type Server } from './cluster.js';

export type ReplicasCommand = 'lag' | 'fail' | 'return';

const cluster = new Cluster();
const servers = new Map<string, Server>();

async function query(port: number, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

async function untilSynchronous(port: number): Promise<void> {
  const following = `SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`;
  while ((await query(port, following)).length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  await set(port, 'synchronous_standby_names', '*');
  const isSynchronous = `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`;
  while ((await query(port, isSynchronous)).length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function set(port: number, name: string, value: string): Promise<void> {
  await query(port, `ALTER SYSTEM SET ${name} = '${value}'`);
  await query(port, 'SELECT pg_reload_conf()');
}

/** What is committed from now on is lost when the primary fails. */
async function lag([primary, standby]: readonly [number, number]): Promise<void> {
  await set(primary, 'synchronous_standby_names', '');
  const isWaiting = `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`;
  while ((await query(primary, isWaiting)).length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  await set(standby, 'primary_conninfo', '');
  const isFollowing = 'SELECT 1 FROM pg_stat_wal_receiver';
  while ((await query(standby, isFollowing)).length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function perform(command: ReplicasCommand, [primary, standby]: readonly [number, number]): Promise<void> {
  if (command === 'lag') return lag([primary, standby]);
  if (command === 'fail') {
    await servers.get('primary')?.end('SIGKILL');
    await query(standby, 'SELECT pg_promote()');
    return;
  }
  servers.set('primary', await startFormer(primary));
}

/** It does not wait for a standby any more, so what it is sent would be lost without a word. */
async function startFormer(port: number): Promise<Server> {
  for (;;) {
    try {
      return await cluster.start('primary', port, { synchronous_standby_names: '' });
    } catch {
      // The last of its killed processes are still about to end.
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

async function main(): Promise<void> {
  cluster.create('primary');
  cluster.copy('primary', 'standby');
  cluster.makeStandby('standby');
  const ports = [await freePort(), await freePort()] as const;
  const source = `host=127.0.0.1 port=${ports[0]} user=postgres`;
  servers.set('primary', await cluster.start('primary', ports[0], { wal_keep_size: '512MB' }));
  servers.set('standby', await cluster.start('standby', ports[1]));
  // Not on its command line, which would win over a later change.
  await set(ports[1], 'primary_conninfo', source);
  await untilSynchronous(ports[0]);
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',');
  process.stdout.write(`postgresql://postgres:postgres@${hosts}/crash?target_session_attrs=read-write\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    await perform(line as ReplicasCommand, ports);
    process.stdout.write(`${line}\n`);
  }
}

void main().finally(async () => {
  for (const server of servers.values()) await server.end('SIGINT');
  cluster.remove();
});
