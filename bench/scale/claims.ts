// Claims of 300 workflows from the head of a backlog.
import { silentLogger } from '../../src/kernel/base/log.js';
import { type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import { migrate } from '../../src/database/migrations/migrate.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { claimWorkflows } from '../../src/features/queue/claims.sql.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import type { Databases } from '../engine/databases.js';
import { median, printTable, timed } from '../report.js';

const BACKLOG = 100_000;
const CLAIMS = 12;
const LIMIT = 300;

const BACKLOGS = {
  'of 10,000, one a millisecond': { count: 10_000, at: sql`g.n`, version: sql`'v1'` },
  'of 100,000, one a millisecond': { count: BACKLOG, at: sql`g.n`, version: sql`'v1'` },
  'of 100,000 within one millisecond': { count: BACKLOG, at: sql`1`, version: sql`'v1'` },
  'behind 100,000 of another version': {
    count: BACKLOG + CLAIMS * LIMIT,
    at: sql`g.n`,
    version: sql`CASE WHEN g.n > ${BACKLOG} THEN 'v1' ELSE 'v0' END`,
  },
} as const;

export async function printClaims(databases: Databases): Promise<void> {
  for (const dialect of ['postgres', 'sqlite'] as const) {
    const lines = [];
    for (const [label, backlog] of Object.entries(BACKLOGS)) {
      const database = await open(databases, dialect);
      await fill(database, backlog);
      const ms: number[] = [];
      for (let n = 0; n < CLAIMS; n += 1) ms.push(await timed(() => claim(database, n)));
      lines.push({ label, value: `${median(ms).toFixed(1)} ms` });
      await database.close();
    }
    printTable(`Claim of ${LIMIT} from a backlog, ${dialect}`, lines);
  }
}

async function open(databases: Databases, dialect: 'postgres' | 'sqlite'): Promise<Database> {
  const database =
    dialect === 'postgres'
      ? new PostgresDatabase({ url: await databases.postgres() })
      : await SqliteDatabase.open({ path: databases.sqlite().replace('sqlite:///', '') });
  await migrate(database, { logger: silentLogger });
  return database;
}

async function fill(
  database: Database,
  { count, at, version }: { readonly count: number; readonly at: Sql; readonly version: Sql },
): Promise<void> {
  const numbers =
    database.dialect.name === 'postgres'
      ? sql`generate_series(1, CAST(${count} AS INTEGER)) AS g(n)`
      : sql`(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ${count}) SELECT n FROM g) AS g`;
  await database.run(sql`
    INSERT INTO ${table('workflow_status')}
      (workflow_uuid, status, name, queue_name, application_version, application_name, priority, created_at, updated_at)
    SELECT 'w' || g.n, 'ENQUEUED', 'work', 'q', ${version}, 'bench', 0, ${at}, 1
    FROM ${numbers}`);
}

async function claim(database: Database, number: number): Promise<void> {
  const { claimed } = await claimWorkflows(database, {
    queueName: 'q',
    limit: LIMIT,
    owner: `bench.${number}`,
    executorID: 'bench',
    applicationVersion: 'v1',
    applicationName: 'bench',
    functions: ['.work'],
  });
  if (claimed.length !== LIMIT) throw new Error(`A claim got ${claimed.length} of ${LIMIT} workflows.`);
}
