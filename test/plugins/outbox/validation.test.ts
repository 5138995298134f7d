import { createStatements } from '../../../src/plugins/outbox/schema/ddl.js';
import { afterAll, describe, expect, test } from 'vitest';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import { makeDlqTable, makeOutboxTable } from '../../../src/plugins/outbox/schema/tables.js';
import { wantsDialect } from '../../rig/dialects.js';
import { dropDatabase, setScene } from '../transaction/scene.js';
import { DIALECTS, setOutbox, sourceOf } from './scene.js';

afterAll(dropDatabase);

/** What drifts, and the finding. `fixSql` must clear it. */
const POSTGRES_DRIFT: readonly [string, string, string][] = [
  ['DROP TABLE outbox_dlq', 'missing_table', '"outbox_dlq"'],
  ['ALTER TABLE outbox DROP COLUMN ordering_key', 'missing_column', '"outbox".ordering_key'],
  ['ALTER TABLE outbox DROP COLUMN message_id', 'missing_column', '"outbox".message_id'],
  ['ALTER TABLE outbox ALTER COLUMN queue TYPE text', 'wrong_type', '"outbox".queue'],
  ['ALTER TABLE outbox ALTER COLUMN attempts_count TYPE integer', 'wrong_type', '"outbox".attempts_count'],
  ['ALTER TABLE outbox ALTER COLUMN payload DROP NOT NULL', 'wrong_nullability', '"outbox".payload'],
  ['ALTER TABLE outbox ALTER COLUMN timer_id SET NOT NULL', 'wrong_nullability', '"outbox".timer_id'],
  ['ALTER TABLE outbox ALTER COLUMN next_attempt_at DROP DEFAULT', 'wrong_default', '"outbox".next_attempt_at'],
  ['ALTER TABLE outbox ALTER COLUMN attempts_count SET DEFAULT 1', 'wrong_default', '"outbox".attempts_count'],
  ['ALTER TABLE outbox ADD COLUMN extra text NOT NULL', 'foreign_column', '"outbox".extra'],
  ['ALTER TABLE outbox DROP CONSTRAINT outbox_pkey', 'wrong_primary_key', '"outbox"'],
  ['DROP INDEX outbox_pending_idx', 'missing_index', 'outbox_pending_idx'],
  [
    'DROP INDEX outbox_pending_idx; CREATE INDEX outbox_pending_idx ON outbox (queue, next_attempt_at)',
    'wrong_index',
    'outbox_pending_idx',
  ],
  [
    'DROP INDEX outbox_lease_idx; CREATE INDEX outbox_lease_idx ON outbox (queue, acquired_at) WHERE acquired_token IS NULL',
    'wrong_index',
    'outbox_lease_idx',
  ],
  [
    'DROP INDEX outbox_timer_id_uq; CREATE INDEX outbox_timer_id_uq ON outbox (queue, timer_id) WHERE timer_id IS NOT NULL',
    'wrong_index',
    'outbox_timer_id_uq',
  ],
  [
    'DROP INDEX outbox_dlq_queue_failed_idx; CREATE INDEX outbox_dlq_queue_failed_idx ON outbox_dlq (failed_at, queue)',
    'wrong_index',
    'outbox_dlq_queue_failed_idx',
  ],
  [
    `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_lease_idx'::regclass`,
    'invalid_index',
    'outbox_lease_idx',
  ],
  ['ALTER TABLE outbox DROP CONSTRAINT outbox_lease_ck', 'missing_check', '"outbox".outbox_lease_ck'],
  [
    'ALTER TABLE outbox DROP CONSTRAINT outbox_lease_ck; ALTER TABLE outbox ADD CONSTRAINT outbox_lease_ck CHECK (acquired_token IS NULL)',
    'missing_check',
    '"outbox".outbox_lease_ck',
  ],
];

/** The table with another text, and without its indexes. */
function rewritten(from: string, to: string): string {
  const [statement = ''] = createStatements(makeOutboxTable(), 'sqlite');
  return `DROP TABLE outbox; ${statement.replace(from, to)}`;
}

const SQLITE_DRIFT: typeof POSTGRES_DRIFT = [
  ['DROP TABLE outbox_dlq', 'missing_table', '"outbox_dlq"'],
  ['DROP INDEX outbox_pending_idx', 'missing_index', 'outbox_pending_idx'],
  [
    'DROP INDEX outbox_pending_idx; CREATE INDEX outbox_pending_idx ON outbox (queue, next_attempt_at)',
    'wrong_index',
    'outbox_pending_idx',
  ],
  [
    'DROP INDEX outbox_timer_id_uq; CREATE INDEX outbox_timer_id_uq ON outbox (queue, timer_id) WHERE timer_id IS NOT NULL',
    'wrong_index',
    'outbox_timer_id_uq',
  ],
  ['ALTER TABLE outbox_dlq DROP COLUMN archived_at', 'missing_column', '"outbox_dlq".archived_at'],
  ['ALTER TABLE outbox DROP COLUMN message_id', 'missing_column', '"outbox".message_id'],
  [rewritten('payload BLOB NOT NULL', 'payload BLOB'), 'wrong_nullability', '"outbox".payload'],
  [rewritten('timer_id VARCHAR(255)', 'timer_id TEXT'), 'wrong_type', '"outbox".timer_id'],
  [
    rewritten('attempts_count BIGINT DEFAULT 0', 'attempts_count BIGINT DEFAULT 1'),
    'wrong_default',
    '"outbox".attempts_count',
  ],
  [rewritten('replay_count INTEGER', 'extra TEXT NOT NULL, replay_count INTEGER'), 'foreign_column', '"outbox".extra'],
  [rewritten('acquired_at IS NULL', 'acquired_at IS NOT NULL'), 'missing_check', '"outbox".outbox_lease_ck'],
];

describe.each(DIALECTS)('the schema check on %s', (dialect, name) => {
  const run = async (query: (text: string) => Promise<unknown>, text: string): Promise<void> => {
    for (const statement of text.split(/;\s*/)) if (statement !== '') await query(statement);
  };

  test('finds nothing in fresh tables, also before the launch', async () => {
    const { outbox, DBOS } = await setOutbox(name, { isLaunched: false });

    expect(await outbox.validateSchema()).toEqual({ ok: true, findings: [] });
    await DBOS.launch();
    expect(await outbox.validateSchema()).toEqual({ ok: true, findings: [] });
  });

  test.each(dialect === 'postgres' ? POSTGRES_DRIFT : SQLITE_DRIFT)(
    'after %s finds %s, and its fix clears it',
    async (drift, code, object) => {
      const { outbox, query } = await setOutbox(name);
      await run(query, drift);

      const { ok, findings } = await outbox.checkSchema();

      expect(ok).toBe(false);
      const [finding] = findings.filter((one) => one.object === object);
      expect(finding).toMatchObject({ code, severity: 'error' });
      await expect(outbox.validateSchema()).rejects.toMatchObject({
        code: 'OUTBOX_SCHEMA_DRIFT',
        message: expect.stringContaining('#fixing-drift') as string,
      });
      for (const { fixSql } of findings) await run(query, fixSql);
      expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
    },
  );

  test('lists all findings of all tables at once', async () => {
    const { outbox, query } = await setOutbox(name);
    await query('DROP INDEX outbox_pending_idx');
    await query('DROP INDEX outbox_dlq_queue_failed_idx');
    await query('DROP TABLE outbox_state');

    const { findings } = await outbox.checkSchema();

    expect(findings.map(({ code }) => code)).toEqual(['missing_index', 'missing_index', 'missing_table']);
  });

  test('ignores further columns and indexes', async () => {
    const { outbox, query } = await setOutbox(name);
    await query('ALTER TABLE outbox ADD COLUMN extra text');
    await query('CREATE INDEX extra_idx ON outbox (extra)');

    expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
  });

  test('does not run at launch', async () => {
    const { DBOS, query } = await setOutbox(name, { isLaunched: false });
    await query('DROP INDEX outbox_pending_idx');

    await DBOS.launch();
  });
});

describe.skipIf(!wantsDialect('sqlite'))('the fix of a table on SQLite', () => {
  test('keeps rows, IDs, and columns and indexes of the application', async () => {
    const { outbox, query } = await setOutbox('better-sqlite3', { isLaunched: false });
    await query('ALTER TABLE outbox ADD COLUMN tenant TEXT');
    await query('CREATE INDEX tenant_idx ON outbox (tenant)');
    for (const n of [1, 2, 3]) {
      await query(`INSERT INTO outbox (queue, payload, tenant) VALUES ('a', CAST('${n}' AS BLOB), 't${n}')`);
    }
    await query('DELETE FROM outbox WHERE id = 3');
    await query('DROP INDEX outbox_lease_idx');
    await query('ALTER TABLE outbox DROP COLUMN message_id');

    const { findings } = await outbox.checkSchema();
    for (const { fixSql } of findings) for (const statement of fixSql.split(/;\s*/)) await query(statement);
    await query(`INSERT INTO outbox (queue, payload) VALUES ('a', CAST('4' AS BLOB))`);

    expect(findings).toHaveLength(2);
    expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
    expect(await query('SELECT id, tenant FROM outbox ORDER BY id')).toEqual([
      { id: 1, tenant: 't1' },
      { id: 2, tenant: 't2' },
      { id: 4, tenant: null },
    ]);
    expect(await query(`SELECT name FROM sqlite_master WHERE name = 'tenant_idx'`)).toHaveLength(1);
  });
});

describe.skipIf(!wantsDialect('postgres'))('the schema check', () => {
  test('knows the lease CHECK by its predicate, whatever its name', async () => {
    const { outbox, query } = await setOutbox('node-postgres');
    await query('ALTER TABLE outbox RENAME CONSTRAINT outbox_lease_ck TO ck_outbox_outbox_lease_ck');

    expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
  });

  test('looks into the schema of the table', async () => {
    const scene = await setScene('node-postgres');
    await scene.query('CREATE SCHEMA app');
    const engine = await scene.engine();
    const tables = {
      outboxTable: makeOutboxTable({ schema: 'app', tableName: 'mail' }),
      dlqTable: makeDlqTable({ schema: 'app' }),
    };
    const outbox = new OutboxBroker(sourceOf(engine), tables);
    expect((await outbox.checkSchema()).findings).toHaveLength(2);
    await outbox.install();

    expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
    await scene.query('DROP INDEX app.mail_lease_idx');
    await scene.query('CREATE INDEX mail_lease_idx ON app.mail (queue)');
    const { findings } = await outbox.checkSchema();
    for (const statement of findings[0]?.fixSql.split(';\n') ?? []) await scene.query(statement);
    expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
  });

  test('accepts partitioned dead letters, and misses the partition for now', async () => {
    const { outbox, query } = await setOutbox('node-postgres');
    await query('ALTER TABLE outbox_dlq RENAME TO outbox_dlq_old');
    await query('DROP INDEX outbox_dlq_queue_failed_idx');
    await query(
      'CREATE TABLE outbox_dlq (LIKE outbox_dlq_old INCLUDING DEFAULTS, PRIMARY KEY (id, failed_at)) PARTITION BY RANGE (failed_at)',
    );
    await query('CREATE INDEX outbox_dlq_queue_failed_idx ON outbox_dlq (queue, failed_at)');

    const { ok, findings } = await outbox.checkSchema();

    expect(ok).toBe(false);
    expect(findings.map(({ code, severity }) => [code, severity])).toEqual([
      ['missing_partition', 'error'],
      ['missing_partition', 'warning'],
    ]);
    for (const { fixSql } of findings) await query(fixSql);
    expect(await outbox.checkSchema()).toEqual({ ok: true, findings: [] });
  });

  test('names privileges that the role lacks', async () => {
    const { outbox, query, scene } = await setOutbox('node-postgres', { isLaunched: false });
    const role = `outbox_reader_${process.pid}`;
    await query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`);
    try {
      await query(`GRANT USAGE ON SCHEMA public TO ${role}`);
      await query(`GRANT SELECT, INSERT ON outbox, outbox_dlq, outbox_state TO ${role}`);
      const url = new URL(scene.url);
      url.username = role;
      url.password = 'x';
      const engine = await scene.engine({}, url.href);
      const limited = new OutboxBroker(sourceOf(engine));

      const { findings } = await limited.checkSchema();

      expect(findings).toMatchObject([{ code: 'missing_privilege', expected: 'UPDATE, DELETE' }]);
      await query(findings[0]?.fixSql ?? '');
      expect(await limited.checkSchema()).toEqual({ ok: true, findings: [] });
      expect((await outbox.checkSchema()).ok).toBe(true);
    } finally {
      await query(`DROP OWNED BY ${role}`);
      await query(`DROP ROLE ${role}`);
    }
  });
});
