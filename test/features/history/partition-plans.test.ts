// How Postgres reads a journal with partitions: by an index in each, or only in those of the time in question.
import { expect, test } from 'vitest';
import { type Sql, sql } from '../../../src/kernel/sql/sql.js';
import type { Database, ObserveOptions } from '../../../src/database/database.js';
import { findCancellations } from '../../../src/features/history/cancellations.sql.js';
import { readHistory, tailJournal } from '../../../src/features/history/history.sql.js';
import { insertEntries } from '../../../src/features/history/journal.sql.js';
import { FIRST_ROW, listRows } from '../../../src/features/history/pruning.sql.js';
import { findArchived } from '../../../src/features/retention/archive-index.sql.js';
import { onlyOn, partitioned } from '../../rig/dialects.js';
import { explain } from '../../rig/plans.js';
import { raw } from '../../database/migrations/catalog.js';

const DAY_MS = 86_400_000;

/** Runs nothing, but keeps the plan of each statement. */
function explaining(database: Database, plans: string[]): Database {
  const run = async (statement: Sql) => {
    plans.push(await explain(database, statement));
    return [];
  };
  const observe = async (statement: Sql, options: ObserveOptions) => {
    const lines = await database.observe(sql`EXPLAIN ${statement}`, options);
    plans.push(lines.map((line) => String(line['QUERY PLAN'])).join('\n'));
    return [];
  };
  const fake: Pick<Database, 'dialect' | 'run' | 'read' | 'observe'> = {
    dialect: database.dialect,
    run,
    read: run,
    observe,
  };
  return fake as Database;
}

async function plansOf(database: Database): Promise<{ plans: string[]; recent: string }> {
  const plans: string[] = [];
  const recent: string[] = [];
  const fake = explaining(database, plans);
  await readHistory(fake, { workflowID: 'w-5', limit: 100, payloads: false });
  await tailJournal(fake, { after: { epoch: 0, xid: '700', seq: 5, part: 0 }, limit: 100 });
  await listRows(fake, FIRST_ROW, { before: 5, applicationName: null, limit: 100 });
  await findCancellations(fake, ['w-5']);
  await findArchived(fake, 'w-5');
  const entry = { workflowID: 'w-5', owner: 'o', eventType: 'x', step: 0, attempt: 1, executor: null, details: null };
  await fake.run(insertEntries([{ ...entry, completedAt: null, key: 'k' }]));
  await tailJournal(explaining(database, recent), { after: { since: Date.now() + 30 * DAY_MS }, limit: 100 });
  return { plans: [...plans, ...recent], recent: recent.join('\n') };
}

onlyOn('postgres', () => {
  test('no partition is read from end to end, and those of other times not at all', async () => {
    const database = await partitioned.create();
    // Ten days of rows, some of which are in the default partition.
    await database.run(
      raw(`INSERT INTO dbos.journal (workflow_id, at, event_type)
        SELECT 'w-' || n % 1000, FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT + n * ${DAY_MS / 1000}, 'DelayChanged'
        FROM generate_series(1, 10000) AS n`),
    );

    const fresh = await plansOf(database);
    await database.run(raw('ANALYZE dbos.journal'));
    const analysed = await plansOf(database);

    for (const { plans, recent } of [fresh, analysed]) {
      for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on (journal|archived)/);
      expect(recent).toContain('journal_default');
      expect(recent).not.toContain('journal_first');
    }
  });
});
