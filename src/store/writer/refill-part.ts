// The refills of one commit: one claim for each queue whose runs it ends.
import type { Sql } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';
import { compareClaimOrder, toClaimed } from '../queues/claims.js';
import { type Refill, refillStatements } from '../queues/refills.js';
import type { Owned } from '../runs/lifecycle.js';

interface Ending {
  readonly run: Owned;
  readonly refill: Refill;
}

export class RefillPart {
  readonly #offered = new Map<string, Ending[]>();
  /** Those of the commit in flight, by queue, in the order of their statements. */
  #begun: (readonly [Ending, ...Ending[]])[] = [];

  /** Which of the statements claim. */
  #claims: number[] = [];

  add(run: Owned, refill: Refill): void {
    const { queueName } = refill.terms;
    const endings = this.#offered.get(queueName);
    if (endings) endings.push({ run, refill });
    else this.#offered.set(queueName, [{ run, refill }]);
  }

  /** The statements to follow those that record the outcomes. None if the commit is repeated. */
  begin({ dialect, features }: Pick<Database, 'dialect' | 'features'>): Sql[] {
    this.#begun = [];
    this.#claims = [];
    // Without advisory locks, a pause could not wait for refills.
    if (features?.hasAdvisoryLocks === false) return [];
    const statements: Sql[] = [];
    for (const endings of this.#offered.values()) {
      const [first, ...others] = endings.filter(({ refill }) => refill.begin());
      if (!first) continue;
      const runs = [first, ...others].map(({ run }) => run);
      statements.push(...refillStatements(first.refill.terms, runs, dialect));
      this.#begun.push([first, ...others]);
      this.#claims.push(statements.length - 1);
    }
    return statements;
  }

  /** The commit has ended, with the rows of each statement. */
  end(results: readonly (readonly Row[])[]): void {
    for (const [index, endings] of this.#begun.entries()) {
      const claimed = (results[this.#claims[index] ?? -1] ?? []).map(toClaimed);
      // RETURNING guarantees no order.
      claimed.sort((a, b) => compareClaimOrder(a.workflow, b.workflow));
      endings.forEach(({ refill }, position) => refill.end(position < claimed.length));
      if (claimed.length > 0) endings[0].refill.launch(claimed);
    }
  }

  /** The commit has failed, or its answer was lost. */
  fail(): void {
    for (const endings of this.#begun) {
      for (const { refill } of endings) refill.end(false);
      endings[0].refill.handBack();
    }
  }
}
