// The history of workflows: what each level costs, and how fast histories are read.
//
//   BENCH_ROWS=1000000  rows of the journal for the last figure (10 million by default)
//   BENCH_ROUNDS=40     of each level: more make differences of a few percent visible (8 by default)
import pg from 'pg';
import { silentLogger } from '../src/kernel/base/log.js';
import { createDBOS } from '../src/faces/library/dbos.js';
import { HISTORY_LEVELS, type HistoryLevel } from '../src/features/history/event.js';
import { ident, sql, table } from '../src/kernel/sql/sql.js';
import { tailJournal } from '../src/features/history/history.sql.js';
import { PostgresDatabase } from '../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../src/database/sqlite/sqlite-database.js';
import { type Databases, openDatabases } from './engine/databases.js';
import { ServerCounter } from './engine/statements.js';
import { median, perSecond, printTable, timed } from './report.js';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 8);
const WORKFLOWS = 1000;
const AT_ONCE = 50;
const STEPS = 3;
const COUNTED = 200;
const LONG_STEPS = 1000;
const ROWS = Number(process.env['BENCH_ROWS'] ?? 10_000_000);

export async function benchHistory(): Promise<void> {
  const databases = await openDatabases();
  // For work on one figure: BENCH_ONLY=timeline
  const only = process.env['BENCH_ONLY']?.split(',');
  try {
    for (const [name, bench] of Object.entries(FIGURES)) {
      if (only === undefined || only.includes(name)) await bench(databases);
    }
  } finally {
    await databases.close();
  }
}

const FIGURES: Readonly<Record<string, (databases: Databases) => Promise<void>>> = {
  postgres: (databases) => benchLevels('Postgres', () => databases.postgres()),
  sqlite: (databases) => benchLevels('SQLite', async () => databases.sqlite()),
  statements: benchStatements,
  timeline: benchTimeline,
  recent: benchRecent,
};

const NO_TRIGGERS = 'without the triggers';

/** What there was before there was a history. */
async function dropTriggers(url: string): Promise<void> {
  if (url.startsWith('sqlite')) {
    const database = await SqliteDatabase.open({ path: url.replace('sqlite:///', '') });
    for (const name of TRIGGERS) await database.run(sql`DROP TRIGGER ${ident(name)}`);
    await database.close();
    return;
  }
  const database = new PostgresDatabase({ url });
  for (const name of TRIGGERS) await database.run(sql`DROP TRIGGER ${ident(name)} ON ${table('workflow_status')}`);
  await database.close();
}

const TRIGGERS = ['everstep_workflow_journaled', 'everstep_fork_journaled'];

/** A launched engine with a workflow of `steps` small steps. */
async function launch(url: string, history: HistoryLevel) {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logger: silentLogger, history });
  const step = DBOS.registerStep(async (number: number) => `result ${number}`, { name: 'step' });
  const workflow = DBOS.registerWorkflow(
    async (steps: number) => {
      for (let number = 0; number < steps; number += 1) await step(number);
    },
    { name: 'workflow' },
  );
  await DBOS.launch();
  return { DBOS, workflow };
}

async function runMany(workflow: (steps: number) => Promise<void>, count: number): Promise<void> {
  let left = count;
  const serve = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await workflow(STEPS);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, serve));
}

async function benchLevels(name: string, newURL: () => Promise<string>): Promise<void> {
  const engines = [];
  for (const level of [...HISTORY_LEVELS, undefined]) {
    const url = await newURL();
    engines.push({ label: level ?? NO_TRIGGERS, times: [] as number[], ...(await launch(url, level ?? 'off')) });
    if (level === undefined) await dropTriggers(url);
  }
  // In turn and in changing order, so that all have the same share of what else the machine does. The first round warms up.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const turn = round % engines.length;
    for (const { workflow, times } of [...engines.slice(turn), ...engines.slice(0, turn)]) {
      const ms = await timed(() => runMany(workflow, WORKFLOWS));
      if (round > 0) times.push(ms);
    }
  }
  for (const { DBOS } of engines) await DBOS.shutdown();
  const base = median(engines.at(-1)?.times ?? []);
  printTable(
    `Workflows of ${STEPS} steps on ${name}, ${AT_ONCE} at once`,
    engines.map(({ label, times }) => {
      const ms = median(times);
      return { label, value: perSecond(WORKFLOWS, ms), ratio: `${((base / ms) * 100).toFixed(1)} %` };
    }),
  );
}

async function benchStatements(databases: Databases): Promise<void> {
  const lines = [];
  for (const level of HISTORY_LEVELS) {
    const url = await databases.postgres({ isCounted: true });
    const { DBOS, workflow } = await launch(url, level);
    const counter = await ServerCounter.connect(url);
    const before = await counter.statements();
    for (let count = 0; count < COUNTED; count += 1) await workflow(STEPS);
    const statements = (await counter.statements()) - before;
    await counter.close();
    await DBOS.shutdown();
    lines.push({ label: level, value: (statements / COUNTED).toFixed(2) });
  }
  printTable(`Statements per workflow of ${STEPS} steps, one after another`, lines);
}

/** What it takes when nothing else runs. */
function best(times: readonly number[]): string {
  return `at best ${Math.min(...times).toFixed(1)} ms`;
}

async function benchTimeline(databases: Databases): Promise<void> {
  const lines = [];
  for (const level of ['changes', 'full'] as const) {
    for (const [name, url] of [
      ['Postgres', await databases.postgres()],
      ['SQLite', databases.sqlite()],
    ] as const) {
      const { DBOS, workflow } = await launch(url, level);
      await (await DBOS.startWorkflow(workflow, { workflowID: 'long' })(LONG_STEPS)).getResult();
      const read = async (): Promise<void> => {
        for await (const event of DBOS.getHistory('long')) void event;
      };
      await read();
      const times = [];
      for (let round = 0; round < 20; round += 1) times.push(await timed(read));
      await DBOS.shutdown();
      lines.push({ label: `${name}, ${level}`, value: `${median(times).toFixed(1)} ms`, ratio: best(times) });
    }
  }
  printTable(`History of a workflow of ${LONG_STEPS} steps`, lines);
}

async function vacuum(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('VACUUM ANALYZE dbos.journal');
  await client.end();
}

async function benchRecent(databases: Databases): Promise<void> {
  const url = await databases.postgres();
  const { DBOS } = await launch(url, 'changes');
  await DBOS.shutdown();
  const database = new PostgresDatabase({ url });
  await database.run(sql`
    INSERT INTO ${table('workflow_status')} (workflow_uuid, status, name, created_at, updated_at)
    SELECT 'w' || n, 'SUCCESS', 'workflow', 0, 0 FROM generate_series(0, 999) AS n`);
  // 100 rows a second, up to now.
  await database.run(sql`
    INSERT INTO ${table('journal')} (workflow_id, at, event_type, details)
    SELECT 'w' || (n % 1000), FLOOR(EXTRACT(EPOCH FROM now()) * 1000)::BIGINT - (${ROWS}::BIGINT - n) * 10, 'ActivityCompleted',
      '{"activity_name":"step"}'
    FROM generate_series(1::BIGINT, ${ROWS}::BIGINT) AS n`);
  // Autovacuum does this, also for the block-range index on the time.
  await vacuum(url);
  const [row] = await database.read(sql`SELECT MAX(j.at) AS last FROM ${table('journal')} AS j`);
  const since = Number(row?.['last']) - 30_000;
  const times = [];
  let found = 0;
  for (let round = 0; round < 20; round += 1) {
    times.push(
      await timed(async () => {
        found = (await tailJournal(database, { after: { since }, limit: 10_000 })).length;
      }),
    );
  }
  await database.close();
  printTable(`The last 30 seconds of ${ROWS.toLocaleString('en')} rows`, [
    { label: `${found} rows`, value: `${median(times).toFixed(1)} ms`, ratio: best(times) },
  ]);
}
