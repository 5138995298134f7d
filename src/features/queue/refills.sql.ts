// A refill: a claim in the commit that ends runs of a queue, for at most as many workflows as it ends. To everyone who counts,
// as many workflows run after it as before. So it needs no lock on the queue, and a slot is free for one commit, not for two.
import { UNLIMITED } from './queue.js';
import { rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Owned } from '../../run/rows/lifecycle.js';
import { unindexed } from '../../run/rows/states.js';
import { type Claimed, type ClaimOptions, claimStatement } from './claims.sql.js';
import type { OthersWork, Scope } from './claim-limits.sql.js';
import { isContended, othersWork } from './foreign-claims.sql.js';

export type RefillTerms = Omit<ClaimOptions, 'limit' | 'share'>;

/** What is to get the slot of a run when its outcome is recorded. */
export interface Refill {
  readonly terms: RefillTerms;
  /** Whether to look for work of other programs. If some waits, nothing is claimed. */
  readonly looks: boolean;
  /**
   * True once, and false if it was withdrawn. A commit that is repeated may have taken effect the first time: the runs have
   * ended, and their slots may have been filled.
   */
  begin(): boolean;
  /** The commit is over. Called once after `begin`. */
  end(isFilled: boolean): void;
  /** Runs what a commit has claimed under these terms. */
  launch(claimed: readonly Claimed[]): void;
  /** What a look has found. */
  noteOthers(others: OthersWork | undefined): void;
  /** Hands back what a commit of unknown outcome may have claimed under these terms. */
  handBack(): void;
}

const endedColumns = [
  { name: 'id', type: 'text' },
  { name: 'owner', type: 'text' },
] as const;

/**
 * Claims at most as many workflows as the runs that have recorded an outcome. To follow the statement that records it.
 * `looks`: and none if work of other programs waits, which get a slot only when one is free.
 */
export function refillStatement(terms: RefillTerms, runs: readonly Owned[], looks: boolean): Sql {
  const scope = scopeOf(terms);
  const ended = countEnded(runs);
  const bound = looks && !terms.isInsisting ? sql`CASE WHEN ${isContended(scope)} THEN 0 ELSE ${ended} END` : ended;
  return claimStatement(terms, scope, { limit: runs.length, bounds: [bound] });
}

/** Looks for work of other programs. */
export function othersStatement(terms: RefillTerms): Sql {
  return sql`SELECT ${othersWork(scopeOf(terms))}`;
}

function scopeOf({ queueName, limits = UNLIMITED }: RefillTerms): Scope {
  return { queueName, whole: limits };
}

function countEnded(runs: readonly Owned[]): Sql {
  const values = runs.map(({ workflowID, owner }) => [workflowID, owner]);
  return sql`(
    SELECT COUNT(*)
    FROM ${rows('r', endedColumns, values)}
    JOIN ${table('workflow_status')} AS e ON e.workflow_uuid = r.id AND e.owner_xid = r.owner
    WHERE ${unindexed(sql`e.status IN ('SUCCESS', 'ERROR')`)})`;
}
