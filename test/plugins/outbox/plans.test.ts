// The plans of the hot statements on a large table that was never analysed: each branch rides its index, and the cost does
// not grow with the backlog.
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { claim, nextDue, take } from '../../../src/plugins/outbox/consume/fetching.js';
import { ddlText } from '../../../src/plugins/outbox/schema/ddl.js';
import { makeOutboxTable, makeStateTable } from '../../../src/plugins/outbox/schema/tables.js';
import { postgresJSONDialect } from '../../../src/kernel/sql/postgres-json-dialect.js';
import { render, type Sql } from '../../../src/kernel/sql/sql.js';
import { sqliteDialect } from '../../../src/kernel/sql/sqlite-dialect.js';
import { postgres, wantsDialect } from '../../rig/dialects.js';

const table = makeOutboxTable();
const stateTable = makeStateTable();
const ROWS = 300_000;
const TOKEN = '00000000-0000-0000-0000-000000000001';
const options = { table, stateTable, topic: 'q', queue: 'q', max: 10, leaseMs: 60_000, isOrdered: false };

const FILL = `
  INSERT INTO outbox (queue, payload, next_attempt_at, priority, ordering_key, acquired_at, acquired_token)
  SELECT 'q', '\\x7b7d',
    now() + CASE WHEN n % 3 = 0 THEN 1 ELSE -1 END * n * INTERVAL '1 millisecond' - INTERVAL '1 second',
    CASE WHEN n % 100 = 0 THEN 5 ELSE 0 END,
    CASE WHEN n % 2 = 0 THEN 'k' || n % 1000 END,
    CASE WHEN n % 10 = 0 THEN now() END, CASE WHEN n % 10 = 0 THEN gen_random_uuid() END
  FROM generate_series(1, ${ROWS}) AS n`;

describe.skipIf(!wantsDialect('postgres'))('on Postgres', () => {
  test('a fetch reads a few pages of 300,000 pending rows', async () => {
    const url = await postgres.createURL({ isMigrated: false });
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query(ddlText([table, stateTable], 'postgres'));
    await client.query('ALTER TABLE outbox SET (autovacuum_enabled = false)');
    await client.query(FILL);
    const dialect = postgresJSONDialect({ schema: 'public' });
    const explain = async (statement: Sql) => {
      const { text, values } = render(statement, dialect);
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, BUFFERS) ${text}`, [...values]);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      // The first line of buffers is that of the whole statement.
      const buffers = [...(/Buffers: (.*)/.exec(plan)?.[1] ?? '').matchAll(/(?:hit|read)=(\d+)/g)];
      return { plan, pages: buffers.reduce((sum, [, count]) => sum + Number(count), 0) };
    };

    const fetched = await explain(claim(options, TOKEN));
    const taken = await explain(take(options));
    const ordered = await explain(claim({ ...options, isOrdered: true }, TOKEN));
    const due = await explain(nextDue(table, 'q'));

    for (const { plan } of [fetched, taken, due]) expect(plan).not.toMatch(/Seq Scan on (public\.)?outbox\b(?!_)/);
    for (const index of ['outbox_pending_idx', 'outbox_lease_idx', 'outbox_urgent_idx', 'outbox_pkey']) {
      expect(fetched.plan).toContain(index);
    }
    expect(fetched.plan).not.toMatch(/external merge/);
    expect(fetched.pages, fetched.plan).toBeLessThan(1000);
    expect(taken.pages, taken.plan).toBeLessThan(1000);
    expect(due.pages, due.plan).toBeLessThan(50);
    expect(ordered.plan).toContain('outbox_key_idx');
    // From this cost on, a stock server compiles the statement, which takes longer than to run it.
    for (const { plan } of [fetched, taken, ordered, due]) {
      expect(Number(/cost=[\d.]+\.\.([\d.]+)/.exec(plan)?.[1]), plan).toBeLessThan(100_000);
    }
  });
});

describe.skipIf(!wantsDialect('sqlite'))('on SQLite', () => {
  test('each branch of a fetch uses its index', () => {
    const database = new BetterSqlite3(':memory:');
    onTestFinished(() => void database.close());
    database.exec(ddlText([table, stateTable], 'sqlite'));
    const dialect = sqliteDialect();
    const explain = (statement: Sql): string => {
      const { text, values } = render(statement, dialect);
      const rows = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all(...values);
      return rows.map(({ detail }) => detail).join('\n');
    };

    const plan = explain(claim(options, TOKEN));

    expect(plan).toContain('outbox_pending_idx (queue=? AND next_attempt_at<?)');
    expect(plan).toContain('outbox_lease_idx (queue=? AND acquired_at<?)');
    expect(plan).toContain('outbox_urgent_idx (queue=?');
    expect(plan).not.toMatch(/SCAN o\b|SCAN outbox\b/);
    expect(explain(nextDue(table, 'q'))).not.toMatch(/SCAN o\b|TEMP B-TREE/);
  });
});
