// The base class of all data sources: what the application calls. An adapter adds its constructor and its driver.
import { internals } from '../../kernel/base/internals.js';
import { DBOSInvalidWorkflowTransitionError } from '../../kernel/errors/errors.js';
import {
  currentClient,
  decorateTransaction,
  defaultRegistry,
  type FunctionName,
  type MethodDecorator,
  type Registry,
} from '../../run/plugin.js';
import type { DataSourceMigrationOptions } from './completion-schema.js';
import {
  type DataSourceOwner,
  type DBOSDataSource,
  registerDataSource,
  registerTransaction,
  runTransaction,
} from './datasource.js';
import type { PGIsolationLevel, TransactionDriver } from './driver.js';
import { TransactionHandler } from './handler.js';

export interface DataSourceOptions extends DataSourceMigrationOptions {
  /** The schema of the completion table, on Postgres. Default: `dbos`. */
  readonly schemaName?: string;
  /** The instance whose workflows use the data source. Default: `DBOS`. */
  readonly owner?: DataSourceOwner;
}

/** The options of a transaction, and the name of its step. */
export interface TransactionConfig {
  /** Default: the database's. */
  isolationLevel?: PGIsolationLevel | Lowercase<PGIsolationLevel>;
  /** Default: false. */
  readOnly?: boolean;
  name?: string;
}

export abstract class TransactionalDataSource<
  Client,
  Config extends { name?: string } = TransactionConfig,
> implements DBOSDataSource<Config> {
  readonly name: string;
  /** For the outbox, which publishes and consumes through the driver. */
  readonly [internals]: { readonly driver: TransactionDriver<Client>; readonly owner: DataSourceOwner | undefined };
  readonly #owner: DataSourceOwner | undefined;

  protected constructor(name: string, driver: TransactionDriver<Client>, options: string | DataSourceOptions = {}) {
    const {
      schemaName = 'dbos',
      runMigrations = true,
      owner,
    }: DataSourceOptions = typeof options === 'string' ? { schemaName: options } : options;
    this.name = name;
    this.#owner = owner;
    this[internals] = { driver, owner };
    const dsType = this.constructor.name;
    registerDataSource(new TransactionHandler({ name, dsType, owner: this, driver, schemaName, runMigrations }), owner);
  }

  /** The client of the current transaction. Everything done with it is part of the transaction. */
  get client(): Client {
    // Opened by this data source's driver, so it has this type.
    return clientOf((owner) => owner === this || this.#isCopy(owner), this.constructor.name) as Client;
  }

  /** A module that was loaded again made this data source. The first of its name opens the transactions. */
  #isCopy(owner: object): boolean {
    return this.#registry.isReloadable && (owner as { readonly name?: unknown }).name === this.name;
  }

  runTransaction<T>(callback: () => Promise<T>, config?: Config): Promise<T> {
    const { name: dsName } = this;
    return runTransaction(callback, config?.name ?? callback.name, { dsName, config, owner: this.#owner });
  }

  registerTransaction<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config?: Config & FunctionName,
  ): (this: This, ...args: Args) => Promise<Return> {
    return registerTransaction(this.name, func, config, this.#owner);
  }

  transaction(config?: Config): MethodDecorator {
    return decorateTransaction(this.#registry, { dsName: this.name, config });
  }

  get #registry(): Registry {
    return this.#owner?.[internals].registry ?? defaultRegistry;
  }
}

type AnyDataSource = abstract new (...args: never[]) => { readonly client: unknown };

/** The client of the current transaction, which any data source of the class may have opened. */
export function clientOfAny<Source extends AnyDataSource>(source: Source): InstanceType<Source>['client'] {
  return clientOf((owner) => owner instanceof source, source.name);
}

function clientOf(isOwner: (owner: object) => boolean, type: string): unknown {
  const current = currentClient();
  if (!current) {
    throw new DBOSInvalidWorkflowTransitionError(
      `Invalid use of ${type}.client outside of a transaction. Call it in runTransaction.`,
    );
  }
  if (isOwner(current.owner)) return current.client;
  throw new DBOSInvalidWorkflowTransitionError(
    `Invalid use of ${type}.client: the surrounding transaction belongs to another data source.`,
  );
}
