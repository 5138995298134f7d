// The dashboard on a long history: how long until the list is there, how long each route takes, and how many statements
// the database gets while one person looks. BENCH_ROWS=100000 for a quick look.
import { setTimeout as pause } from 'node:timers/promises';
import { createAdmin } from '../src/faces/http/admin.js';
import { internals } from '../src/kernel/base/internals.js';
import { silentLogger } from '../src/kernel/base/log.js';
import { DBOSClient } from '../src/faces/client/client.js';
import { createDBOS } from '../src/faces/library/dbos.js';
import { sql, table } from '../src/kernel/sql/sql.js';
import { measureRoutes } from './dashboard/routes.js';
import { measureVisit } from './dashboard/visit.js';
import { openDatabases } from './engine/databases.js';
import { addHistory, SECOND } from './management/history.js';
import { printTable } from './report.js';

const ROWS = Number(process.env['BENCH_ROWS'] ?? 1_000_000);

export async function benchDashboard(): Promise<void> {
  const databases = await openDatabases();
  try {
    for (const url of [await databases.postgres(), databases.sqlite()]) await measure(url);
  } finally {
    await databases.close();
  }
}

async function measure(url: string): Promise<void> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
  const work = DBOS.registerWorkflow(async () => DBOS.runStep(async () => 1, { name: 'step' }), { name: 'work' });
  await DBOS.launch();
  await DBOS.registerQueue('mail', { globalConcurrency: 10 });
  const endsAt = Date.now();
  const { database: filled } = DBOS[internals].operator;
  await addHistory(filled, ROWS, { beginsAt: endsAt - ROWS * SECOND });
  // What the server does by itself within a minute.
  if (filled.dialect.name === 'postgres') await filled.run(sql`ANALYZE ${table('workflow_status')}`);
  // A client has no statements of its own, so all that are counted are for the dashboard.
  const client = await DBOSClient.create({ systemDatabaseUrl: url });
  const admin = createAdmin({ source: client, isOpen: true });
  const { database } = client[internals].operator;
  const size = `${ROWS.toLocaleString('en')} workflows on ${database.dialect.name}`;
  try {
    printTable(`routes of the dashboard: ${size}, median`, await measureRoutes(admin, { rows: ROWS, endsAt }));
    const load = async (signal: AbortSignal): Promise<void> => {
      while (!signal.aborted) {
        await work();
        await pause(100);
      }
    };
    printTable(`a person with a browser: ${size}`, await measureVisit({ admin, database, load }));
  } finally {
    await client.destroy();
    await DBOS.shutdown();
  }
}
