// What the tests of the client share: an engine with a few workflows, clients of its database, and connections of a
// caller's own.
import Database from 'better-sqlite3';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient, type DBOSClientConfig } from '../../../src/faces/client/client.js';
import type { ClientTestSettings } from '../../../src/faces/client/config.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { BorrowedConnection } from '../../../src/database/transactions/borrowed.js';
import { topics } from '../../../src/database/notify/topics.js';
import type { DBOSInstance } from '../../../src/index.js';
import type { TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { patientClock } from '../../rig/patient-clock.js';

/** A launched engine. `stopped` holds the workflows that were stopped while they waited. */
export async function setupEngine(dialect: TestDialect, config: Partial<DBOSConfig> = {}) {
  // What a client does must reach it without a poll.
  const { DBOS, url } = await createEngine(dialect, config, { clock: patientClock });
  const stopped: string[] = [];
  const blocked = (name: string, wait: () => Promise<unknown>) =>
    DBOS.registerWorkflow(
      async () => {
        await DBOS.setEvent('waiting', true);
        try {
          return await wait();
        } catch (error) {
          stopped.push(name);
          throw error;
        }
      },
      { name },
    );
  DBOS.registerWorkflow(async (a: number, b: number) => a + b, { name: 'add' });
  DBOS.registerWorkflow(async (value: unknown) => value, { name: 'echo' });
  DBOS.registerWorkflow(() => Promise.reject(new Error('broken')), { name: 'fail' });
  blocked('receive', () => DBOS.recv<string>('topic', 1000));
  blocked('sleep', () => DBOS.sleep(1_000_000));
  blocked('step', () =>
    DBOS.runStep(
      () => new Promise((_, reject) => DBOS.stepStatus?.cancelSignal.addEventListener('abort', () => reject(gone))),
    ),
  );
  DBOS.registerWorkflow(
    async (value: string) => {
      await DBOS.recv('go', 1000);
      await DBOS.setEvent('event', value);
      await DBOS.writeStream('stream', value);
      await DBOS.closeStream('stream');
      return value;
    },
    { name: 'tell' },
  );
  await DBOS.launch();
  return { DBOS, url, stopped };
}

const gone = new Error('cancelled');

/** The same with a queue and a client. */
export async function setup(dialect: TestDialect, config: Partial<DBOSClientConfig> = {}) {
  const engine = await setupEngine(dialect);
  await engine.DBOS.registerQueue('q');
  const client = await connect(engine.url, config);
  return { ...engine, client };
}

export async function connect(
  url: string,
  config: Partial<DBOSClientConfig> = {},
  settings: ClientTestSettings = {},
): Promise<DBOSClient> {
  const client = await DBOSClient.create(
    { systemDatabaseUrl: url, logger: silentLogger, applicationName: 'test', ...config },
    settings,
  );
  onTestFinished(() => client.destroy());
  return client;
}

/** A connection of the caller's own, and how it is spoken to. */
export interface Own {
  readonly connection: BorrowedConnection;
  begin(): Promise<void>;
  run(text: string): Promise<unknown[]>;
}

export async function ownConnection(url: string): Promise<Own> {
  if (url.startsWith('sqlite')) {
    const handle = openHandle(url.replace('sqlite:///', ''));
    onTestFinished(() => void handle.close());
    return {
      connection: handle,
      begin: async () => void handle.exec('BEGIN IMMEDIATE'),
      run: async (text) => (text.startsWith('SELECT') ? handle.prepare(text).all() : [handle.exec(text)]),
    };
  }
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return {
    connection: client,
    begin: async () => void (await client.query('BEGIN')),
    run: async (text) => (await client.query<object>(text)).rows,
  };
}

interface SqliteHandle {
  prepare(text: string): { all(...values: never[]): unknown[] };
  exec(text: string): unknown;
  close(): unknown;
}

/** A handle of the library that Everstep uses: `better-sqlite3`, unless it was built for another runtime. */
function openHandle(path: string): SqliteHandle {
  try {
    return new Database(path);
  } catch (error) {
    const builtIn = process.getBuiltinModule('node:sqlite') as unknown as
      { DatabaseSync: new (path: string) => SqliteHandle } | undefined;
    if (!builtIn) throw error;
    return new builtIn.DatabaseSync(path);
  }
}

/** Resolves when the engine knows that somebody elsewhere waits for the workflow. On SQLite it need not know. */
export function interestIn(DBOS: DBOSInstance, workflowID: string): Promise<void> {
  const { listener, database } = engineOf(DBOS).runtime.store;
  if (database.dialect.name === 'sqlite') return Promise.resolve();
  return new Promise((resolve) => {
    listener.subscribe((wakeup) => {
      if (wakeup.kind !== 'message' || wakeup.channel !== topics.interest.channel) return;
      if (topics.interest.decode(wakeup.payload).includes(workflowID)) resolve();
    });
  });
}

/** What a promise is rejected with. */
export function failureOf(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: unknown) => error as Error,
  );
}
