// Starts processes of either library on one database and sends them commands. None outlives its test.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { postgres } from '../rig/dialects.js';
import { bundled } from '../rig/bundle.js';
import type { PeerSettings } from './programs/peer.mjs';

export type DbosKind = 'dbos-4' | 'dbos-5';

export interface Peer {
  readonly pid: number;
  /** Carries out a command in the process and resolves to its answer. */
  perform<T = unknown>(command: string, options?: Readonly<Record<string, unknown>>): Promise<T>;
  kill(): Promise<void>;
  /** Shuts down the library and resolves when the process has ended. */
  end(): Promise<void>;
  log(): string;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** A process that has loaded its library and is not launched yet. */
export async function startPeer(settings: PeerSettings): Promise<Peer> {
  const program =
    settings.kind === 'everstep'
      ? await bundled(new URL('./everstep-process.ts', import.meta.url))
      : [fileURLToPath(new URL('./programs/dbos-process.mjs', import.meta.url))];
  const child = spawn(process.execPath, [...program, JSON.stringify(settings)], { stdio: 'pipe' });
  const exited = once(child, 'exit');
  const log = collectLog(child);
  const waiting = new Map<number, Waiting>();
  let last = 0;
  const send = (command: string, options: object): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (child.exitCode !== null || child.signalCode !== null) return reject(new Error('The process has ended.'));
      last += 1;
      waiting.set(last, { resolve, reject });
      child.stdin?.write(`${JSON.stringify({ number: last, command, ...options })}\n`);
    });
  const loaded = new Promise<unknown>((resolve, reject) => waiting.set(0, { resolve, reject }));
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('@')) return void log.push(`${line}\n`);
    const { number, value, error } = JSON.parse(line.slice(1)) as { number: number; value?: unknown; error?: string };
    const waiter = waiting.get(number);
    waiting.delete(number);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(new Error(error));
  });
  void exited.then(([code, signal]) => {
    for (const waiter of waiting.values()) {
      waiter.reject(new Error(`The process has ended (${String(signal ?? code)}):\n${log.join('')}`));
    }
  });
  const peer: Peer = {
    pid: child.pid ?? 0,
    perform: <T>(command: string, options = {}) => send(command, options) as Promise<T>,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async end() {
      await send('shutdown', {});
      child.stdin?.end();
      child.kill();
      await exited;
    },
    log: () => log.join(''),
  };
  onTestFinished(() => peer.kill());
  await loaded;
  return peer;
}

export async function launchPeer(settings: PeerSettings): Promise<Peer> {
  const peer = await startPeer(settings);
  await peer.perform('launch');
  return peer;
}

function collectLog(child: ChildProcess): string[] {
  const log: string[] = [];
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => log.push(chunk));
  // A command may be sent to a process that has just died.
  child.stdin?.on('error', () => {});
  return log;
}

export interface SharedDatabase {
  readonly url: string;
  readonly query: <T extends pg.QueryResultRow = Record<string, unknown>>(
    text: string,
    values?: unknown[],
  ) => Promise<T[]>;
}

/** An empty database with the application's own two tables. */
export async function createSharedDatabase({ isMigrated = false } = {}): Promise<SharedDatabase> {
  const url = await postgres.createURL({ isMigrated });
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  await pool.query(`
    CREATE TABLE public.effects (
      number BIGINT GENERATED ALWAYS AS IDENTITY, workflow TEXT, step TEXT, kind TEXT, pid INT,
      at TIMESTAMPTZ DEFAULT clock_timestamp()
    );
    CREATE TABLE public.gates (gate TEXT PRIMARY KEY)`);
  return { url, query: async (text, values) => (await pool.query(text, values)).rows as never };
}
