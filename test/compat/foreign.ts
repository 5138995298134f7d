// Workers and clients of real DBOS releases beside Everstep on one database. They need what `npm ci` installs in this folder.
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { onTestFinished } from 'vitest';

const require = createRequire(import.meta.url);
const WORKER = fileURLToPath(new URL('./foreign-worker.mjs', import.meta.url));

export type Release = 'dbos-4' | 'dbos-5';

/** Whether the releases are installed. */
export const isInstalled = hasPackage('dbos-5') && hasPackage('dbos-4');

function hasPackage(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}

export interface ForeignWorker {
  call(command: string, ...args: unknown[]): Promise<unknown>;
  /** Kills the process. */
  kill(): Promise<void>;
}

/** Starts a worker of DBOS. Resolves when it is launched; it is killed when the test ends. */
export async function startWorker(release: Release, url: string, config: object): Promise<ForeignWorker> {
  const child = fork(WORKER, [release, url, JSON.stringify(config)], { stdio: 'inherit' });
  const pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let calls = 0;
  const answer = (id: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      pending.set(id, { resolve, reject });
    });
  child.on('message', ({ id, value, error }: { id: number; value?: unknown; error?: string }) => {
    if (error === undefined) pending.get(id)?.resolve(value);
    else pending.get(id)?.reject(new Error(error));
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  const launched = answer(0);
  void ended.then(() => pending.forEach((call) => call.reject(new Error('The worker has ended.'))));
  await launched;
  return {
    call(command, ...args) {
      const id = ++calls;
      const answered = answer(id);
      child.send({ id, command, args });
      return answered;
    },
    kill,
  };
}

/** What tests use of the client of DBOS. */
export interface ForeignClient {
  enqueue(options: object, ...args: unknown[]): Promise<{ getResult(): Promise<unknown> }>;
  cancelWorkflow(workflowID: string): Promise<void>;
  resumeWorkflow(workflowID: string): Promise<unknown>;
  setWorkflowDelay(workflowID: string, delay: object): Promise<void>;
  createSchedule(options: object): Promise<unknown>;
  deleteSchedule(name: string): Promise<unknown>;
  retrieveWorkflow(workflowID: string): { getResult(): Promise<unknown> };
  destroy(): Promise<void>;
}

export async function createClient(release: Release, url: string): Promise<ForeignClient> {
  const { DBOSClient } = require(release) as { DBOSClient: { create(options: object): Promise<ForeignClient> } };
  const client = await DBOSClient.create({ systemDatabaseUrl: url, applicationName: 'test' });
  onTestFinished(() => client.destroy());
  return client;
}

/** A connection for the test's own tables, in which workflows of both kinds note what they do. */
export async function createNotes(url: string): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  onTestFinished(() => pool.end());
  await pool.query('CREATE TABLE spans (id SERIAL, kind TEXT, begun TIMESTAMPTZ, ended TIMESTAMPTZ)');
  await pool.query('CREATE TABLE steps (kind TEXT, name TEXT)');
  return pool;
}
