// A database, a journal and a gate of one's own for each crash.
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { rmSync, writeFileSync } from 'node:fs';
import { newID } from '../../src/kernel/base/ids.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import type { DBOSConfig } from '../../src/run/config/config.js';
import { createDBOS, type DBOSInstance, type TestSettings } from '../../src/faces/library/dbos.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import type { TestDialect } from '../rig/dialects.js';
import { readTables, type Tables } from './invariants.js';
import { Journal } from './journal.js';
import { until, type Worker } from './processes.js';
import { registerWorkflows, type Workflow, type WorkflowName, type WorkflowSettings } from './workflows.js';

export interface Scene {
  readonly url: string;
  readonly journalPath: string;
  readonly journal: Journal;
  /** Held workflows of those that are given this path wait until it is opened. */
  readonly gate: string;
  openGate(): void;
  closeGate(): void;
  withDatabase<T>(body: (database: Database) => Promise<T>): Promise<T>;
  tables(): Promise<Tables>;
}

export async function setScene(dialect: TestDialect, givenURL?: string): Promise<Scene> {
  const url = givenURL ?? (await dialect.createURL());
  const base = join(inject('folder'), newID());
  const journalPath = `${base}.journal`;
  const gate = `${base}.gate`;
  onTestFinished(() => {
    for (const path of [journalPath, gate]) rmSync(path, { force: true });
  });
  const withDatabase = async <T>(body: (database: Database) => Promise<T>): Promise<T> => {
    const database = await dialect.open(url, { poolSize: 1 });
    try {
      return await body(database);
    } finally {
      await database.close();
    }
  };
  return {
    url,
    journalPath,
    journal: new Journal(journalPath),
    gate,
    openGate: () => writeFileSync(gate, ''),
    closeGate: () => rmSync(gate, { force: true }),
    withDatabase,
    tables: () => withDatabase(readTables),
  };
}

export interface LocalEngine {
  readonly DBOS: DBOSInstance;
  readonly workflows: Record<WorkflowName, Workflow>;
}

/** An engine in the test's own process, launched, with the same workflows and the same version as the workers. */
export async function launchHere(
  scene: Pick<Scene, 'url' | 'journal'>,
  config: Partial<DBOSConfig> = {},
  settings: Partial<WorkflowSettings> = {},
  testSettings?: TestSettings,
): Promise<LocalEngine> {
  const DBOS = createDBOS(testSettings);
  const workflows = registerWorkflows(DBOS, { journal: scene.journal, ...settings });
  DBOS.setConfig({
    name: 'crash',
    applicationVersion: 'v1',
    systemDatabaseUrl: scene.url,
    logger: silentLogger,
    ...config,
  });
  onTestFinished(() => DBOS.shutdown());
  await DBOS.launch();
  return { DBOS, workflows };
}

export function idsOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** Stops the process, but not while it holds the lock of the file: no other could write then. */
export async function freeze(scene: Scene, worker: Worker): Promise<void> {
  await until('the process is stopped outside of a transaction', async () => {
    worker.signal('SIGSTOP');
    const isWritable = await scene.withDatabase((database) =>
      database.run(sql`DELETE FROM ${table('executors')} WHERE incarnation_id = ''`).then(
        () => true,
        () => false,
      ),
    );
    if (!isWritable) worker.signal('SIGCONT');
    return isWritable;
  });
}
