// Records outcomes where the application's database is the system database: the checkpoint itself joins the step's
// transaction, guarded by the owner token, and no completion record is needed.
import { DBOSStepAlreadyRecordedError } from '../model/errors/errors.js';
import type { Durability, KeptOutcome, TransactionStep } from '../engine/plugin.js';
import type { CompletionTable, OutcomeStore } from './completion-table.js';
import type { TransactionDriver } from './driver.js';
import { writeLast } from './last-statement.js';
import type { OpenTransaction } from './open-transaction.js';

/** Has no `prepare`: the barrier may need a connection from the pool that the open transactions take theirs from. */
export class SharedOutcomeStore<Client> implements OutcomeStore<Client> {
  readonly #driver: TransactionDriver<Client>;
  readonly #completions: CompletionTable<Client>;

  constructor(driver: TransactionDriver<Client>, completions: CompletionTable<Client>) {
    this.#driver = driver;
    this.#completions = completions;
  }

  /** An earlier run may have left a completion record, before it was known that the database is shared. */
  async find(step: TransactionStep): Promise<KeptOutcome | undefined> {
    await step.assertOwned();
    const outcome = await step.joined.find();
    return outcome ? { outcome, durability: 'checkpointed' } : this.#completions.find(step);
  }

  async record(step: TransactionStep, { client }: OpenTransaction<Client>, value: unknown): Promise<Durability> {
    if (await writeLast(this.#driver, client, await step.joined.statement(value))) return 'checkpointed';
    throw new DBOSStepAlreadyRecordedError(step.workflowID, step.stepID);
  }

  /** The engine writes the checkpoint of a failed step. */
  async recordError(): Promise<Durability> {
    return 'none';
  }
}
