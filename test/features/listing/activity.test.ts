import { describe, expect, test } from 'vitest';
import { type Sql, sql } from '../../../src/kernel/sql/sql.js';
import type { Database, ObserveOptions } from '../../../src/database/database.js';
import {
  type ActivityRange,
  countCreated,
  countEnded,
  countStarted,
} from '../../../src/features/listing/activity.sql.js';
import { findFailures } from '../../../src/features/listing/failures.sql.js';
import { forEachDialect } from '../../rig/dialects.js';

const RANGE: ActivityRange = { from: 0, before: 60_000, bucketMs: 1000, applicationName: 'test', timeoutMs: 0 };

/** How the database carries out the one statement that `read` observes. */
async function planOf(database: Database, read: (database: Database) => Promise<unknown>): Promise<string> {
  let plan = '';
  const observe = async (statement: Sql, options: ObserveOptions) => {
    const isPostgres = database.dialect.name === 'postgres';
    const explained = isPostgres ? sql`EXPLAIN ${statement}` : sql`EXPLAIN QUERY PLAN ${statement}`;
    const lines = await database.observe(explained, options);
    plan = lines.map((line) => String(line['QUERY PLAN'] ?? line['detail'])).join('\n');
    return [];
  };
  // The readers use nothing else of it.
  await read({ observe } as unknown as Database);
  return plan;
}

forEachDialect((dialect) => {
  describe('the activity of a time', () => {
    test.each<[string, (database: Database) => Promise<unknown>, RegExp]>([
      ['created', (database) => countCreated(database, RANGE), /workflow_status_created_at_index/],
      ['started', (database) => countStarted(database, RANGE), /idx_workflow_status_started_at/],
      ['ended', (database) => countEnded(database, RANGE), /idx_workflow_status_completed_at/],
      [
        'failed',
        (database) => findFailures(database, { since: 0, limit: 1000, applicationName: 'test', timeoutMs: 0 }),
        /idx_workflow_status_failed/,
      ],
    ])('is read from an index: %s', async (_, read, index) => {
      const database = await dialect.create();

      expect(await planOf(database, read)).toMatch(index);
    });
  });
});
