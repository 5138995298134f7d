// Records outcomes where the application's database is the system database: the checkpoint itself joins the step's
// transaction, guarded by the owner token, and no completion record is needed.
import { isPromise } from '../../kernel/codec/maybe-promise.js';
import { DBOSStepAlreadyRecordedError } from '../../kernel/errors/errors.js';
import type { Durability, KeptOutcome, TransactionStep } from '../../run/plugin.js';
import type { CompletionTable, OutcomeStore } from './completion-table.js';
import type { TransactionDriver } from './driver.js';
import { writeLast } from './last-statement.js';
import type { OpenTransaction } from './open-transaction.js';

export class SharedOutcomeStore<Client> implements OutcomeStore<Client> {
  /** Ownership is checked by the statement that writes the checkpoint. */
  readonly prepare: OutcomeStore<Client>['prepare'];
  readonly #driver: TransactionDriver<Client>;
  readonly #completions: CompletionTable<Client>;

  /** With `isLate` the barrier is passed while the function runs. */
  constructor(
    driver: TransactionDriver<Client>,
    completions: CompletionTable<Client>,
    { isLate }: { readonly isLate: boolean },
  ) {
    this.prepare = isLate ? (step) => step.passBarrier() : undefined;
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
    const statement = step.joined.statement(value);
    const rendered = isPromise(statement) ? await statement : statement;
    if (await writeLast(this.#driver, client, rendered)) return 'checkpointed';
    throw new DBOSStepAlreadyRecordedError(step.workflowID, step.stepID);
  }

  /** The engine writes the checkpoint of a failed step. */
  async recordError(): Promise<Durability> {
    return 'none';
  }
}
