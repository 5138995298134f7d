// The functions that plugins use to run code in transactions of their databases. They work on `DBOS`, unless `owner`
// names another instance.
import { internals } from '../../kernel/base/internals.js';
import {
  addDataSource,
  callTransaction,
  type DataSourceTransactionHandler,
  defaultRegistry,
  type FunctionName,
  type Registry,
  registerTransactionFunction,
  type UserFunction,
} from '../../run/plugin.js';

/** The interface of a data source to the application. */
export interface DBOSDataSource<Config extends { name?: string }> {
  readonly name: string;
  /** Runs a function in a transaction. In a workflow it is a step. */
  runTransaction<T>(callback: () => Promise<T>, config?: Config): Promise<T>;
  /** Makes a function always run in a transaction. Call the returned function instead. */
  registerTransaction<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config?: Config & FunctionName,
  ): (this: This, ...args: Args) => Promise<Return>;
  /** Decorator: makes a method always run in a transaction. Data sources of Everstep return a standard one as well. */
  transaction(
    config?: Config,
  ): <This, Args extends unknown[], Return>(
    target: object,
    propertyKey: string,
    descriptor: TypedPropertyDescriptor<(this: This, ...args: Args) => Promise<Return>>,
  ) => TypedPropertyDescriptor<(this: This, ...args: Args) => Promise<Return>> | void;
}

/** The instance that a data source belongs to: `DBOS`, or one made by `createDBOS()`. */
export interface DataSourceOwner {
  readonly [internals]: { readonly registry: Registry };
}

const DEFAULT_NAME = '<default>';

/** Registers a data source. Call it before launch, once per name. */
export function registerDataSource(ds: DataSourceTransactionHandler, owner?: DataSourceOwner): void {
  addDataSource(owner?.[internals].registry ?? defaultRegistry, ds);
}

/** Runs a function in a transaction of the data source. In a workflow it is a step named `funcName`. */
export function runTransaction<T>(
  callback: () => Promise<T>,
  funcName: string,
  options: { readonly dsName?: string; readonly config?: unknown; readonly owner?: DataSourceOwner } = {},
): Promise<T> {
  const { dsName = DEFAULT_NAME, config = {}, owner } = options;
  // The callback's value, or a copy of it.
  return callTransaction(owner?.[internals].registry ?? defaultRegistry, {
    dsName,
    name: funcName,
    config,
    target: undefined,
    func: callback,
    args: [],
  }) as Promise<T>;
}

/** Makes a function always run in a transaction of the data source. Call the returned function instead. */
export function registerTransaction<This, Args extends unknown[], Return, Config extends FunctionName>(
  dsName: string,
  func: (this: This, ...args: Args) => Promise<Return>,
  config?: Config,
  owner?: DataSourceOwner,
): (this: This, ...args: Args) => Promise<Return> {
  // The wrapper has the signature of the function.
  return registerTransactionFunction(owner?.[internals].registry ?? defaultRegistry, func as unknown as UserFunction, {
    dsName,
    config,
  }) as unknown as typeof func;
}
