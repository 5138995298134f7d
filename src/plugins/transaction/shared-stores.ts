// Chooses how a transaction in the system database waits for what its workflow has written before: while its function runs,
// or before it begins.
import { andThen, type MaybePromise } from '../../kernel/codec/maybe-promise.js';
import type { TransactionStep } from '../../run/plugin.js';
import type { CompletionTable, OutcomeStore } from './completion-table.js';
import type { PGTransactionConfig, TransactionDriver } from './driver.js';
import { SharedOutcomeStore } from './shared-outcome-store.js';

const DEFAULT_LEVEL = `SELECT current_setting('default_transaction_isolation') AS level`;
/** Each statement of these sees what was committed before it. */
const WITHOUT_SNAPSHOT = new Set(['READ COMMITTED', 'READ UNCOMMITTED']);

export class SharedStores<Client> {
  readonly #driver: TransactionDriver<Client>;
  readonly #early: SharedOutcomeStore<Client>;
  readonly #late: SharedOutcomeStore<Client>;
  /** The level of transactions that name none. It may depend on the role and the database. */
  #defaultLevel: string | undefined;

  constructor(driver: TransactionDriver<Client>, completions: CompletionTable<Client>) {
    this.#driver = driver;
    this.#early = new SharedOutcomeStore(driver, completions, { isLate: false });
    this.#late = new SharedOutcomeStore(driver, completions, { isLate: true });
  }

  /**
   * A transaction with a snapshot has to begin after its workflow's row was written, or its checkpoint would not find the
   * row.
   */
  for(step: TransactionStep, { isolationLevel }: PGTransactionConfig): MaybePromise<OutcomeStore<Client>> {
    if (!step.joined.mayWaitInside) return this.#early;
    const level = isolationLevel ?? this.#defaultLevel ?? this.#readDefaultLevel();
    return andThen(level, (known) => (WITHOUT_SNAPSHOT.has(known) ? this.#late : this.#early));
  }

  async #readDefaultLevel(): Promise<string> {
    const driver = this.#driver;
    const [row] = await driver.transact({ readOnly: true }, (client) => driver.query(client, DEFAULT_LEVEL, []));
    this.#defaultLevel = String(row?.['level']).toUpperCase();
    return this.#defaultLevel;
  }
}
