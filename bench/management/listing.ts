// The newest hundred workflows under a filter, in a short and in a long history.
import { silentLogger } from '../../src/kernel/base/log.js';
import { createOptionalIndex } from '../../src/features/listing/indexes.js';
import { listWorkflowPage, listWorkflows, type WorkflowPageInput } from '../../src/features/listing/listing.js';
import type { Operator } from '../../src/operator/operator.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import { migrate } from '../../src/database/migrations/migrate.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import { operatorOn } from '../../test/rig/operators.js';
import type { Databases } from '../engine/databases.js';
import { median, type Measurement, printTable, timed, times } from '../report.js';
import { addHistory, HISTORY_BEGINS_AT, SECOND } from './history.js';

const SHORT = 10_000;
const LONG = 1_000_000;
const ROUNDS = 15;
const PAGE = 100;

type Look = (operator: Operator, count: number) => Promise<unknown>;

const newest =
  (filter: (count: number) => WorkflowPageInput): Look =>
  (operator, count) =>
    listWorkflows(operator, { ...filter(count), sortDesc: true, limit: PAGE });

const at = (n: number): string => new Date(HISTORY_BEGINS_AT + n * SECOND).toISOString();

const archived = (): WorkflowPageInput => ({ workflowName: 'archive' });

const LOOKS: Readonly<Record<string, Look>> = {
  'no filter': newest(() => ({})),
  'status: SUCCESS': newest(() => ({ status: 'SUCCESS' })),
  'status: ERROR, one in a hundred': newest(() => ({ status: 'ERROR' })),
  'status: PENDING': newest(() => ({ status: 'PENDING' })),
  'status: ENQUEUED, few and the oldest': newest(() => ({ status: 'ENQUEUED' })),
  'status: four of them': newest(() => ({ status: ['ENQUEUED', 'DELAYED', 'ERROR', 'CANCELLED'] })),
  queuesOnly: newest(() => ({ queuesOnly: true })),
  'queue, every second': newest(() => ({ queueName: 'mail' })),
  'queue, few and the oldest': newest(() => ({ queueName: 'old' })),
  'queue and status': newest(() => ({ queueName: 'mail', status: 'ERROR' })),
  'startTime and endTime, in the middle': newest((count) => ({
    startTime: at(count / 2),
    endTime: at(count / 2 + 5000),
  })),
  'endTime, long ago': newest((count) => ({ endTime: at(count / 10) })),
  'completedAfter, nearly all': newest(() => ({ completedAfter: at(200) })),
  'completedAfter and completedBefore, in the middle': newest((count) => ({
    completedAfter: at(count / 2),
    completedBefore: at(count / 2 + 1000),
  })),
  'name, every third': newest(() => ({ workflowName: 'checkout' })),
  'workflow_id_prefix, one in a thousand': newest(() => ({ workflow_id_prefix: 'order-17-' })),
  'name, ten and the oldest': newest(archived),
};

export async function benchListing(databases: Databases): Promise<void> {
  await benchDialect(async () => new PostgresDatabase({ url: await databases.postgres() }));
  await benchDialect(() => SqliteDatabase.open({ path: databases.sqlite().slice('sqlite:///'.length) }));
}

interface History {
  readonly count: number;
  readonly operator: Operator;
}

async function benchDialect(open: () => Promise<Database>): Promise<void> {
  const short = await openHistory(open, SHORT);
  const long = await openHistory(open, LONG);
  const lines: Measurement[] = [];
  for (const [label, look] of Object.entries(LOOKS)) lines.push(await compare(label, look, [short, long]));
  for (const { operator } of [short, long]) await createOptionalIndex(operator, 'workflowName');
  lines.push(await compare('the same with an index for names', newest(archived), [short, long]));
  for (const [label, look] of Object.entries(await pages([short, long]))) {
    lines.push(await compare(label, look, [short, long]));
  }
  const { dialect } = long.operator.database;
  printTable(
    `newest ${PAGE} of ${LONG.toLocaleString('en')} workflows on ${dialect.name}, median; against ${SHORT.toLocaleString('en')}, fastest of each`,
    lines,
  );
  for (const { operator } of [short, long]) await operator.database.close();
}

async function openHistory(open: () => Promise<Database>, count: number): Promise<History> {
  const database = await open();
  await migrate(database, { logger: silentLogger });
  await addHistory(database, count);
  // What the server does by itself within a minute.
  if (database.dialect.name === 'postgres') await database.run(sql`ANALYZE ${table('workflow_status')}`);
  return { count, operator: operatorOn(database, { applicationName: 'bench' }) };
}

/** Both histories in turn, so that a moment in which the machine is busy meets both. */
async function compare(label: string, look: Look, [short, long]: readonly [History, History]): Promise<Measurement> {
  const elapsed = { short: [] as number[], long: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    elapsed.short.push(await timed(() => look(short.operator, short.count)));
    elapsed.long.push(await timed(() => look(long.operator, long.count)));
  }
  const fastest = { short: Math.min(...elapsed.short), long: Math.min(...elapsed.long) };
  const ratio = `${times(fastest.long / fastest.short)}: ${fastest.long.toFixed(2)} and ${fastest.short.toFixed(2)} ms`;
  return { label, value: `${median(elapsed.long).toFixed(2)} ms`, ratio };
}

/** A page by cursor, at the beginning and after nine tenths of the workflows; and the same by offset. */
async function pages(histories: readonly History[]): Promise<Readonly<Record<string, Look>>> {
  const input = { sortDesc: true, limit: PAGE } as const;
  const cursors = new Map<number, string | null>();
  for (const { operator, count } of histories) {
    cursors.set(count, (await listWorkflowPage(operator, { ...input, endTime: at(count / 10) })).nextCursor);
  }
  return {
    'first page by cursor': (operator) => listWorkflowPage(operator, input),
    'page after nine tenths by cursor': (operator, count) =>
      listWorkflowPage(operator, { ...input, cursor: cursors.get(count) ?? '' }),
    'page after nine tenths by offset': (operator, count) =>
      listWorkflows(operator, { ...input, offset: Math.floor(count * 0.9) }),
  };
}
