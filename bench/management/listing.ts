// The newest hundred workflows under a filter, in a short and in a long history. Nothing is analysed by hand.
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { Codec } from '../../src/codec/codec.js';
import { listWorkflowPage, listWorkflows, type WorkflowPageInput } from '../../src/control/listing.js';
import type { Operator } from '../../src/control/operator.js';
import type { Database } from '../../src/store/database.js';
import { migrate } from '../../src/store/migrations/migrate.js';
import { PostgresDatabase } from '../../src/store/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/store/sqlite/sqlite-database.js';
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
  'name, ten and the oldest': newest(() => ({ workflowName: 'archive' })),
};

export async function benchListing(databases: Databases): Promise<void> {
  const only = process.env['DIALECT'];
  if (only !== 'sqlite') await benchDialect(async () => new PostgresDatabase({ url: await databases.postgres() }));
  if (only !== 'postgres')
    await benchDialect(() => SqliteDatabase.open({ path: databases.sqlite().slice('sqlite:///'.length) }));
}

async function benchDialect(open: () => Promise<Database>): Promise<void> {
  const histories: Measured[] = [];
  let dialect = '';
  for (const count of [SHORT, LONG]) {
    const database = await open();
    dialect = database.dialect.name;
    await migrate(database, { logger: silentLogger });
    await addHistory(database, count);
    histories.push(await measure(database, count));
    await database.close();
  }
  const [short, long] = histories;
  const lines: Measurement[] = Object.keys(long ?? {}).map((label) => ({
    label,
    value: `${(long?.[label] ?? NaN).toFixed(2)} ms`,
    ratio: `${times((long?.[label] ?? NaN) / (short?.[label] ?? NaN))} of ${(short?.[label] ?? NaN).toFixed(2)} ms`,
  }));
  printTable(
    `newest ${PAGE} of ${LONG.toLocaleString('en')} workflows on ${dialect}, against ${SHORT.toLocaleString('en')}`,
    lines,
  );
}

type Measured = Record<string, number>;

async function measure(database: Database, count: number): Promise<Measured> {
  const operator = operatorOn(database, { applicationName: 'bench', codec: new Codec(), clock: systemClock });
  const measured: Measured = {};
  for (const [label, look] of Object.entries(LOOKS)) measured[label] = await medianOf(() => look(operator, count));
  Object.assign(measured, await measurePages(operator, count));
  return measured;
}

/** A page by cursor, at the beginning and after nine tenths of the workflows; and the same by offset. */
async function measurePages(operator: Operator, count: number): Promise<Measured> {
  const input = { sortDesc: true, limit: PAGE } as const;
  const { nextCursor } = await listWorkflowPage(operator, { ...input, endTime: at(count / 10) });
  return {
    'first page by cursor': await medianOf(() => listWorkflowPage(operator, input)),
    'page after nine tenths by cursor': await medianOf(() =>
      listWorkflowPage(operator, { ...input, cursor: nextCursor ?? '' }),
    ),
    'page after nine tenths by offset': await medianOf(() =>
      listWorkflows(operator, { ...input, offset: Math.floor(count * 0.9) }),
    ),
  };
}

async function medianOf(body: () => Promise<unknown>): Promise<number> {
  const elapsed: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) elapsed.push(await timed(body));
  return median(elapsed);
}
