import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { getArchivedWorkflow } from '../../../src/features/retention/archive.js';
import type { Archive } from '../../../src/features/retention/archive-target.js';
import { fileArchive } from '../../../src/features/retention/file-archive.js';
import { applyRetention, planRetention } from '../../../src/features/retention/retention-policy.js';
import { s3Archive } from '../../../src/features/retention/s3-archive.js';
import { importWorkflows } from '../../../src/features/transfer/transfer.js';
import type { Operator } from '../../../src/operator/operator.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachForm, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';

const DAY_MS = 86_400_000;
const FAST = { restFactor: 0 };

/** An archive in memory. */
class MemoryArchive implements Archive {
  readonly objects = new Map<string, Uint8Array>();
  writes = 0;

  async write(name: string, content: Uint8Array): Promise<void> {
    this.writes += 1;
    this.objects.set(name, content);
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    return this.objects.get(name);
  }
}

async function setup(dialect: TestDialect, fields: Partial<Operator> = {}) {
  const database = await dialect.create();
  const operator = operatorOn(database, fields);
  /** Workflows that ended some days ago, and were created the given days before. */
  const add = async (endedDaysAgo: number, given: Partial<NewWorkflow> = {}, daysBefore = 1) => {
    const { status = 'SUCCESS', ...rest } = given;
    const workflow = newWorkflow({ status, owner: null, ...rest });
    await database.run(insertWorkflows([workflow]));
    const endedAt = Date.now() - endedDaysAgo * DAY_MS;
    await database.run(sql`
      UPDATE ${table('workflow_status')}
      SET created_at = ${endedAt - daysBefore * DAY_MS}, updated_at = ${endedAt}, completed_at = ${endedAt}
      WHERE workflow_uuid = ${workflow.workflowID}`);
    return workflow.workflowID;
  };
  return { database, operator, add };
}

async function addEvents(database: Database, workflowID: string, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    await database.run(sql`
      INSERT INTO ${table('journal')} (workflow_id, at, event_type)
      SELECT w.workflow_uuid, w.updated_at, 'AttemptLost'
      FROM ${table('workflow_status')} AS w
      WHERE w.workflow_uuid = ${workflowID}`);
  }
}

async function eventsOf(database: Database): Promise<Record<string, number>> {
  const rows = await database.read(sql`
    SELECT j.workflow_id, COUNT(*) AS number FROM ${table('journal')} AS j GROUP BY j.workflow_id`);
  return Object.fromEntries(rows.map((row) => [row['workflow_id'] as string, Number(row['number'])]));
}

async function idsIn(database: Database): Promise<string[]> {
  const rows = await database.read(sql`SELECT w.workflow_uuid FROM ${table('workflow_status')} AS w`);
  return rows.map((row) => row['workflow_uuid'] as string).toSorted();
}

forEachForm((dialect) => {
  describe('retention', () => {
    test('an object that has become large is complete, and the next one begins', async () => {
      const archive = new MemoryArchive();
      const { database, operator } = await setup(dialect, { archive });
      const inputs = JSON.stringify('x'.repeat(100_000));
      const many = Array.from({ length: 120 }, () => newWorkflow({ status: 'SUCCESS', owner: null, inputs }));
      for (let first = 0; first < many.length; first += 20) {
        await database.run(insertWorkflows(many.slice(first, first + 20)));
      }
      await database.run(sql`UPDATE ${table('workflow_status')} SET created_at = 1, updated_at = 2, completed_at = 2`);

      const applied = await applyRetention(operator, { completed: '30 days' }, FAST);

      expect(applied).toEqual({ workflows: 120, archived: 120 });
      expect(archive.objects.size).toBe(2);
      expect(await idsIn(database)).toEqual([]);
      for (const { workflowID } of [many[0], many[119]] as NewWorkflow[]) {
        expect((await getArchivedWorkflow(operator, workflowID))?.workflow_status['inputs']).toBe(inputs);
      }
    });

    test('deletes the stored events of workflows that ended long ago, and keeps why one was cancelled', async () => {
      const { database, operator, add } = await setup(dialect);
      const [old, recent] = [await add(20), await add(2)];
      const cancelled = await add(20, { status: 'PENDING' });
      const active = await add(20, { status: 'ENQUEUED', queueName: 'q' });
      const other = await add(20, { applicationName: 'another' });
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = ${cancelled}`,
      );
      for (const id of [old, cancelled, active, other, recent]) await addEvents(database, id, 3);

      const applied = await applyRetention(operator, { history: '7 days' }, { ...FAST, batchSize: 2 });

      expect(applied).toEqual({ workflows: 0, archived: 0, events: 6 });
      expect(await idsIn(database)).toHaveLength(5);
      expect(await eventsOf(database)).toEqual({ [recent]: 3, [cancelled]: 1, [active]: 3, [other]: 3 });
      expect(await applyRetention(operator, { history: '7 days' }, FAST)).toMatchObject({ events: 0 });
      // The permission to delete has ended with the commit.
      await expect(database.run(sql`DELETE FROM ${table('journal')}`)).rejects.toThrow('append-only');
    });

    test('deletes by the time of completion, and by outcome', async () => {
      const { database, operator, add } = await setup(dialect);
      await add(31);
      await add(91, { status: 'ERROR' });
      await add(91, { status: 'CANCELLED' });
      const kept = [
        // Created long ago, and ended yesterday.
        await add(1, {}, 300),
        await add(31, { status: 'ERROR' }),
        await add(31, { status: 'PENDING' }),
        await add(31, { status: 'ENQUEUED', queueName: 'q' }),
      ];

      const applied = await applyRetention(operator, { completed: '30 days', failed: '90 days' }, FAST);

      expect(applied).toEqual({ workflows: 3, archived: 0 });
      expect(await idsIn(database)).toEqual(kept.toSorted());
    });

    test('keeps what the policy does not name, and has terms of its own for a workflow', async () => {
      const { database, operator, add } = await setup(dialect);
      const audit = await add(400, { name: 'audit' });
      const failed = await add(400, { status: 'ERROR' });
      await add(2, { name: 'ping' });
      const recent = await add(2);

      await applyRetention(operator, { completed: '30d', perWorkflow: { audit: {}, ping: { completed: '1d' } } }, FAST);

      expect(await idsIn(database)).toEqual([audit, failed, recent].toSorted());
    });

    test('leaves children of active workflows, and other applications', async () => {
      const { database, operator, add } = await setup(dialect, { applicationName: 'shop' });
      const parent = await add(100, { status: 'PENDING', applicationName: 'shop' });
      const child = await add(100, { parentWorkflowID: parent, applicationName: 'shop' });
      const other = await add(100, { applicationName: 'other' });
      await add(100, { applicationName: 'shop' });

      await applyRetention(operator, { completed: '1d' }, FAST);

      expect(await idsIn(database)).toEqual([parent, child, other].toSorted());
    });

    test('forgets who deleted workflows long ago', async () => {
      const { database, operator } = await setup(dialect);
      const deletedAt = (days: number): number => Date.now() - days * DAY_MS;
      await database.run(sql`
        INSERT INTO ${table('journal')} (workflow_id, at, event_type, actor)
        VALUES ('old', ${deletedAt(20)}, 'WorkflowDeleted', 'ops'), ('recent', ${deletedAt(2)}, 'WorkflowDeleted', 'ops')`);

      const { events } = await applyRetention(operator, { history: '10 days' }, FAST);

      expect(events).toBe(1);
      const left = await database.read(sql`SELECT j.workflow_id FROM ${table('journal')} AS j`);
      expect(left).toEqual([{ workflow_id: 'recent' }]);
    });

    test('the plan counts stored events, also those of workflows that are kept', async () => {
      const { database, operator, add } = await setup(dialect);
      const [deleted, kept, recent] = [await add(40, { name: 'a' }), await add(20, { name: 'a' }), await add(2)];
      await addEvents(database, deleted, 3);
      await addEvents(database, kept, 2);
      await addEvents(database, recent, 1);

      const plan = await planRetention(operator, { completed: '30 days', history: '10 days' });
      const withoutHistory = await planRetention(operator, { completed: '30 days' });
      const onlyHistory = await planRetention(operator, { history: '10 days' });

      expect(plan).toMatchObject([{ name: 'a', status: 'SUCCESS', workflows: 1, events: 5 }]);
      expect(withoutHistory).toMatchObject([{ name: 'a', workflows: 1, events: 3 }]);
      expect(onlyHistory).toMatchObject([{ name: 'a', workflows: 0, events: 5 }]);
      expect(await eventsOf(database)).toEqual({ [deleted]: 3, [kept]: 2, [recent]: 1 });
    });

    test('is planned without a change', async () => {
      const { database, operator, add } = await setup(dialect);
      await add(40, { name: 'a', inputs: '12345' });
      await add(50, { name: 'a', inputs: '12345' });
      await add(40, { name: 'b', status: 'ERROR', inputs: '1' });
      await add(1);

      const plan = await planRetention(operator, { completed: '30d', failed: '30d' });

      expect(plan).toMatchObject([
        { name: 'a', status: 'SUCCESS', workflows: 2, characters: 10, events: 0 },
        { name: 'b', status: 'ERROR', workflows: 1, characters: 1 },
      ]);
      expect(await idsIn(database)).toHaveLength(4);
    });

    test.each([
      ['no duration', { completed: 'soon' }],
      ['an unknown field', { finished: '1d' }],
      ['a bare duration for a workflow', { perWorkflow: { a: '1d' } }],
    ])('refuses %s', async (_, policy) => {
      const { operator } = await setup(dialect);

      await expect(applyRetention(operator, policy as never)).rejects.toThrow('policy');
    });

    test('needs a policy', async () => {
      const { operator } = await setup(dialect);

      await expect(applyRetention(operator, undefined)).rejects.toThrow('No retention is configured');
    });
  });

  describe('an archive', () => {
    test('gets what is deleted, and gives it back', async () => {
      const archive = new MemoryArchive();
      const { database, operator, add } = await setup(dialect, { archive });
      const ids = [await add(40, { inputs: '{"json":[1]}' }), await add(40), await add(40)];

      const applied = await applyRetention(operator, { completed: '30d' }, { ...FAST, batchSize: 2 });
      const archived = await getArchivedWorkflow(operator, ids[0] ?? '');

      expect(applied).toEqual({ workflows: 3, archived: 3 });
      expect(archive.objects.size).toBe(2);
      expect([...archive.objects.keys()][0]).toMatch(/^workflows\/\d{4}\/\d\d\/\d\d\/[\da-f]{32}\.ndjson\.gz$/);
      expect(archived?.workflow_status).toMatchObject({ workflow_uuid: ids[0], status: 'SUCCESS' });
      expect(await idsIn(database)).toEqual([]);

      await importWorkflows(operator, archived ? [archived] : []);

      expect(await idsIn(database)).toEqual([ids[0]]);
      expect(await getArchivedWorkflow(operator, 'unknown')).toBeUndefined();
    });

    test('gives back the latest copy of a workflow that was archived again', async () => {
      const archive = new MemoryArchive();
      const { database, operator, add } = await setup(dialect, { archive });
      const id = await add(40);
      await applyRetention(operator, { completed: '30 days' }, FAST);
      const first = await getArchivedWorkflow(operator, id);
      await importWorkflows(operator, first ? [first] : []);
      // With partitions, the row is then in another one.
      await database.run(sql`UPDATE ${table('archived_workflows')} SET archived_at = archived_at + ${300 * DAY_MS}`);
      await database.run(sql`UPDATE ${table('workflow_status')} SET executor_id = 'later'`);

      await applyRetention(operator, { completed: '30 days' }, FAST);

      expect((await getArchivedWorkflow(operator, id))?.workflow_status).toMatchObject({ executor_id: 'later' });
      expect(archive.objects.size).toBe(2);
      const notes = await database.read(sql`SELECT a.workflow_uuid FROM ${table('archived_workflows')} AS a`);
      expect(notes).toHaveLength(1);
    });

    const broken: readonly (readonly [string, (archive: MemoryArchive) => Archive, RegExp])[] = [
      [
        'is down',
        () => ({
          write: () => Promise.reject(new Error('connect ECONNREFUSED')),
          read: () => Promise.resolve(undefined),
        }),
        /could not write .*ECONNREFUSED/,
      ],
      [
        'is full halfway',
        (memory) => ({
          write: async (name, content) => {
            await memory.write(name, content.subarray(0, content.length / 2));
            throw new Error('ENOSPC');
          },
          read: (name) => memory.read(name),
        }),
        /could not write .*ENOSPC/,
      ],
      [
        'keeps nothing',
        () => ({ write: () => Promise.resolve(), read: () => Promise.resolve(undefined) }),
        /something else/,
      ],
      [
        'damages what it keeps',
        (memory) => ({
          write: (name, content) => memory.write(name, content.subarray(0, content.length / 2)),
          read: (name) => memory.read(name),
        }),
        /damaged/,
      ],
    ];

    test.each(broken)('that %s makes retention delete nothing', async (_, make, message) => {
      const archive = make(new MemoryArchive());
      const { database, operator, add } = await setup(dialect, { archive });
      const id = await add(40);

      await expect(applyRetention(operator, { completed: '30d' }, FAST)).rejects.toThrow(message);

      expect(await idsIn(database)).toEqual([id]);
    });

    test('has the same object if retention stopped before it deleted, and begins again', async () => {
      const memory = new MemoryArchive();
      let isKilled = true;
      const archive: Archive = {
        write: (name, content) => memory.write(name, content),
        read: (name) => (isKilled ? Promise.reject(new Error('killed')) : memory.read(name)),
      };
      const { database, operator, add } = await setup(dialect, { archive });
      const id = await add(40);

      await expect(applyRetention(operator, { completed: '30d' }, FAST)).rejects.toThrow('killed');
      isKilled = false;
      await applyRetention(operator, { completed: '30d' }, FAST);

      expect([memory.writes, memory.objects.size]).toEqual([2, 1]);
      expect(await idsIn(database)).toEqual([]);
      expect(await getArchivedWorkflow(operator, id)).toBeDefined();
    });

    test('holds each workflow that is noted, whatever another process has archived meanwhile', async () => {
      const memory = new MemoryArchive();
      let other: Promise<unknown> | undefined;
      const archive: Archive = {
        async write(name, content) {
          // While the first object of this process is written, the other one archives and deletes all there is: what this
          // object holds as well, and what this process has listed and not read yet.
          other ??= applyRetention(operatorOn(database, { archive: memory }), { completed: '30d' }, FAST);
          await other;
          await memory.write(name, content);
        },
        read: (name) => memory.read(name),
      };
      const { database, operator } = await setup(dialect, { archive });
      const large = newWorkflow({ status: 'SUCCESS', owner: null, inputs: JSON.stringify('x'.repeat(8_000_000)) });
      const rest = Array.from({ length: 150 }, () => newWorkflow({ status: 'SUCCESS', owner: null }));
      await database.run(insertWorkflows([large, ...rest]));
      await database.run(sql`UPDATE ${table('workflow_status')} SET created_at = 2, updated_at = 3, completed_at = 3`);
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET created_at = 1 WHERE workflow_uuid = ${large.workflowID}`,
      );

      const applied = await applyRetention(operator, { completed: '30 days' }, FAST);

      expect(await other).toEqual({ workflows: 151, archived: 151 });
      expect(applied).toEqual({ workflows: 0, archived: 0 });
      for (const { workflowID } of [large, ...rest]) {
        const { workflow_status: status } = (await getArchivedWorkflow(operator, workflowID)) ?? {};
        expect(status?.workflow_uuid).toBe(workflowID);
      }
    });

    test('holds each workflow that is noted when several processes archive at once', async () => {
      const archive = new MemoryArchive();
      const { database, operator } = await setup(dialect, { archive });
      const all = Array.from({ length: 400 }, () => newWorkflow({ status: 'SUCCESS', owner: null }));
      await database.run(insertWorkflows(all));
      await database.run(sql`UPDATE ${table('workflow_status')} SET created_at = 1, updated_at = 2, completed_at = 2`);
      // Each in a piece of its own, so that the processes meet in the middle of them.
      const passes = [20, 30, 50].map((batchSize) =>
        applyRetention(operator, { completed: '30 days' }, { ...FAST, batchSize }),
      );

      const applied = await Promise.all(passes);

      expect(applied.reduce((sum, { archived }) => sum + archived, 0)).toBe(400);
      for (const { workflowID } of all) expect(await getArchivedWorkflow(operator, workflowID)).toBeDefined();
    });

    test('does not lose a workflow that is resumed while it is archived', async () => {
      const memory = new MemoryArchive();
      let resume = async (): Promise<unknown> => undefined;
      const archive: Archive = {
        async write(name, content) {
          await memory.write(name, content);
          await resume();
        },
        read: (name) => memory.read(name),
      };
      const { database, operator, add } = await setup(dialect, { archive });
      const resumed = await add(40, { status: 'CANCELLED' });
      // It has even ended again meanwhile.
      const rerun = await add(40, { status: 'CANCELLED' });
      const deleted = await add(40, { status: 'CANCELLED' });
      resume = () =>
        database.commit([
          sql`UPDATE ${table('workflow_status')} SET status = 'ENQUEUED' WHERE workflow_uuid = ${resumed}`,
          sql`UPDATE ${table('workflow_status')} SET updated_at = ${Date.now()} WHERE workflow_uuid = ${rerun}`,
        ]);

      const applied = await applyRetention(operator, { failed: '30d' }, FAST);

      expect(applied.workflows).toBe(1);
      expect(await idsIn(database)).toEqual([resumed, rerun].toSorted());
      expect(await getArchivedWorkflow(operator, resumed)).toBeUndefined();
      expect(await getArchivedWorkflow(operator, deleted)).toBeDefined();
    });

    test('is needed to read what is archived', async () => {
      const archive = new MemoryArchive();
      const { database, operator, add } = await setup(dialect, { archive });
      const id = await add(40);
      await applyRetention(operator, { completed: '30d' }, FAST);

      await expect(getArchivedWorkflow(operatorOn(database), id)).rejects.toThrow('No archive is configured');
      const other = operatorOn(database, { archive: new MemoryArchive() });
      await expect(getArchivedWorkflow(other, id)).rejects.toThrow('does not hold');
    });
  });
});

describe('kinds of archives', () => {
  test('a folder keeps objects under their names', async () => {
    const archive = fileArchive(join(mkdtempSync(join(inject('folder'), 'archive-')), 'new'));

    await archive.write('a/b/c.gz', Buffer.from('one'));
    await archive.write('a/b/c.gz', Buffer.from('two'));

    expect(Buffer.from((await archive.read('a/b/c.gz')) ?? []).toString()).toBe('two');
    expect(await archive.read('a/b/d.gz')).toBeUndefined();
    expect(() => fileArchive('')).toThrow('folder');
  });

  test('a bucket keeps objects under a prefix', async () => {
    const objects = new Map<string, Uint8Array>();
    const client = {
      putObject: async ({ Bucket, Key, Body }: { Bucket: string; Key: string; Body: Uint8Array }) =>
        void objects.set(`${Bucket}:${Key}`, Body),
      getObject: async ({ Bucket, Key }: { Bucket: string; Key: string }) => {
        const content = objects.get(`${Bucket}:${Key}`);
        if (!content) throw Object.assign(new Error('The specified key does not exist.'), { name: 'NoSuchKey' });
        return { Body: { transformToByteArray: async () => content } };
      },
    };
    const archive = s3Archive(client, 'backups', { prefix: 'everstep/' });

    await archive.write('a.gz', Buffer.from('one'));

    expect([...objects.keys()]).toEqual(['backups:everstep/a.gz']);
    expect(Buffer.from((await archive.read('a.gz')) ?? []).toString()).toBe('one');
    expect(await archive.read('b.gz')).toBeUndefined();
    expect(() => s3Archive({} as never, 'backups')).toThrow('client');
  });
});
