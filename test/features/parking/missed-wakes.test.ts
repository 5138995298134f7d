// What can come for a parked workflow without waking it, and how it is found.
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../../src/database/database.js';
import { parkWorkflows } from '../../../src/features/parking/parking.sql.js';
import { type AwaitedRow, findMissed, listParkedWaits, wakeParked } from '../../../src/features/parking/waits.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

const OWNER = 'incarnation.1';
const FAR = 4_000_000_000_000;
const workflows = table('workflow_status');

async function setup(dialect: TestDialect, awaited: AwaitedRow) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  const other = newWorkflow({ workflowID: 'other', owner: 'incarnation.2' });
  await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: OWNER }), other]));
  const park = () => parkWorkflows(database, [{ workflowID: 'w', owner: OWNER, dueAt: FAR, awaited: [awaited] }]);
  return { url, database, park };
}

async function statusOf(database: Database): Promise<unknown> {
  const [row] = await database.read(sql`SELECT status FROM ${workflows} WHERE workflow_uuid = 'w'`);
  return row?.['status'];
}

async function wakeMissed(database: Database): Promise<number> {
  const missed = await findMissed(database, await listParkedWaits(database, undefined, 100));
  return (await wakeParked(database, missed)).length;
}

const insertMessage = sql`
  INSERT INTO ${table('notifications')} (message_uuid, destination_uuid, topic, message) VALUES ('m', 'w', 't', '1')`;
const insertEvent = sql`
  INSERT INTO ${table('workflow_events')} (workflow_uuid, key, value) VALUES ('other', 'k', '1')`;
const message: AwaitedRow = { kind: 'message', workflowID: 'w', topic: 't' };
const event: AwaitedRow = { kind: 'event', workflowID: 'other', key: 'k' };
const outcome: AwaitedRow = { kind: 'outcome', workflowID: 'other' };

forEachDialect((dialect) => {
  test.each([message, event, outcome])('a wait for which nothing has come is left alone: $kind', async (awaited) => {
    const { database, park } = await setup(dialect, awaited);
    await park();

    expect(await wakeMissed(database)).toBe(0);

    expect(await statusOf(database)).toBe('DELAYED');
    expect(await listParkedWaits(database, undefined, 100)).toHaveLength(1);
  });

  test('waits are listed page by page', async () => {
    const { database } = await setup(dialect, message);
    const ids = ['a', 'b', 'c', 'd', 'e'];
    await database.run(insertWorkflows(ids.map((workflowID) => newWorkflow({ workflowID, owner: OWNER }))));
    const awaited = ids.map((workflowID) => [{ kind: 'event', workflowID: 'other', key: workflowID }] as const);
    await parkWorkflows(
      database,
      ids.map((workflowID, index) => ({ workflowID, owner: OWNER, dueAt: FAR, awaited: awaited[index] ?? [] })),
    );

    const first = await listParkedWaits(database, undefined, 3);
    const rest = await listParkedWaits(database, first.at(-1), 3);

    expect([...first, ...rest].map(({ parkedID }) => parkedID)).toEqual(ids);
  });
});

const cancelOther = sql`UPDATE ${workflows} SET status = 'CANCELLED' WHERE workflow_uuid = 'other'`;
const deleteOther = sql`DELETE FROM ${workflows} WHERE workflow_uuid = 'other'`;

onlyOn('postgres', (dialect) => {
  test.each([
    ['message', message, insertMessage],
    ['event', event, insertEvent],
    ['cancellation', outcome, cancelOther],
    ['deletion', outcome, deleteOther],
  ] as const)('a %s with triggers disabled', async (_, awaited, insert) => {
    const { database, park } = await setup(dialect, awaited);
    await park();
    await database.transaction(async (tx) => {
      await tx.run(sql`SET LOCAL session_replication_role = replica`);
      await tx.run(insert);
    });
    expect(await statusOf(database)).toBe('DELAYED');

    expect(await wakeMissed(database)).toBe(1);

    expect(await statusOf(database)).toBe('ENQUEUED');
    expect(await listParkedWaits(database, undefined, 100)).toEqual([]);
  });

  /** A transaction that sees the database as it was before the workflow is parked. */
  async function sendFromThePast(url: string, park: () => Promise<unknown>, insert: string): Promise<void> {
    const sender = new Client({ connectionString: url });
    await sender.connect();
    onTestFinished(() => sender.end());
    await sender.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await sender.query('SELECT 1 FROM dbos.workflow_status LIMIT 1');
    expect(await park()).toEqual(['parked']);
    await sender.query(insert);
    await sender.query('COMMIT');
  }

  test('an event of a transaction whose snapshot is older than the wait', async () => {
    const { url, database, park } = await setup(dialect, event);
    const insert = `INSERT INTO dbos.workflow_events (workflow_uuid, key, value) VALUES ('other', 'k', '1')`;
    await sendFromThePast(url, park, insert);
    expect(await statusOf(database)).toBe('DELAYED');

    expect(await wakeMissed(database)).toBe(1);

    expect(await statusOf(database)).toBe('ENQUEUED');
  });

  test('the server refuses a message of such a transaction', async () => {
    const { url, park } = await setup(dialect, message);
    const insert = `INSERT INTO dbos.notifications (destination_uuid, topic, message) VALUES ('w', 't', '1')`;

    await expect(sendFromThePast(url, park, insert)).rejects.toMatchObject({ code: '40001' });
  });
});
