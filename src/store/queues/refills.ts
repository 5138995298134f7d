// A refill: a claim in the commit that ends runs of a queue, for at most as many workflows as it ends. To everyone who counts,
// as many workflows run after it as before. So it needs no lock on the queue, and a slot is free for one commit, not for two.
import { UNLIMITED } from '../../model/queues.js';
import { type Dialect, rows, type Sql, sql, table } from '../../sql/sql.js';
import type { Owned } from '../runs/lifecycle.js';
import { unindexed } from '../runs/states.js';
import { type Claimed, type ClaimOptions, claimStatement } from './claims.js';
import { lockRefill } from './claim-lock.js';
import { hasForeignWorkers } from './foreign-claims.js';

export type RefillTerms = Omit<ClaimOptions, 'limit' | 'share'>;

/** What is to get the slot of a run when its outcome is recorded. */
export interface Refill {
  readonly terms: RefillTerms;
  /**
   * True once, and false if it was withdrawn. A commit that is repeated may have taken effect the first time: the runs have
   * ended, and their slots may have been filled.
   */
  begin(): boolean;
  /** The commit is over. Called once after `begin`. */
  end(isFilled: boolean): void;
  /** Runs what a commit has claimed under these terms. */
  launch(claimed: readonly Claimed[]): void;
  /** Hands back what a commit of unknown outcome may have claimed under these terms. */
  handBack(): void;
}

const endedColumns = [
  { name: 'id', type: 'text' },
  { name: 'owner', type: 'text' },
] as const;

/**
 * Claims at most as many workflows as the runs that have recorded an outcome, in the last statement. To follow the statement
 * that records it. The lock before it is for pauses: once a queue is paused, nothing of it may start.
 */
export function refillStatements(terms: RefillTerms, runs: readonly Owned[], dialect: Dialect): Sql[] {
  const claim = refillStatement(terms, runs, dialect);
  return dialect.name === 'postgres' ? [lockRefill(terms.queueName), claim] : [claim];
}

export function refillStatement(terms: RefillTerms, runs: readonly Owned[], { name: dialect }: Dialect): Sql {
  const scope = { queueName: terms.queueName, whole: terms.limits ?? UNLIMITED };
  const ended = countEnded(runs);
  // DBOS workers get a slot only when one is free.
  const bound = dialect === 'postgres' ? sql`CASE WHEN ${hasForeignWorkers} THEN 0 ELSE ${ended} END` : ended;
  return claimStatement(terms, scope, { limit: runs.length, bound });
}

function countEnded(runs: readonly Owned[]): Sql {
  const values = runs.map(({ workflowID, owner }) => [workflowID, owner]);
  return sql`(
    SELECT COUNT(*)
    FROM ${rows('r', endedColumns, values)}
    JOIN ${table('workflow_status')} AS e ON e.workflow_uuid = r.id AND e.owner_xid = r.owner
    WHERE ${unindexed(sql`e.status IN ('SUCCESS', 'ERROR')`)})`;
}
