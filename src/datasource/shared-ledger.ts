// Where the application's database is the system database, a step is recorded by its checkpoint: it joins the transaction,
// guarded by ownership, and no further record is needed.
import { DBOSStepAlreadyRecordedError } from '../model/errors/errors.js';
import type { TransactionOutcome, TransactionStep } from '../engine/plugin.js';
import type { CompletionTable, Ledger } from './completion-table.js';
import type { TransactionDriver } from './driver.js';
import { writeLast } from './last-statement.js';

/** Without `prepare`: the barrier may need a connection of the pool that the transactions take theirs from. */
export class SharedLedger<Client> implements Ledger<Client> {
  readonly #driver: TransactionDriver<Client>;
  readonly #completions: CompletionTable<Client>;

  constructor(driver: TransactionDriver<Client>, completions: CompletionTable<Client>) {
    this.#driver = driver;
    this.#completions = completions;
  }

  /** A record in the completion table is one of an earlier run that did not know the database to be shared. */
  async find(step: TransactionStep): Promise<TransactionOutcome | undefined> {
    await step.assertOwned();
    return (await step.findCheckpoint()) ?? (await this.#completions.find(step));
  }

  async record(step: TransactionStep, client: Client, value: unknown): Promise<void> {
    if (await writeLast(this.#driver, client, await step.joined(value))) return;
    throw new DBOSStepAlreadyRecordedError(step.workflowID, step.stepID);
  }

  onCommitted(step: TransactionStep): void {
    step.onJoined();
  }

  async recordError(): Promise<void> {
    // The engine writes the checkpoint of a failed step.
  }
}
