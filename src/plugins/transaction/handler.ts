// Runs steps in transactions, the same for all adapters.
//
//   look up the recorded outcome (if the step may have run before) ──found──► return it
//   run the body in a transaction, and meanwhile check that the run still owns the workflow
//     ──► record the value in the same transaction ──► commit ──► done
//     recorded by a concurrent owner, a conflict, connection lost, disk full ──► retry, starting with the look-up
//     any other error of the body ──► roll back ──► record the error ──► done
//     the run no longer owns the workflow ──► roll back ──► stop the run
//
// A first run looks nothing up: the primary key of the record reveals a concurrent owner. When it is unclear what has
// happened, such as after a COMMIT whose answer was lost, it looks up first.
import { type BackoffPolicy, backoffMs } from '../../kernel/base/backoff.js';
import { type Clock, sleep, systemClock } from '../../kernel/base/clock.js';
import { withTimeLimit } from '../../kernel/base/time-limit.js';
import { andThen, isPromise, type MaybePromise } from '../../kernel/codec/maybe-promise.js';
import { DBOSError, DBOSInitializationError } from '../../kernel/errors/errors.js';
import {
  type Durability,
  inClient,
  type KeptOutcome,
  type RecordedWorkflow,
  type StepOutcome,
  type StepTransactionHandler,
  type TransactionStep,
} from '../../run/plugin.js';
import {
  CREATE_TABLE_SQLITE,
  FIND_TABLE_SQLITE,
  migrateDataSourcePG,
  verifyDataSourcePG,
} from './completion-schema.js';
import { CompletionTable, type OutcomeStore } from './completion-table.js';
import { type PGTransactionConfig, type TransactionDriver, transactionOptionsOf } from './driver.js';
import {
  conflict,
  isClosed,
  isConflict,
  isConnectionFailure,
  isOwnFault,
  isPassing,
  isReadOnlyViolation,
  shouldRetry,
} from './failures.js';
import { OpenTransaction } from './open-transaction.js';
import { SharedStores } from './shared-stores.js';

export interface HandlerOptions<Client> {
  readonly name: string;
  /** The class of the data source, for messages. */
  readonly dsType: string;
  /** The data source, which owns the client of its transactions. */
  readonly owner: object;
  readonly driver: TransactionDriver<Client>;
  readonly schemaName: string;
  readonly runMigrations: boolean;
}

/** Failed attempts in a row before a warning is logged. */
const ATTEMPTS_BEFORE_WARNING = 5;
const POLICY: BackoffPolicy = { firstMs: 1, rate: 1.5, maxMs: 2000, jitter: 0.5 };

/** How long an open transaction, which may hold locks, waits for the system database. */
const PREPARE_TIMEOUT_MS = 1000;

/** A transaction that times out is rolled back and retried, so that it does not hold its locks. */
function withPrepareTimeout(clock: Clock, ready: Promise<void>): Promise<void> {
  return withTimeLimit(clock, PREPARE_TIMEOUT_MS, ready, () => {
    throw conflict(`The system database did not answer within ${PREPARE_TIMEOUT_MS / 1000} s.`);
  });
}

/** The answer to a commit may be that of a former primary. A retry looks the checkpoint up. */
function confirmed(step: TransactionStep, kept: KeptOutcome): KeptOutcome {
  if (kept.durability !== 'checkpointed' || !step.joined.isDoubtful) return kept;
  throw conflict('Another database server was promoted before the commit was confirmed.');
}

export class TransactionHandler<Client> implements StepTransactionHandler {
  readonly name: string;
  readonly dsType: string;
  readonly #options: HandlerOptions<Client>;
  readonly #completions: CompletionTable<Client>;
  readonly #shared: SharedStores<Client>;

  constructor(options: HandlerOptions<Client>) {
    this.name = options.name;
    this.dsType = options.dsType;
    this.#options = options;
    this.#completions = new CompletionTable(options.driver, options.schemaName);
    this.#shared = new SharedStores(options.driver, this.#completions);
  }

  /** Connects, and makes sure that the completion table exists. */
  async initialize(): Promise<void> {
    const { driver, schemaName, runMigrations } = this.#options;
    try {
      await driver.open();
      if (driver.dialect === 'sqlite') return await this.#initializeSqlite();
      await driver.transact({}, async (client) => {
        const exec = (text: string) => driver.query(client, text, []);
        if (runMigrations) await migrateDataSourcePG(exec, schemaName);
        else await verifyDataSourcePG(exec, schemaName, this.name);
      });
    } catch (error) {
      if (error instanceof DBOSError) throw error;
      throw new DBOSInitializationError(this.#whyUnusable(error), error as Error);
    }
  }

  /** Checks first: creating the table takes the write lock, which another process may hold for long. */
  async #initializeSqlite(): Promise<void> {
    const { driver, runMigrations } = this.#options;
    const found = await driver.transact({ readOnly: true }, (client) => driver.query(client, FIND_TABLE_SQLITE, []));
    if (found.length > 0) return;
    if (runMigrations) await driver.transact({}, (client) => driver.query(client, CREATE_TABLE_SQLITE, []));
    else throw new DBOSInitializationError(this.#whyUnusable('runMigrations is false'));
  }

  #whyUnusable(error: unknown): string {
    const which = `${this.dsType} "${this.name}"`;
    const reason = error instanceof Error ? error.message : String(error);
    if (isConnectionFailure(error))
      return `${which} cannot reach its database: ${reason}. Check that it runs, and its URL.`;
    return (
      `${which} could neither find nor create its table transaction_completion: ${reason}. ` +
      `Call ${this.dsType}.initializeDBOSSchema with a role that may create tables.`
    );
  }

  destroy(): Promise<void> {
    return this.#options.driver.close();
  }

  deleteCheckpoints(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void> {
    return this.#completions.deleteFrom(workflowID, startStep, beforeCommit);
  }

  listRecorded(afterID: string, max: number): Promise<RecordedWorkflow[]> {
    return this.#completions.list(afterID, max);
  }

  deleteUnmarked(workflowIDs: readonly string[], startStep: number, beforeCommit: () => Promise<void>): Promise<void> {
    return this.#completions.deleteUnmarked(workflowIDs, startStep, beforeCommit);
  }

  deleteCheckpointsOfAll(workflowIDs: readonly string[], beforeCommit: () => Promise<void>): Promise<void> {
    return this.#completions.deleteAll(workflowIDs, beforeCommit);
  }

  /** For calls outside of workflows. In a workflow the engine calls `performTransaction`. */
  async invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return> {
    const options = transactionOptionsOf(config);
    const body = async (): Promise<Return> => func.apply(target, args);
    const { outcome } = await this.#untilSettled(undefined, () => this.#attempt(options, body));
    if (outcome.kind === 'error') throw outcome.error;
    return outcome.value as Return;
  }

  performTransaction(step: TransactionStep, config: unknown, body: () => Promise<unknown>): Promise<KeptOutcome> {
    const options = transactionOptionsOf(config);
    return options.readOnly ? this.#runReading(step, options, body) : this.#runRecorded(step, options, body);
  }

  async #runReading(
    step: TransactionStep,
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
  ): Promise<KeptOutcome> {
    await step.barrier();
    return this.#untilSettled(step, () => this.#attempt(options, body));
  }

  #runRecorded(
    step: TransactionStep,
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
  ): Promise<KeptOutcome> {
    let isRepeated = false;
    let failed: KeptOutcome | undefined;
    return this.#untilSettled(step, async () => {
      const chosen = this.#storeFor(step, options);
      const store = isPromise(chosen) ? await chosen : chosen;
      if (isRepeated || !store.prepare) await step.barrier();
      const found = isRepeated || !step.isFirstRun ? await store.find(step) : undefined;
      if (found) return found;
      isRepeated = true;
      const kept: KeptOutcome = failed ?? (await this.#attempt(options, body, { step, store }));
      const { outcome } = kept;
      if (outcome.kind === 'value') return confirmed(step, kept);
      // If the record has to be retried, the function need not run again.
      failed = kept;
      return confirmed(step, { outcome, durability: await this.#recordError(step, store, outcome.error) });
    });
  }

  #storeFor(step: TransactionStep, options: PGTransactionConfig): MaybePromise<OutcomeStore<Client>> {
    return andThen<boolean, OutcomeStore<Client>>(this.#isShared(step), (isShared) =>
      isShared ? this.#shared.for(step, options) : this.#completions,
    );
  }

  /** An error that cannot be recorded is still the outcome. Its checkpoint has to do. */
  async #recordError(step: TransactionStep, store: OutcomeStore<Client>, error: unknown): Promise<Durability> {
    try {
      return await store.recordError(step, error);
    } catch (failure) {
      if (shouldRetry(failure, { isStep: true })) throw failure;
      step.runtime.logger.warn(
        `Data source "${this.name}" cannot record the error of step "${step.name}": ${String(failure)}`,
      );
      return 'none';
    }
  }

  /** Retries until there is an outcome. */
  async #untilSettled(step: TransactionStep | undefined, attempt: () => Promise<KeptOutcome>): Promise<KeptOutcome> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!shouldRetry(error, { isStep: step !== undefined })) throw error;
        if (failures === ATTEMPTS_BEFORE_WARNING) {
          step?.runtime.logger.warn(`Data source "${this.name}" keeps retrying step "${step.name}": ${String(error)}`);
        }
        const delayMs = backoffMs(POLICY, failures);
        await (step ? step.waitToRetry(delayMs) : sleep(systemClock, delayMs));
      }
    }
  }

  /** One transaction. An error of the body is an outcome; an error that may be retried is thrown. */
  async #attempt(
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
    recording?: { readonly step: TransactionStep; readonly store: OutcomeStore<Client> },
  ): Promise<KeptOutcome> {
    let failed: StepOutcome | undefined;
    const { store } = recording ?? {};
    const mustBegin = (client: Client): boolean => store?.mustBegin?.(client) ?? false;
    try {
      return await this.#options.driver.transact({ ...options, mustBegin }, async (client) => {
        const record = recording && this.#beginRecord(client, recording);
        let value: unknown;
        try {
          value = await inClient(this.#options.owner, client, body);
        } catch (error) {
          await this.#throwIfPassing(client, options, error);
          failed = { kind: 'error', error };
          throw error;
        }
        return { outcome: { kind: 'value', value }, durability: record ? await record(value) : 'none' };
      });
    } catch (error) {
      // Some clients throw the failure of the rollback instead of the error that led to it.
      if (failed) return { outcome: failed, durability: 'none' };
      if (isOwnFault(error)) return { outcome: { kind: 'error', error }, durability: 'none' };
      if (error instanceof DBOSError || isConflict(error) || isConnectionFailure(error)) throw error;
      if (isPassing(error, { isOwn: false })) throw error;
      return { outcome: { kind: 'error', error }, durability: 'none' };
    }
  }

  /** Starts to prepare the record, concurrently with the body. The returned function writes it. */
  #beginRecord(
    client: Client,
    { step, store }: { readonly step: TransactionStep; readonly store: OutcomeStore<Client> },
  ): (value: unknown) => Promise<Durability> {
    const { clock } = step.runtime;
    const transaction = new OpenTransaction(client, clock);
    let ready = store.prepare?.(step, client);
    // Awaited after the body. If the body fails first, this failure does not matter.
    ready?.then(
      () => (ready = undefined),
      () => {},
    );
    const write = (value: unknown): Promise<Durability> => store.record(step, transaction, value);
    return (value) => {
      step.refuseHalted();
      return ready ? withPrepareTimeout(clock, ready).then(() => write(value)) : write(value);
    };
  }

  /** Throws an error of the body that is no outcome: the transaction may be retried. */
  async #throwIfPassing(client: Client, { readOnly }: PGTransactionConfig, error: unknown): Promise<void> {
    if (isConflict(error)) throw error;
    if (isPassing(error, { isOwn: true }) && !(readOnly && isReadOnlyViolation(error))) throw error;
    // The body may have lost a connection to something other than the database.
    if (isConnectionFailure(error) && (isClosed(error) || (await this.#isGone(client)))) throw error;
  }

  async #isGone(client: Client): Promise<boolean> {
    try {
      await this.#options.driver.query(client, 'SELECT 1', []);
      return false;
    } catch (error) {
      return isConnectionFailure(error);
    }
  }

  /** In a transaction of its own: a failed query would abort the step's transaction. */
  #isShared(step: TransactionStep): MaybePromise<boolean> {
    const { driver } = this.#options;
    return step.joined.isPossible(this, (text, values) =>
      driver
        .transact({ readOnly: true }, (client) => driver.query(client, text, values))
        .catch((error: unknown) => {
          if (isConnectionFailure(error) || isConflict(error)) throw error;
          // A database that refuses the query is not the system database.
          return [];
        }),
    );
  }
}
