import BetterSqlite3 from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import pg from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeDlqTable, makeOutboxTable, makeStateTable } from '../../../src/plugins/outbox/schema/tables.js';
import { ddlText } from '../../../src/plugins/outbox/schema/ddl.js';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import { wantsDialect } from '../../rig/dialects.js';
import { dropDatabase, setScene } from '../transaction/scene.js';
import { DIALECTS, setOutbox, sourceOf } from './scene.js';

afterAll(dropDatabase);

const SEED_OUTBOX = `CREATE TABLE "outbox" (
  id BIGSERIAL NOT NULL,
  queue VARCHAR(255) NOT NULL,
  payload BYTEA NOT NULL,
  headers JSONB,
  attempts_count BIGINT DEFAULT 0 NOT NULL,
  deliveries_count BIGINT DEFAULT 0 NOT NULL,
  created_at TIMESTAMPTZ DEFAULT now() NOT NULL,
  next_attempt_at TIMESTAMPTZ DEFAULT now() NOT NULL,
  first_attempt_at TIMESTAMPTZ,
  last_attempt_at TIMESTAMPTZ,
  acquired_at TIMESTAMPTZ,
  acquired_token UUID,
  timer_id VARCHAR(255),
  message_id UUID DEFAULT gen_random_uuid() NOT NULL,
  ordering_key VARCHAR(255),
  priority SMALLINT DEFAULT 0 NOT NULL,
  expires_at TIMESTAMPTZ,
  replay_count INTEGER DEFAULT 0 NOT NULL,
  traceparent VARCHAR(255),
  PRIMARY KEY (id),
  CONSTRAINT "outbox_lease_ck" CHECK ((acquired_token IS NULL) = (acquired_at IS NULL))
);

CREATE INDEX "outbox_lease_idx" ON "outbox" (queue, acquired_at) WHERE acquired_token IS NOT NULL;

CREATE INDEX "outbox_pending_idx" ON "outbox" (queue, next_attempt_at) WHERE acquired_token IS NULL;

CREATE UNIQUE INDEX "outbox_timer_id_uq" ON "outbox" (queue, timer_id) WHERE timer_id IS NOT NULL;

CREATE INDEX "outbox_key_idx" ON "outbox" (queue, ordering_key, id) WHERE ordering_key IS NOT NULL;

CREATE INDEX "outbox_urgent_idx" ON "outbox" (queue, priority DESC, next_attempt_at) WHERE (acquired_token IS NULL) AND (priority > 0);
`;

const SEED_DLQ = `CREATE TABLE "outbox_dlq" (
  id BIGSERIAL NOT NULL,
  original_id BIGINT NOT NULL,
  queue VARCHAR(255) NOT NULL,
  payload BYTEA NOT NULL,
  headers JSONB,
  deliveries_count BIGINT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  failed_at TIMESTAMPTZ DEFAULT now() NOT NULL,
  failure_reason VARCHAR(64) NOT NULL,
  last_exception VARCHAR,
  timer_id VARCHAR(255),
  message_id UUID,
  attempts_count BIGINT,
  ordering_key VARCHAR(255),
  priority SMALLINT DEFAULT 0 NOT NULL,
  error_name VARCHAR(255),
  error_fingerprint VARCHAR(64),
  replay_count INTEGER DEFAULT 0 NOT NULL,
  traceparent VARCHAR(255),
  archived_at TIMESTAMPTZ,
  PRIMARY KEY (id)
);

CREATE INDEX "outbox_dlq_queue_failed_idx" ON "outbox_dlq" (queue, failed_at);
`;

describe('the DDL', () => {
  test('of Postgres is that of the seed, and the dead letters add to it only', () => {
    expect(ddlText([makeOutboxTable()], 'postgres')).toBe(SEED_OUTBOX);
    expect(ddlText([makeOutboxTable(), makeDlqTable()], 'postgres')).toBe(`${SEED_OUTBOX}\n${SEED_DLQ}`);
  });

  test('of SQLite has the same columns, indexes and check', () => {
    const text = ddlText([makeOutboxTable(), makeDlqTable(), makeStateTable()], 'sqlite');

    expect(text).toMatchInlineSnapshot(`
      "CREATE TABLE "outbox" (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        queue VARCHAR(255) NOT NULL,
        payload BLOB NOT NULL,
        headers TEXT,
        attempts_count BIGINT DEFAULT 0 NOT NULL,
        deliveries_count BIGINT DEFAULT 0 NOT NULL,
        created_at INTEGER DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)) NOT NULL,
        next_attempt_at INTEGER DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)) NOT NULL,
        first_attempt_at INTEGER,
        last_attempt_at INTEGER,
        acquired_at INTEGER,
        acquired_token TEXT,
        timer_id VARCHAR(255),
        message_id TEXT DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL,
        ordering_key VARCHAR(255),
        priority SMALLINT DEFAULT 0 NOT NULL,
        expires_at INTEGER,
        replay_count INTEGER DEFAULT 0 NOT NULL,
        traceparent VARCHAR(255),
        CONSTRAINT "outbox_lease_ck" CHECK ((acquired_token IS NULL) = (acquired_at IS NULL))
      );

      CREATE INDEX "outbox_lease_idx" ON "outbox" (queue, acquired_at) WHERE acquired_token IS NOT NULL;

      CREATE INDEX "outbox_pending_idx" ON "outbox" (queue, next_attempt_at) WHERE acquired_token IS NULL;

      CREATE UNIQUE INDEX "outbox_timer_id_uq" ON "outbox" (queue, timer_id) WHERE timer_id IS NOT NULL;

      CREATE INDEX "outbox_key_idx" ON "outbox" (queue, ordering_key, id) WHERE ordering_key IS NOT NULL;

      CREATE INDEX "outbox_urgent_idx" ON "outbox" (queue, priority DESC, next_attempt_at) WHERE (acquired_token IS NULL) AND (priority > 0);

      CREATE TABLE "outbox_dlq" (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        original_id BIGINT NOT NULL,
        queue VARCHAR(255) NOT NULL,
        payload BLOB NOT NULL,
        headers TEXT,
        deliveries_count BIGINT NOT NULL,
        created_at INTEGER NOT NULL,
        failed_at INTEGER DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)) NOT NULL,
        failure_reason VARCHAR(64) NOT NULL,
        last_exception VARCHAR,
        timer_id VARCHAR(255),
        message_id TEXT,
        attempts_count BIGINT,
        ordering_key VARCHAR(255),
        priority SMALLINT DEFAULT 0 NOT NULL,
        error_name VARCHAR(255),
        error_fingerprint VARCHAR(64),
        replay_count INTEGER DEFAULT 0 NOT NULL,
        traceparent VARCHAR(255),
        archived_at INTEGER
      );

      CREATE INDEX "outbox_dlq_queue_failed_idx" ON "outbox_dlq" (queue, failed_at);

      CREATE TABLE "outbox_state" (
        queue VARCHAR(255) NOT NULL,
        kind VARCHAR(16) NOT NULL,
        "key" VARCHAR(255) NOT NULL,
        message_id TEXT,
        until INTEGER,
        PRIMARY KEY (queue, kind, "key")
      );
      "
    `);
  });

  test('names everything after the table', () => {
    const text = ddlText([makeOutboxTable({ tableName: 'mail', schema: 'app' })], 'postgres');

    expect(text).toContain('CREATE TABLE "app"."mail"');
    for (const name of ['mail_lease_idx', 'mail_pending_idx', 'mail_timer_id_uq', 'mail_lease_ck']) {
      expect(text).toContain(`"${name}"`);
    }
    expect(text).not.toContain('outbox');
    expect(makeOutboxTable({ tableName: 'mail' }).channel).toBe('outbox_mail');
  });

  test.each([
    ['an index name that Postgres would cut off', () => makeOutboxTable({ tableName: 'a'.repeat(52) })],
    ['a channel that is too long', () => makeOutboxTable({ tableName: 'ä'.repeat(26) })],
    ['a schema that is too long', () => makeDlqTable({ schema: 'a'.repeat(64) })],
  ])('refuses %s', (_, make) => {
    expect(make).toThrow(/longer than 63 bytes/);
  });

  test('refuses an unknown option', () => {
    expect(() => makeOutboxTable({ name: 'mail' } as never)).toThrow('options has an unknown field "name"');
  });
});

describe.each(DIALECTS)('the tables on %s', (dialect, name) => {
  test('are created by install and by nothing else', async () => {
    const scene = await setScene(name);
    const engine = await scene.engine();
    const outbox = new OutboxBroker(sourceOf(engine));
    await engine.DBOS.launch();
    const find = () =>
      scene.query(
        `SELECT 1 AS found ${dialect === 'postgres' ? 'FROM pg_class WHERE relname' : 'FROM sqlite_master WHERE name'} = 'outbox'`,
      );
    expect(await find()).toEqual([]);

    await outbox.install();

    expect(await find()).toHaveLength(1);
    await expect(outbox.install()).rejects.toThrow(/already exists/);
  });

  test('are those that ddl() prints', async () => {
    const { outbox, query } = await setOutbox(name);
    const tables =
      dialect === 'postgres'
        ? `SELECT table_name AS name FROM information_schema.tables WHERE table_name LIKE 'outbox%' ORDER BY 1`
        : `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'outbox%' ORDER BY 1`;

    expect((await query(tables)).map((row) => row['name'])).toEqual(['outbox', 'outbox_dlq', 'outbox_state']);
    expect(outbox.ddl()).toContain('CREATE TABLE "outbox_dlq"');
    expect(outbox.ddl({ dialect: 'sqlite' })).toContain('AUTOINCREMENT');
  });

  test('cannot hold half a lease', async () => {
    const { query } = await setOutbox(name);
    const values = dialect === 'postgres' ? `'q', '\\x00', gen_random_uuid()` : `'q', x'00', 'a'`;

    await expect(query(`INSERT INTO outbox (queue, payload, acquired_token) VALUES (${values})`)).rejects.toThrow(
      /outbox_lease_ck/,
    );
  });

  test('give a message that another program inserts its defaults', async () => {
    const { query } = await setOutbox(name);
    await query(
      `INSERT INTO outbox (queue, payload) VALUES ('q', ${dialect === 'postgres' ? `'\\x7b7d'` : `x'7b7d'`})`,
    );

    const [row] = await query('SELECT * FROM outbox');

    expect(row).toMatchObject({ priority: 0, replay_count: 0, acquired_token: null });
    expect(row?.['message_id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Math.abs(Number(row?.['next_attempt_at']) - Date.now())).toBeLessThan(60_000);
  });
});

test('SQLite has no schemas', async () => {
  const scene = await setScene('better-sqlite3');
  const engine = await scene.engine();

  expect(() => new OutboxBroker(sourceOf(engine), { outboxTable: makeOutboxTable({ schema: 'app' }) })).toThrow(
    'SQLite has no schemas',
  );
});

test.each([[undefined], [{}], [{ query() {} }]])('an outbox on %o is refused', (source) => {
  expect(() => new OutboxBroker(source as never)).toThrow('OutboxBroker needs a data source');
});

test.skipIf(!wantsDialect('sqlite'))('a database of Drizzle on SQLite publishes in its own transaction', async () => {
  const { outbox, scene, query } = await setOutbox('drizzle-sqlite');
  const client = new BetterSqlite3(scene.url.replace('sqlite:///', ''));
  onTestFinished(() => void client.close());
  const db = drizzle({ client });

  client.exec('BEGIN IMMEDIATE');
  await outbox.using(db).publish('topic', 1);
  client.exec('ROLLBACK');
  client.exec('BEGIN IMMEDIATE');
  await outbox.using(db).publish('topic', 2);
  client.exec('COMMIT');

  expect(await query('SELECT queue FROM outbox')).toHaveLength(1);
  const isRefused = { code: 'OUTBOX_TRANSACTION_REQUIRED' };
  await expect(outbox.using(db).publish('topic', 3)).rejects.toMatchObject(isRefused);
  let inside: Promise<unknown> | undefined;
  db.transaction((tx) => {
    inside = outbox
      .using(tx)
      .publish('topic', 4)
      .catch((error: unknown) => error);
  });
  expect(await inside).toMatchObject({ ...isRefused, message: expect.stringContaining('synchronous') as string });
});

describe.skipIf(!wantsDialect('postgres'))('a transaction of your own', () => {
  test('publishes with its client, and not with a pool', async () => {
    const { outbox, scene, query } = await setOutbox('node-postgres');
    const pool = new pg.Pool({ connectionString: scene.url });
    onTestFinished(() => pool.end());
    const client = await pool.connect();

    await client.query('BEGIN');
    await outbox.using(client).publish('topic', 1);
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    await outbox.using(client).publish('topic', 2);
    await client.query('COMMIT');
    client.release();

    expect(await query('SELECT queue FROM outbox')).toHaveLength(1);
    await expect(outbox.using(pool).publish('topic', 3)).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_REQUIRED' });
    await expect(outbox.using(undefined).publish('topic', 3)).rejects.toMatchObject({
      code: 'OUTBOX_TRANSACTION_REQUIRED',
    });
  });

  test('notifies of the queue once, with the commit', async () => {
    const { outbox, scene, source } = await setOutbox('node-postgres');
    const heard: (string | undefined)[] = [];
    const listener = new pg.Client(scene.url);
    await listener.connect();
    onTestFinished(() => listener.end());
    listener.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`));
    await listener.query('LISTEN outbox_outbox');
    const publish = (end: () => void) =>
      source.runTransaction(
        async () => {
          await outbox.publish('a', 1);
          await outbox.publishAll('a', [{ body: 1 }, { body: 2 }]);
          await outbox.publish('b', 1, { delay: '1h' });
          await outbox.publish('b', 1, { timerId: 't' });
          end();
        },
        { name: 'publish' },
      );

    await expect(
      publish(() => {
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    await publish(() => {});
    await listener.query('SELECT 1');

    expect(heard).toEqual(['outbox_outbox a', 'outbox_outbox b']);
  });
});
