// `everstep migrate --adopt` on rows as DBOS leaves them. test/compat/switching.test.ts has real processes.
import { expect, test } from 'vitest';
import type { WorkflowRecord } from '../../../src/kernel/workflow/records.js';
import type { Database } from '../../../src/database/database.js';
import { insertIncarnation } from '../../../src/features/liveness/executors.sql.js';
import { parkWorkflows } from '../../../src/features/parking/parking.sql.js';
import { hasParkedWaits, listParkedWaits } from '../../../src/features/parking/waits.sql.js';
import { findWorkflows, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { call } from '../../faces/cli/terminals.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

const IDS = ['running', 'other', 'queued', 'ours', 'ours-queued', 'latest'];
const RANDOM = '5f0c1d5e-2b1c-4c63-9f0e-0c9d5b1a7e11';

async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  const rows = [
    { workflowID: 'running', owner: RANDOM, executorID: 'local', applicationVersion: 'old' },
    { workflowID: 'other', owner: RANDOM, executorID: 'vm-2', applicationVersion: 'old' },
    { workflowID: 'queued', status: 'ENQUEUED', owner: null, queueName: 'q', applicationVersion: 'old' },
    { workflowID: 'ours', owner: 'live.1', executorID: 'ex', applicationVersion: 'v1' },
    { workflowID: 'ours-queued', status: 'ENQUEUED', owner: null, queueName: 'q', applicationVersion: 'v1' },
    { workflowID: 'latest', status: 'ENQUEUED', owner: null, queueName: 'q', applicationVersion: null },
  ] as const;
  for (const row of rows) await database.run(insertWorkflows([newWorkflow(row)]));
  const engine = {
    executorID: 'ex',
    applicationName: 'test',
    applicationVersion: 'v1',
    host: 'h',
    pid: 1,
    metadata: null,
  };
  await insertIncarnation(database, { incarnationID: 'live', ...engine }, { leaseMs: 60_000 });
  return { url, database };
}

/** Parked by Everstep: for an old version, and for that of an engine that is alive. And one that is delayed and has not begun. */
async function addParked(database: Database): Promise<void> {
  const rows = [
    { workflowID: 'parked', owner: 'dead.1', executorID: 'ex-2', applicationVersion: 'old' },
    { workflowID: 'parked-here', owner: 'live.2', executorID: 'ex', applicationVersion: 'v1' },
    { workflowID: 'delayed', status: 'DELAYED', delayMs: 1e12, owner: null, queueName: 'q', applicationVersion: 'old' },
  ] as const;
  for (const row of rows) await database.run(insertWorkflows([newWorkflow(row)]));
  const parks = rows.slice(0, 2).map(({ workflowID, owner }) => ({
    ...{ workflowID, owner: String(owner), dueAt: 4e12 },
    awaited: [{ kind: 'message', workflowID, topic: 't' } as const],
  }));
  expect(await parkWorkflows(database, parks)).toEqual(['parked', 'parked']);
}

async function rowsOf(database: Database): Promise<WorkflowRecord[]> {
  const rows = await findWorkflows(database, IDS);
  return rows.sort((a, b) => IDS.indexOf(a.workflowID) - IDS.indexOf(b.workflowID));
}

forEachDialect((dialect) => {
  test('without --gone, what is in flight is shown and nothing is changed', async () => {
    const { url, database } = await setup(dialect);
    const before = await rowsOf(database);

    const { json, exitCode } = await call(['migrate', '--adopt', '--json', '-s', url]);

    expect(exitCode).toBe(0);
    expect(json<{ adoption: object }>().adoption).toMatchObject({
      isDryRun: true,
      adopted: 0,
      groups: expect.arrayContaining([
        expect.objectContaining({ executorID: 'local', applicationVersion: 'old', running: 1 }),
        expect.objectContaining({ executorID: 'vm-2', applicationVersion: 'old', running: 1 }),
      ]),
    });
    expect(await rowsOf(database)).toEqual(before);
    const text = await call(['migrate', '--adopt', '-s', url]);
    expect(text.out).toMatch(/local.*old[^]*run it again with --gone/);
  });

  test('with --gone it goes back on its queues for the latest version, once', async () => {
    const { url, database } = await setup(dialect);

    const first = await call(['migrate', '--adopt', '--gone', '--json', '-s', url]);
    const second = await call(['migrate', '--adopt', '--gone', '--json', '-s', url]);

    expect(first.json<{ adoption: object }>().adoption).toMatchObject({ isDryRun: false, adopted: 3 });
    expect(second.json<{ adoption: object }>().adoption).toMatchObject({ groups: [], adopted: 0 });
    const rows = new Map((await rowsOf(database)).map((row) => [row.workflowID, row]));
    const taken = { status: 'ENQUEUED', applicationVersion: null, owner: null };
    expect(rows.get('running')).toMatchObject({ ...taken, queueName: '_dbos_internal_queue' });
    expect(rows.get('other')).toMatchObject(taken);
    expect(rows.get('queued')).toMatchObject({ ...taken, queueName: 'q' });
    expect(rows.get('ours')).toMatchObject({ status: 'PENDING', owner: 'live.1', applicationVersion: 'v1' });
    expect(rows.get('ours-queued')).toMatchObject({ applicationVersion: 'v1' });
  });

  test('executors and versions can be picked, and the version that is to run them', async () => {
    const { url, database } = await setup(dialect);

    await call(['migrate', '--adopt', '--gone', '--executor', 'vm-2', '--to-version', 'v1', '-s', url]);

    const rows = new Map((await rowsOf(database)).map((row) => [row.workflowID, row]));
    expect(rows.get('other')).toMatchObject({ status: 'ENQUEUED', applicationVersion: 'v1' });
    expect(rows.get('running')).toMatchObject({ status: 'PENDING', applicationVersion: 'old' });
  });

  test('parked workflows of a version that is gone are enqueued, not left without an owner', async () => {
    const { url, database } = await setup(dialect);
    await addParked(database);

    const { json } = await call(['migrate', '--adopt', '--gone', '--json', '-s', url]);

    expect(json<{ adoption: { groups: object[] } }>().adoption.groups).toContainEqual(
      expect.objectContaining({ executorID: 'ex-2', running: 1, waiting: 0 }),
    );
    const found = await findWorkflows(database, ['parked', 'parked-here', 'delayed']);
    const rows = new Map(found.map((row) => [row.workflowID, row]));
    const enqueued = { status: 'ENQUEUED', owner: null, delayUntil: null, applicationVersion: null };
    expect(rows.get('parked')).toMatchObject({ ...enqueued, queueName: '_dbos_internal_queue' });
    expect(rows.get('parked-here')).toMatchObject({ status: 'DELAYED', owner: 'live.2', applicationVersion: 'v1' });
    expect(rows.get('delayed')).toMatchObject({ status: 'DELAYED', applicationVersion: null, queueName: 'q' });
    expect((await listParkedWaits(database, undefined, 10)).map(({ parkedID }) => parkedID)).toEqual(['parked-here']);
  });

  test('parked workflows are left to DBOS as those that run', async () => {
    const { url, database } = await setup(dialect);
    await addParked(database);

    await call(['migrate', '--release', '--gone', '--to-version', 'dbos', '-s', url]);

    const found = await findWorkflows(database, ['ours', 'parked', 'parked-here']);
    const released = { status: 'ENQUEUED', owner: null, delayUntil: null, applicationVersion: 'dbos' };
    expect(found).toMatchObject([released, released, released]);
    expect(await hasParkedWaits(database)).toBe(false);
  });

  test.each([
    ['--gone', /belong to --adopt or --release/],
    ['--adopt --release', /not both/],
    ['--release', /needs --to-version/],
  ])('%s alone is refused', async (options, message) => {
    const { exitCode, err } = await call(['migrate', ...options.split(' '), '-s', 'sqlite:///nowhere.sqlite']);

    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
  });
});
