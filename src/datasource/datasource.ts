// What plugins use to run functions in transactions of their databases. Everything works on `DBOS`, unless another
// instance is given as the owner.
import { internals } from '../base/internals.js';
import {
  addDataSource,
  callTransaction,
  type DataSourceTransactionHandler,
  defaultRegistry,
  type FunctionName,
  type MethodDecorator,
  type Registry,
  registerTransactionFunction,
  type UserFunction,
} from '../engine/plugin.js';

/** What a data source offers to the application. */
export interface DBOSDataSource<Config extends { name?: string }> {
  readonly name: string;
  /** Runs a function in a transaction; in a workflow, as a step of that name. */
  runTransaction<T>(callback: () => Promise<T>, config?: Config): Promise<T>;
  /** Makes a function one that always runs in a transaction. Call the returned function instead of it. */
  registerTransaction<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config?: Config & FunctionName,
  ): (this: This, ...args: Args) => Promise<Return>;
  /** Decorator: does the same to a method. */
  transaction(config?: Config): MethodDecorator;
}

/** Whom a data source belongs to: `DBOS`, or what `createDBOS()` gives. */
export interface DataSourceOwner {
  readonly [internals]: { readonly registry: Registry };
}

const DEFAULT_NAME = '<default>';

/** Makes a data source known; before the launch, once for each name. */
export function registerDataSource(ds: DataSourceTransactionHandler, owner?: DataSourceOwner): void {
  addDataSource(owner?.[internals].registry ?? defaultRegistry, ds);
}

/** Runs a function in a transaction of the data source: as a step of that name in a workflow, and once elsewhere. */
export async function runTransaction<T>(
  callback: () => Promise<T>,
  funcName: string,
  options: { readonly dsName?: string; readonly config?: unknown; readonly owner?: DataSourceOwner } = {},
): Promise<T> {
  const { dsName = DEFAULT_NAME, config = {}, owner } = options;
  const value = await callTransaction(owner?.[internals].registry ?? defaultRegistry, {
    dsName,
    name: funcName,
    config,
    target: undefined,
    func: callback,
    args: [],
  });
  // What the callback returned, or a copy of it.
  return value as T;
}

/** Makes a function one that always runs in a transaction of the data source. Call the returned function instead. */
export function registerTransaction<This, Args extends unknown[], Return, Config extends FunctionName>(
  dsName: string,
  func: (this: This, ...args: Args) => Promise<Return>,
  config?: Config,
  owner?: DataSourceOwner,
): (this: This, ...args: Args) => Promise<Return> {
  // The wrapper takes and gives what the function does.
  return registerTransactionFunction(owner?.[internals].registry ?? defaultRegistry, func as unknown as UserFunction, {
    dsName,
    config,
  }) as unknown as typeof func;
}
