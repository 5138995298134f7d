// What a claim takes while the table grows. Everstep only: the statements of its store, on tables made by hand.
import { locateDatabase } from '../../src/kernel/base/url.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { UNLIMITED } from '../../src/features/queue/queue.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { type Claim, claimPartitions, claimWorkflows } from '../../src/features/queue/claims.sql.js';
import type { Database } from '../../src/database/database.js';
import { migrate } from '../../src/database/migrations/migrate.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import { findWaitingPartitions } from '../../src/features/queue/waiting-work.sql.js';
import { finishIfOwned } from '../../src/run/rows/workflows.js';
import type { Databases } from '../engine/databases.js';
import { type Measurement, median, printTable, times } from '../report.js';
import {
  APPLICATION,
  fillLargeTable,
  fillTable,
  FUNCTION,
  PARTITIONED,
  PARTITIONS,
  PLAIN,
  VERSION,
} from './claim-rows.js';
import { milliseconds } from './figures.js';
import { attempt } from './processes.js';

const CLAIMS = 50;
const ROWS = 10;
const CONCURRENCY = 20;
const SCANNED = 64;
/** A kind that is slow is measured less often. */
const KIND_MAX_MS = 3000;
const SMALL = { completed: 0, waiting: 1000 } as const;
const LARGE = { completed: 1_000_000, waiting: 100_000 } as const;

const KINDS = ['unlimited', 'limited', 'partitioned', 'scan'] as const;
type Kind = (typeof KINDS)[number];
/** Medians in milliseconds. */
type Claims = Readonly<Record<Kind, number>>;

const LABELS: Readonly<Record<Kind, string>> = {
  unlimited: `${ROWS} rows, no limit`,
  limited: `${ROWS} rows, concurrency ${CONCURRENCY}`,
  partitioned: `${ROWS} rows of ${ROWS} out of ${PARTITIONS.toLocaleString('en')} partitions`,
  scan: `finding ${SCANNED} partitions with work`,
};

export async function printClaims(databases: Databases): Promise<void> {
  await printDialect('Postgres', () => databases.postgres());
  await printDialect('SQLite', async () => databases.sqlite());
}

async function printDialect(name: string, newURL: () => Promise<string>): Promise<void> {
  const found = await attempt(`claims on ${name}: making a table of 1,200,000 rows, which takes a while`, async () =>
    measureBoth({ small: await newURL(), large: await newURL() }, name),
  );
  if (!found) return;
  const { raw, analysed } = found;
  const lines = KINDS.flatMap((kind): Measurement[] => [
    { label: `${LABELS[kind]}: small table`, value: milliseconds(raw.small[kind]) },
    {
      label: `${LABELS[kind]}: large table, never analysed`,
      value: milliseconds(raw.large[kind]),
      ratio: `${times(raw.large[kind] / raw.small[kind])} the small table`,
    },
    {
      label: `${LABELS[kind]}: large table, analysed`,
      value: milliseconds(analysed.large[kind]),
      ratio:
        `${times(analysed.large[kind] / analysed.small[kind])} the small table, ` +
        `analysed as well: ${milliseconds(analysed.small[kind])}`,
    },
  ]);
  printTable(
    `time of a claim on ${name}, median of ${CLAIMS}: small table with 1,000 waiting, ` +
      'large one with 1,000,000 completed and 100,000 waiting',
    lines,
  );
}

type TableName = 'small' | 'large';
const TABLES = { small: SMALL, large: LARGE } as const;

/** Both tables in turns, so that both meet the same moments of a busy machine. */
async function measureBoth(urls: Readonly<Record<TableName, string>>, name: string) {
  const databases: Record<TableName, Database> = { small: await open(urls.small), large: await open(urls.large) };
  const forEach = async (body: (table: TableName, database: Database) => Promise<void>): Promise<void> => {
    for (const table of ['small', 'large'] as const) await body(table, databases[table]);
  };
  const reopenBoth = () =>
    forEach(async (table, database) => {
      databases[table] = await reopen(database, urls[table]);
    });
  try {
    await forEach(async (table, database) => {
      await prepare(database);
      await fillLargeTable(database, { from: 0, ...TABLES[table] });
    });
    await reopenBoth();
    console.error(`· ${Math.round(process.uptime())} s: claims on ${name}`);
    const raw = await measureClaims(databases);
    await forEach(async (table, database) => {
      const { completed, waiting } = TABLES[table];
      await fillTable(database, { from: completed + 2 * waiting, ...SMALL });
      await database.run(ANALYZE);
    });
    await reopenBoth();
    return { raw, analysed: await measureClaims(databases) };
  } finally {
    await forEach((_, database) => database.close());
  }
}

const ANALYZE = sql`ANALYZE ${table('workflow_status')}`;

async function prepare(database: Database): Promise<void> {
  await migrate(database, { logger: silentLogger });
  if (database.dialect.name === 'sqlite') return;
  // Or the server would analyse the table at a moment of its own.
  await database.run(sql`ALTER TABLE ${table('workflow_status')} SET (autovacuum_enabled = false)`);
}

async function open(url: string): Promise<Database> {
  const location = locateDatabase(url);
  return location?.kind === 'sqlite' ? SqliteDatabase.open({ path: location.path }) : new PostgresDatabase({ url });
}

/** What was written shall not be moved while claims are measured. SQLite reads its statistics when it opens a file. */
async function reopen(database: Database, url: string): Promise<Database> {
  const isPostgres = database.dialect.name === 'postgres';
  await database.run(isPostgres ? sql`CHECKPOINT` : sql`PRAGMA wal_checkpoint(TRUNCATE)`);
  await database.close();
  return open(url);
}

async function measureClaims(databases: Readonly<Record<TableName, Database>>): Promise<Record<TableName, Claims>> {
  const [small, large] = [new ClaimTimes(databases.small), new ClaimTimes(databases.large)];
  for (let round = 0; round < CLAIMS; round += 1) {
    await small.measure(round);
    await large.measure(round);
  }
  return { small: small.medians, large: large.medians };
}

/** Claims from one table and notes how long each takes. */
class ClaimTimes {
  readonly #database: Database;
  readonly #measured: Record<Kind, number[]> = { unlimited: [], limited: [], partitioned: [], scan: [] };

  constructor(database: Database) {
    this.#database = database;
  }

  get medians(): Claims {
    const { unlimited, limited, partitioned, scan } = this.#measured;
    return {
      unlimited: median(unlimited),
      limited: median(limited),
      partitioned: median(partitioned),
      scan: median(scan),
    };
  }

  async measure(round: number): Promise<void> {
    const database = this.#database;
    const limits = { ...UNLIMITED, concurrency: CONCURRENCY };
    await this.#claim('unlimited', async (owner) => [
      await claimWorkflows(database, { ...TERMS, owner, queueName: PLAIN, limit: ROWS }),
    ]);
    await this.#claim('limited', async (owner) => [
      await claimWorkflows(database, { ...TERMS, owner, queueName: PLAIN, limit: ROWS, limits }),
    ]);
    const partitions = Array.from({ length: ROWS }, (_, index) => ({ key: `p${round * ROWS + index}`, limit: 1 }));
    await this.#claim('partitioned', (owner) =>
      claimPartitions(database, { ...TERMS, owner, queueName: PARTITIONED, partitionLimits: limits, partitions }),
    );
    const scan = { queueName: PARTITIONED, after: `p${round}`, limit: SCANNED };
    await this.#time('scan', () => findWaitingPartitions(database, scan));
  }

  async #claim(kind: Kind, claim: (owner: string) => Promise<readonly Claim[]>): Promise<void> {
    const owner = `bench.${crypto.randomUUID()}`;
    const claims = await this.#time(kind, () => claim(owner));
    if (!claims) return;
    const taken = claims.flatMap(({ claimed }) => claimed).map(({ workflow }) => workflow.workflowID);
    if (taken.length !== ROWS) throw new Error(`${taken.length} rows were claimed instead of ${ROWS}`);
    // As a run does. The slots are free for the next claim.
    const outcome = { owner, status: 'SUCCESS', output: '1', error: null } as const;
    await this.#database.run(finishIfOwned(taken.map((workflowID) => ({ workflowID, ...outcome }))));
  }

  async #time<Result>(kind: Kind, body: () => Promise<Result>): Promise<Result | undefined> {
    const measured = this.#measured[kind];
    if (measured.reduce((sum, value) => sum + value, 0) > KIND_MAX_MS) return undefined;
    const startedAt = performance.now();
    const result = await body();
    measured.push(performance.now() - startedAt);
    return result;
  }
}

const TERMS = {
  executorID: 'local',
  applicationVersion: VERSION,
  applicationName: APPLICATION,
  functions: [`.${FUNCTION}`],
} as const;
