import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import pg from 'pg';
import type { RetentionOptions } from '../../../src/plugins/outbox/retention/options.js';
import { monthsBefore, periodsFrom, uncovered } from '../../../src/database/partitions/periods.js';
import { wantsDialect } from '../../rig/dialects.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, setOutbox } from './scene.js';

afterAll(dropDatabase);

const DAY = 86_400_000;

/** Adds a dead letter that failed some days ago, and gives its ID. */
async function bury({ query, scene }: OutboxScene, daysAgo: number): Promise<number> {
  const isPostgres = scene.adapter.dialect === 'postgres';
  const at = Date.now() - daysAgo * DAY;
  const time = isPostgres ? `to_timestamp(${at} / 1000.0)` : String(at);
  const payload = isPostgres ? `'1'::bytea` : `CAST('1' AS BLOB)`;
  const [row] = await query(
    `INSERT INTO outbox_dlq (original_id, queue, payload, deliveries_count, created_at, failed_at, failure_reason)
     VALUES (1, 'mail', ${payload}, 1, ${time}, ${time}, 'rejected') RETURNING id`,
  );
  return Number(row?.['id']);
}

async function idsOf({ query }: OutboxScene): Promise<number[]> {
  return (await query('SELECT id FROM outbox_dlq ORDER BY id')).map(({ id }) => Number(id));
}

describe('periods', () => {
  test('go over the end of a year, and are named after their month or day', () => {
    const months = periodsFrom(Date.UTC(2026, 10, 16), 'month', 3);
    const days = periodsFrom(Date.UTC(2028, 1, 28, 23), 'day', 2);

    expect(months.map(({ suffix }) => suffix)).toEqual(['2026_11', '2026_12', '2027_01', '2027_02']);
    expect(months.slice(1).map(({ fromMs }) => fromMs)).toEqual(months.slice(0, -1).map(({ toMs }) => toMs));
    expect(days.map(({ suffix }) => suffix)).toEqual(['2028_02_28', '2028_02_29', '2028_03_01']);
    expect(new Date(monthsBefore(Date.UTC(2026, 2, 31, 12), 13)).toISOString()).toBe('2025-02-28T12:00:00.000Z');
  });

  test('are cut by what exists', () => {
    const range = (fromMs: number, toMs: number) => ({ fromMs, toMs });

    expect(uncovered(range(0, 10), [])).toEqual([range(0, 10)]);
    expect(uncovered(range(0, 10), [range(-5, 2), range(4, 6)])).toEqual([range(2, 4), range(6, 10)]);
    expect(uncovered(range(0, 10), [range(-Infinity, 20)])).toEqual([]);
  });
});

describe.each(DIALECTS)('retention on %s', (dialect, name) => {
  test('deletes in batches what is too old, after it was archived', async () => {
    const scene = await setOutbox(name);
    for (const daysAgo of [100, 95, 91]) await bury(scene, daysAgo);
    const kept = await bury(scene, 89);
    const archived: string[] = [];
    const retention = scene.outbox.retention({
      keep: '90d',
      archive: (letters) => void archived.push(...letters.map(({ id }) => id)),
    });

    const plan = await retention.plan();
    const before = await idsOf(scene);
    const report = await retention.run();

    expect(plan).toMatchObject({ mode: 'batches', delete: 3, create: [], drop: [] });
    expect(before).toHaveLength(4);
    expect(report).toMatchObject({ deleted: 3, skipped: false });
    expect(archived).toHaveLength(3);
    expect(await idsOf(scene)).toEqual([kept]);
    expect(await retention.run()).toMatchObject({ deleted: 0 });
  });

  test('keeps what the archive does not take', async () => {
    const scene = await setOutbox(name);
    await bury(scene, 100);
    const retention = scene.outbox.retention({
      keep: '90d',
      archive: () => {
        throw new Error('The archive is full.');
      },
    });

    await expect(retention.run()).rejects.toThrow('The archive is full.');

    expect(await idsOf(scene)).toHaveLength(1);
  });

  test('forgets expired keys of once', async () => {
    const scene = await setOutbox(name);
    const publish = (timerId: string, once: number) =>
      scene.source.runTransaction(() => scene.outbox.publish('mail', 1, { timerId, dedupe: { once } }), {
        name: 'publish',
      });
    await publish('short', 1);
    await publish('long', 3_600_000);
    const retention = scene.outbox.retention({ keep: '90d' });
    await until('a key has expired', async () => (await retention.plan()).expiredKeys === 1);

    expect(await retention.run()).toMatchObject({ expiredKeys: 1 });

    expect(await scene.query('SELECT "key" FROM outbox_state')).toEqual([{ key: 'long' }]);
  });

  test('runs as a scheduled workflow', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    await bury(scene, 100);
    scene.outbox.retention({ keep: '90d', schedule: '* * * * * *' });

    await scene.DBOS.launch();

    await until('the dead letter is deleted', async () => (await idsOf(scene)).length === 0);
    const workflows = await scene.DBOS.listWorkflows({});
    expect(workflows[0]?.workflowName).toBe('everstep.outbox.retention.app.outbox');
  });

  test('refuses options that make no sense', async () => {
    const { outbox } = await setOutbox(name);
    const refused = (options: object) => () => outbox.retention(options as RetentionOptions);

    expect(refused({})).toThrow('keep');
    expect(refused({ keep: 'a year' })).toThrow('90d');
    expect(refused({ keep: '1d', ahead: 0 })).toThrow('ahead');
    if (dialect === 'sqlite') await expect(outbox.retention({ keep: '1d' }).convert()).rejects.toThrow('no partitions');
  });
});

describe.runIf(wantsDialect('postgres'))('partitions', () => {
  const setup = (name: 'node-postgres' | 'prisma' = 'node-postgres') => setOutbox(name);
  const partitionsOf = async ({ query }: OutboxScene) =>
    (
      await query(`SELECT c.relname::text AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'outbox_dlq'::regclass ORDER BY 1`)
    ).map(({ name }) => String(name));
  const monthName = (offset: number) => {
    const now = new Date();
    const at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset));
    return `outbox_dlq_${at.toISOString().slice(0, 7).replace('-', '_')}`;
  };
  const daysSinceMiddleOf = (offset: number) => {
    const now = new Date();
    return (now.getTime() - Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 15)) / DAY;
  };
  const addPartition = ({ query }: OutboxScene, offset: number) => {
    const now = new Date();
    const at = (months: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months)).toISOString();
    return query(
      `CREATE TABLE ${monthName(offset)} PARTITION OF outbox_dlq FOR VALUES FROM ('${at(offset)}') TO ('${at(offset + 1)}')`,
    );
  };

  test('take the place of the plain table: rows, IDs, indexes and rights stay', async () => {
    const scene = await setup();
    const old = await bury(scene, 500);
    const kept = [await bury(scene, 100), await bury(scene, 0)];
    await scene.query('CREATE INDEX own_idx ON outbox_dlq (failure_reason)');
    await scene.query(`DO $$ BEGIN CREATE ROLE outbox_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
    await scene.query('GRANT SELECT, INSERT ON outbox_dlq TO outbox_reader');
    const archived: string[] = [];
    const retention = scene.outbox.retention({
      keep: '12 months',
      ahead: 2,
      archive: (letters) => void archived.push(...letters.map(({ id }) => id)),
    });

    const result = await retention.convert();
    const again = await retention.convert();
    const next = await bury(scene, 0);

    expect(result).toEqual({ converted: true, moved: 2, deleted: 1 });
    expect(again).toEqual({ converted: false, moved: 0, deleted: 0 });
    expect(archived).toEqual([String(old)]);
    expect(await idsOf(scene)).toEqual([...kept, next]);
    expect(next).toBe((kept[1] ?? 0) + 1);
    expect(await partitionsOf(scene)).toEqual(expect.arrayContaining([monthName(0), monthName(1), monthName(2)]));
    expect(
      await scene.query(`SELECT to_regclass('outbox_dlq_old') AS old, to_regclass('own_idx')::text AS own`),
    ).toEqual([{ old: null, own: 'own_idx' }]);
    const [rights] = await scene.query(`SELECT has_table_privilege('outbox_reader', 'outbox_dlq', 'INSERT') AS may`);
    expect(rights).toEqual({ may: true });
    expect(await scene.outbox.checkSchema()).toEqual({ ok: true, findings: [] });
    expect((await scene.outbox.dlq.requeue({ all: true })).requeued).toBe(3);
  });

  test('a conversion that was interrupted goes on', async () => {
    const scene = await setup();
    await bury(scene, 500);
    const kept = await bury(scene, 10);
    const failing = scene.outbox.retention({
      keep: '12 months',
      archive: () => {
        throw new Error('interrupted');
      },
    });
    await expect(failing.convert()).rejects.toThrow('interrupted');
    const next = await bury(scene, 0);

    const result = await scene.outbox.retention({ keep: '12 months' }).convert();

    expect(result).toEqual({ converted: false, moved: 1, deleted: 1 });
    expect(await idsOf(scene)).toEqual([kept, next]);
  });

  test('are created ahead, and all that are too old are dropped, after months without a run', async () => {
    const scene = await setup();
    await scene.outbox.retention({ keep: '12 months', ahead: 1 }).convert();
    for (const name of [monthName(0), monthName(1)]) await scene.query(`DROP TABLE ${name}`);
    for (const offset of [-18, -17, -16, -14, -13, -12, -6]) await addPartition(scene, offset);
    await bury(scene, 16 * 31);
    const archived: string[] = [];
    const retention = scene.outbox.retention({
      keep: '12 months',
      ahead: 3,
      archive: (letters) => void archived.push(...letters.map(({ id }) => id)),
    });

    const plan = await retention.plan();
    expect((await scene.outbox.checkSchema()).ok).toBe(false);
    const report = await retention.run();

    const expired = [-18, -17, -16, -14, -13].map(monthName);
    expect(plan.drop.map((one) => one.name)).toEqual(expired);
    expect(plan.create.map((one) => one.name)).toEqual([0, 1, 2, 3].map(monthName));
    expect(report).toMatchObject({ dropped: expired, created: [0, 1, 2, 3].map(monthName), skipped: false });
    expect(archived).toHaveLength(1);
    expect(await partitionsOf(scene)).toEqual([-12, -6, 0, 1, 2, 3].map(monthName));
    expect(await scene.query(`SELECT to_regclass('${monthName(-18)}') AS gone`)).toEqual([{ gone: null }]);
    expect((await scene.outbox.checkSchema()).findings).toEqual([]);
    expect(await retention.run()).toMatchObject({ dropped: [], created: [] });
  });

  test('get the rows that a default partition has caught', async () => {
    const scene = await setup();
    await scene.outbox.retention({ keep: '12 months', ahead: 1 }).convert();
    await scene.query(`DROP TABLE ${monthName(0)}`);
    await scene.query('CREATE TABLE outbox_dlq_default PARTITION OF outbox_dlq DEFAULT');
    const kept = [await bury(scene, 45), await bury(scene, 0)];
    await bury(scene, 500);
    await addPartition(scene, -14);

    const report = await scene.outbox.retention({ keep: '12 months', ahead: 1 }).run();

    expect(report).toMatchObject({ moved: 2, deleted: 1, dropped: [monthName(-14)] });
    expect(await idsOf(scene)).toEqual(kept);
    expect(await scene.query('SELECT COUNT(*)::int AS count FROM outbox_dlq_default')).toEqual([{ count: 0 }]);
  });

  test('fill the gaps between partitions of another time zone', async () => {
    const scene = await setup();
    await scene.outbox.retention({ keep: '12 months', ahead: 1 }).convert();
    for (const name of [monthName(0), monthName(1)]) await scene.query(`DROP TABLE ${name}`);
    const now = new Date();
    const shifted = (months: number) =>
      new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months) - 3_600_000).toISOString();
    await scene.query(
      `CREATE TABLE ${monthName(0)} PARTITION OF outbox_dlq FOR VALUES FROM ('${shifted(0)}') TO ('${shifted(1)}')`,
    );

    const { created } = await scene.outbox.retention({ keep: '12 months', ahead: 1 }).run();

    expect(created).toEqual([`${monthName(0)}_2`, monthName(1)]);
  });

  test('that were being detached or dropped when a process died are finished', async () => {
    const scene = await setup();
    const retention = scene.outbox.retention({ keep: '12 months', ahead: 1 });
    await retention.convert();
    await addPartition(scene, -15);
    await addPartition(scene, -16);
    // A reader from before the detach holds it up until it is cancelled.
    const reader = new pg.Client(scene.scene.url);
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query('BEGIN; SELECT COUNT(*) FROM outbox_dlq');
    const hasty = new pg.Client({ connectionString: scene.scene.url, statement_timeout: 300 });
    await hasty.connect();
    onTestFinished(() => hasty.end());
    await expect(hasty.query(`ALTER TABLE outbox_dlq DETACH PARTITION ${monthName(-15)} CONCURRENTLY`)).rejects.toThrow(
      'timeout',
    );
    await reader.query('ROLLBACK');
    await scene.query(`CREATE TABLE leftover (id INT)`);
    await scene.query(`COMMENT ON TABLE leftover IS 'everstep: expired partition of "public"."outbox_dlq"'`);

    const report = await retention.run();

    expect(report.dropped.toSorted()).toEqual([monthName(-16), monthName(-15)].toSorted());
    expect(await scene.query(`SELECT to_regclass('leftover') AS a, to_regclass('${monthName(-15)}') AS b`)).toEqual([
      { a: null, b: null },
    ]);
  });

  test('stay as tables if they are to be detached only', async () => {
    const scene = await setup();
    const retention = scene.outbox.retention({ keep: '12 months', ahead: 1, drop: 'detach' });
    await retention.convert();
    await addPartition(scene, -15);
    await bury(scene, daysSinceMiddleOf(-15));

    await retention.run();

    expect(await scene.query(`SELECT to_regclass('${monthName(-15)}') IS NOT NULL AS there`)).toEqual([
      { there: true },
    ]);
    expect(await partitionsOf(scene)).not.toContain(monthName(-15));
  });

  test('one process at a time changes them', async () => {
    const scene = await setup();
    const retention = scene.outbox.retention({ keep: '12 months', ahead: 1 });
    await retention.convert();
    const other = new pg.Client(scene.scene.url);
    await other.connect();
    onTestFinished(() => other.end());
    await other.query(`SELECT pg_advisory_lock(hashtextextended('everstep.outbox.retention."outbox_dlq"', 0))`);

    expect(await retention.run()).toMatchObject({ skipped: true });
    await expect(retention.convert()).rejects.toThrow('Another process');
  });

  test('work through a client that offers transactions only', async () => {
    const scene = await setOutbox('node-postgres', { listen: false });
    const retention = scene.outbox.retention({ keep: '12 months', ahead: 1 });

    const result = await retention.convert();
    await addPartition(scene, -15);

    expect(result.converted).toBe(true);
    expect(await retention.run()).toMatchObject({ dropped: [monthName(-15)] });
  });
});
