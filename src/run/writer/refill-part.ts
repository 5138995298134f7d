// The refills of one commit: for each queue whose runs it ends, one claim for their slots.
import type { Dialect, Sql } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';
import { toOthersWork } from '../../features/queue/claim-limits.sql.js';
import { lockRefill } from '../../features/queue/claim-lock.sql.js';
import { compareClaimOrder, toClaimed } from '../../features/queue/claims.sql.js';
import { othersStatement, type Refill, refillStatement } from '../../features/queue/refills.sql.js';
import type { Owned } from '../rows/lifecycle.js';

interface Ending {
  readonly run: Owned;
  readonly refill: Refill;
}

/** The claim of a queue in the commit in flight. */
interface Begun {
  readonly endings: readonly [Ending, ...Ending[]];
  /** The indexes of the statements. */
  readonly look: number | undefined;
  readonly claim: number;
}

export class RefillPart {
  readonly #offered = new Map<string, Ending[]>();
  #begun: Begun[] = [];

  add(run: Owned, refill: Refill): void {
    const { queueName } = refill.terms;
    const endings = this.#offered.get(queueName);
    if (endings) endings.push({ run, refill });
    else this.#offered.set(queueName, [{ run, refill }]);
  }

  /** The statements to follow those that record the outcomes. None if the commit is repeated. */
  begin({ dialect, features }: Pick<Database, 'dialect' | 'features'>): Sql[] {
    this.#begun = [];
    const statements: Sql[] = [];
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
    for (const { endings, look, claim } of this.#begun) {
      const [{ refill }] = endings;
      // RETURNING guarantees no order.
      const claimed = (results[claim] ?? []).map(toClaimed).sort((a, b) => compareClaimOrder(a.workflow, b.workflow));
      if (look !== undefined) refill.noteOthers(toOthersWork(results[look]?.[0]));
      endings.forEach((ending, index) => ending.refill.end(index < claimed.length));
      if (claimed.length > 0) refill.launch(claimed);
    }
  }

  /** The commit has failed, or its answer was lost. */
  fail(): void {
    for (const { endings } of this.#begun) {
      for (const { refill } of endings) refill.end(false);
      endings[0].refill.handBack();
    }
  }
}

/** Adds the statements that claim for the slots of these runs. */
function claimFor(endings: Begun['endings'], statements: Sql[], dialect: Dialect): Begun {
  const { terms } = endings[0].refill;
  const isPostgres = dialect.name === 'postgres';
  const looks = isPostgres && endings.some(({ refill }) => refill.looks);
  const add = (statement: Sql): number => statements.push(statement) - 1;
  // For pauses: once a queue is paused, nothing of it is claimed.
  if (isPostgres) add(lockRefill(terms.queueName));
  const look = looks ? add(othersStatement(terms)) : undefined;
  const runs = endings.map(({ run }) => run);
  return { endings, look, claim: add(refillStatement(terms, runs, looks)) };
}
