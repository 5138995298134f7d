// How the databases find what is due: an index leads to it. What is not due yet is not read, however much there is.
import { describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../src/features/queue/queue.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { SqlHistoryStore } from '../../../src/features/history/sql-history-store.sql.js';
import { countClaimed } from '../../../src/features/queue/claim-rate.sql.js';
import { findRemainder } from '../../../src/features/queue/claims.sql.js';
import { enqueueDue } from '../../../src/features/queue/delays.sql.js';
import { cancelOverdue } from '../../../src/run/rows/lifecycle.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { explain } from '../../rig/plans.js';
import { newWorkflow } from '../../rig/records.js';

const RATE = { max: 1_000_000, periodMs: 60_000 };

interface Search {
  readonly name: string;
  /** What the index is searched for. */
  readonly column: string;
  readonly find: (database: Database) => Promise<unknown>;
}

const searches: readonly Search[] = [
  {
    name: 'delayed workflows',
    column: 'delay_until_epoch_ms',
    find: (database) => enqueueDue(database, 'test', 1000),
  },
  {
    name: 'deadlines',
    column: 'workflow_deadline_epoch_ms',
    find: (database) => cancelOverdue(database, 1000),
  },
  {
    name: 'timers',
    column: 'fire_at',
    find: (database) => new SqlHistoryStore(database).fetchDueTimers(1000),
  },
  {
    name: 'starts under a rate limit',
    column: 'started_at_epoch_ms',
    find: (database) => findRemainder(database, { queueName: 'q', whole: { ...UNLIMITED, rate: RATE } }),
  },
  {
    name: 'latest claims',
    column: 'started_at_epoch_ms',
    find: (database) => countClaimed(database, 'q', 60_000),
  },
];

/** Runs nothing, but keeps the plan of each statement. */
function explaining(database: Database, plans: string[]): Database {
  const run = async (statement: Sql) => {
    plans.push(await explain(database, statement));
    return [];
  };
  const executor = { dialect: database.dialect, run };
  const fake: Pick<Database, 'dialect' | 'run' | 'read' | 'commit' | 'transaction'> = {
    ...executor,
    read: run,
    commit: (statements) => Promise.all(statements.map(run)),
    transaction: (body) => body(executor),
  };
  return fake as Database;
}

describe('plans of what is due', () => {
  forEachDialect((dialect) => {
    test.each(searches)('$name are found by the bounds of an index', async ({ column, find }) => {
      const database = await dialect.create();
      const later = { delayMs: 86_400_000, deadlineAt: 1e15, status: 'DELAYED' as const };
      await database.run(insertWorkflows(Array.from({ length: 2000 }, () => newWorkflow(later))));
      const plans: string[] = [];

      await find(explaining(database, plans));
      await database.run(sql`ANALYZE ${table('workflow_status')}`);
      await find(explaining(database, plans));

      expect(plans.length).toBeGreaterThanOrEqual(2);
      const isBounded = new RegExp(`Index Cond: .*${column} [<>]|USING .*INDEX .*${column}[<>]`);
      for (const plan of plans) expect(plan).toMatch(isBounded);
    });
  });
});
