// The group writer against one commit a checkpoint, and against a multi-row INSERT written by hand.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/kernel/base/clock.js';
import { silentLogger } from '../src/kernel/base/log.js';
import type { StepRecord } from '../src/kernel/workflow/records.js';
import { lock, rows, type Sql, sql, table } from '../src/kernel/sql/sql.js';
import { stepColumns } from '../src/database/columns.js';
import type { Database } from '../src/database/database.js';
import { migrate } from '../src/database/migrations/migrate.js';
import { PostgresDatabase } from '../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../src/database/sqlite/sqlite-database.js';
import { insertWorkflows } from '../src/run/rows/workflows.js';
import { Writer } from '../src/run/writer/writer.js';
import { startPostgres } from '../test/rig/postgres-server.js';
import { newWorkflow, step as stepRecord } from '../test/rig/records.js';
import { type Measurement, median, perSecond, printTable, timed, times } from './report.js';

const WRITERS = 100;
const ROUNDS = 5;
const BLOCK = 50;

export async function benchStore(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-bench-'));
  const server = await startPostgres({ shared_buffers: '512MB', max_wal_size: '4GB' });
  try {
    const postgres = new PostgresDatabase({ url: server.url });
    await benchDialect(postgres, { total: 20_000, single: 1500 });
    await postgres.close();
    const sqlite = await SqliteDatabase.open({ path: join(folder, 'bench.sqlite') });
    await benchDialect(sqlite, { total: 20_000, single: 1500 });
    await sqlite.close();
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Size {
  readonly total: number;
  readonly single: number;
}

async function benchDialect(database: Database, size: Size): Promise<void> {
  await migrate(database, { logger: silentLogger });
  const throughput = {
    alone: [] as number[],
    transaction: [] as number[],
    group: [] as number[],
    hand: [] as number[],
  };
  const latency = { plain: [] as number[], writer: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    // One commit each is slow; a tenth of the work is enough to know its rate.
    throughput.alone.push((await commitEach(database, size.total / 10)) * 10);
    throughput.transaction.push((await commitEachInTransaction(database, size.total / 10)) * 10);
    throughput.group.push(await commitInGroups(database, size.total));
    throughput.hand.push(await insertByHand(database, size.total));
    await measureLatency(database, size.single / ROUNDS, latency);
  }
  const alone = median(throughput.alone);
  const transaction = median(throughput.transaction);
  const group = median(throughput.group);
  const hand = median(throughput.hand);
  const plainMs = median(latency.plain);
  const writerMs = median(latency.writer);
  const lines: Measurement[] = [
    { label: 'one commit each, a lone INSERT', value: perSecond(size.total, alone) },
    { label: 'one commit each, owner checked in a transaction', value: perSecond(size.total, transaction) },
    {
      label: 'group writer',
      value: perSecond(size.total, group),
      ratio: `${times(alone / group)} and ${times(transaction / group)}`,
    },
    {
      label: 'multi-row INSERT by hand',
      value: perSecond(size.total, hand),
      ratio: `group writer: ${Math.round((hand / group) * 100)} % of it`,
    },
    { label: 'one writer, plain prepared INSERT', value: `${plainMs.toFixed(3)} ms` },
    {
      label: 'one writer, group writer',
      value: `${writerMs.toFixed(3)} ms`,
      ratio: `${((writerMs / plainMs - 1) * 100).toFixed(1)} % more`,
    },
  ];
  printTable(`store on ${database.dialect.name}: ${WRITERS} writers of checkpoints, ${ROUNDS} rounds, medians`, lines);
}

/** A step's record as a run writes it: each has its own time. */
function step(workflowID: string, stepID: number): StepRecord {
  const now = Date.now();
  return stepRecord(workflowID, stepID, { startedAt: now, completedAt: now });
}

/** Workflows to write checkpoints for, one a writer. */
async function createWorkflows(database: Database, count: number) {
  const workflows = Array.from({ length: count }, () => newWorkflow());
  await database.run(insertWorkflows(workflows));
  return workflows;
}

/** Each writer awaits each of its checkpoints, as a run does. */
function inParallel(count: number, write: (writer: number, stepID: number) => Promise<unknown>): Promise<number> {
  return timed(() =>
    Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let stepID = 0; stepID < count / WRITERS; stepID += 1) await write(writer, stepID);
      }),
    ),
  );
}

function plainInsert(steps: StepRecord[]): Sql {
  return sql`
    INSERT INTO ${table('operation_outputs')} (${stepColumns.names})
    SELECT ${stepColumns.pass('r')}
    FROM ${rows(
      'r',
      stepColumns.columns,
      steps.map((record) => stepColumns.toValues(record)),
    )}`;
}

/** `INSERT … VALUES ($1, …)`, as one would write it by hand for one row. */
function plainInsertOne(record: StepRecord): Sql {
  const [a, b, c, d, e, f, g, h, i, j] = stepColumns.toValues(record);
  return sql`
    INSERT INTO ${table('operation_outputs')} (${stepColumns.names})
    VALUES (${a}, ${b}, ${c}, ${d}, ${e}, ${f}, ${g}, ${h}, ${i}, ${j})`;
}

async function commitEach(database: Database, count: number): Promise<number> {
  const workflows = await createWorkflows(database, WRITERS);
  return inParallel(count, (writer, stepID) =>
    database.run(plainInsertOne(step(workflows[writer]!.workflowID, stepID))),
  );
}

/** What a checkpoint takes without the group writer: look whether the workflow is still ours, insert, commit. */
async function commitEachInTransaction(database: Database, count: number): Promise<number> {
  const workflows = await createWorkflows(database, WRITERS);
  return inParallel(count, (writer, stepID) =>
    database.transaction(async (tx) => {
      const { workflowID } = workflows[writer]!;
      await tx.run(sql`
        SELECT w.owner_xid
        FROM ${table('workflow_status')} AS w
        WHERE w.workflow_uuid = ${workflowID}
        ${lock('share', 'w')}`);
      await tx.run(plainInsertOne(step(workflowID, stepID)));
    }),
  );
}

async function commitInGroups(database: Database, count: number): Promise<number> {
  const workflows = await createWorkflows(database, WRITERS);
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
  return inParallel(count, (index, stepID) => {
    const workflow = workflows[index]!;
    return writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, stepID) });
  });
}

/** The same batch sizes in a loop, with neither guard nor verdicts. */
async function insertByHand(database: Database, count: number): Promise<number> {
  const workflows = await createWorkflows(database, WRITERS);
  return timed(async () => {
    for (let stepID = 0; stepID < count / WRITERS; stepID += 1) {
      await database.run(plainInsert(workflows.map((workflow) => step(workflow.workflowID, stepID))));
    }
  });
}

async function measureLatency(
  database: Database,
  count: number,
  latency: { plain: number[]; writer: number[] },
): Promise<void> {
  const [plain, grouped] = await createWorkflows(database, 2);
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
  // Taken in turns, so that both meet the same moments of a busy machine, and in blocks, because a lone writer writes
  // one checkpoint after the other.
  for (let stepID = 0; stepID < count; stepID += BLOCK) {
    for (let index = 0; index < BLOCK; index += 1) {
      const record = step(plain!.workflowID, stepID + index);
      latency.plain.push(await timed(() => database.run(plainInsertOne(record))));
    }
    for (let index = 0; index < BLOCK; index += 1) {
      const checkpoint = { owner: grouped!.creator, step: step(grouped!.workflowID, stepID + index) };
      latency.writer.push(await timed(() => writer.checkpoint(checkpoint)));
    }
  }
}
