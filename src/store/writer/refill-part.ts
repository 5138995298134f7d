// The refills of one commit: for each queue whose runs it ends, a claim for their slots and one of successors; and the starts
// of successors that have the slots already.
import type { Dialect, Sql } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';
import { lockRefill } from '../queues/claim-lock.js';
import { type Claimed, compareClaimOrder, toClaimed } from '../queues/claims.js';
import { foreignStatement, type Refill, refillStatement, successorsStatement } from '../queues/refills.js';
import { startSuccessors } from '../queues/successors.js';
import type { Owned } from '../runs/lifecycle.js';

interface Ending {
  readonly run: Owned;
  readonly refill: Refill;
}

/** The claims of a queue in the commit in flight. */
interface Begun {
  readonly endings: readonly [Ending, ...Ending[]];
  /** Those whose slots are to be filled. */
  readonly open: readonly Ending[];
  /** The indexes of the statements. */
  readonly foreign: number | undefined;
  readonly fill: number | undefined;
  readonly successors: number | undefined;
}

export class RefillPart {
  readonly #offered = new Map<string, Ending[]>();
  readonly #successors: Owned[] = [];
  #applicationVersion = '';
  #begun: Begun[] = [];

  add(run: Owned, refill: Refill): void {
    const { queueName } = refill.terms;
    const endings = this.#offered.get(queueName);
    if (endings) endings.push({ run, refill });
    else this.#offered.set(queueName, [{ run, refill }]);
    if (!refill.successor) return;
    this.#successors.push(refill.successor);
    this.#applicationVersion = refill.terms.applicationVersion;
  }

  /** The statements to follow those that record the outcomes. If the commit is repeated, none of them claims. */
  begin({ dialect, features }: Pick<Database, 'dialect' | 'features'>): Sql[] {
    this.#begun = [];
    const successors = this.#successors;
    const statements = successors.length > 0 ? [startSuccessors(successors, this.#applicationVersion)] : [];
    // Without advisory locks, a pause could not wait for refills.
    if (features?.hasAdvisoryLocks === false) return statements;
    for (const offered of this.#offered.values()) {
      const [first, ...others] = offered.filter(({ refill }) => refill.begin());
      if (first) this.#begun.push(claimFor([first, ...others], statements, dialect));
    }
    return statements;
  }

  /** The commit has ended, with the rows of each statement. */
  end(results: readonly (readonly Row[])[]): void {
    const claimedBy = (statement: number | undefined): Claimed[] =>
      // RETURNING guarantees no order.
      (results[statement ?? -1] ?? []).map(toClaimed).sort((a, b) => compareClaimOrder(a.workflow, b.workflow));
    for (const { endings, open, foreign, fill, successors } of this.#begun) {
      const claimed = claimedBy(fill);
      const filled = new Set(open.slice(0, claimed.length));
      const [{ refill }] = endings;
      if (foreign !== undefined) refill.noteForeign(results[foreign]?.[0]?.['are_connected'] === 1);
      for (const ending of endings) ending.refill.end(filled.has(ending));
      if (claimed.length > 0) refill.launch(claimed);
      const held = claimedBy(successors);
      if (held.length > 0) refill.hold(held);
    }
  }

  /** The commit has failed, or its answer was lost. */
  fail(): void {
    for (const { endings, fill, successors } of this.#begun) {
      for (const { refill } of endings) refill.end(false);
      if (fill !== undefined || successors !== undefined) endings[0].refill.handBack();
    }
  }
}

/** Adds the statements that claim for the slots of these runs. */
function claimFor(endings: Begun['endings'], statements: Sql[], dialect: Dialect): Begun {
  const { terms } = endings[0].refill;
  const open = endings.filter(({ refill }) => !refill.successor);
  const wanted = endings.reduce((sum, { refill }) => sum + refill.wanted, 0);
  // For pauses: once a queue is paused, nothing of it is claimed.
  const isPostgres = dialect.name === 'postgres';
  if (isPostgres && open.length + wanted > 0) statements.push(lockRefill(terms.queueName));
  const looks = isPostgres && endings.some(({ refill }) => refill.looksForForeign);
  const add = (statement: Sql): number => statements.push(statement) - 1;
  const runs = open.map(({ run }) => run);
  return {
    endings,
    open,
    foreign: looks ? add(foreignStatement) : undefined,
    fill: runs.length === 0 ? undefined : add(refillStatement(terms, runs, looks)),
    successors: wanted === 0 ? undefined : add(successorsStatement(terms, wanted, looks)),
  };
}
