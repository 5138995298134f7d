// Functions that always run in a transaction: the wrappers that the application calls instead of its own.
import { authorize } from './authorization.js';
import {
  type AnyConstructor,
  type FunctionName,
  intercept,
  type Registration,
  type Registry,
  type UserFunction,
} from './registry.js';
import { callTransaction } from './transactions.js';

export interface TransactionFunction {
  readonly dsName: string;
  readonly fn: UserFunction;
  /** What the data source gets as the configuration; the names in it say what is registered. */
  readonly config: FunctionName | undefined;
}

/** Registers a function and gives its wrapper. */
export function registerTransactionFunction(
  registry: Registry,
  { dsName, fn, config }: TransactionFunction,
): UserFunction {
  const { name = fn.name, className, ctorOrProto } = config ?? {};
  const isStatic = typeof ctorOrProto === 'function';
  const ownerClass = (isStatic ? ctorOrProto : ctorOrProto?.constructor) as AnyConstructor | undefined;
  const wrapper = function (this: unknown, ...args: unknown[]): Promise<unknown> {
    return callTransaction(registry, {
      dsName,
      name,
      config,
      invoke: (handler) => handler.invokeTransactionFunction(config, this, intercepted, ...(args as never[])),
      authorize: (context) => ({ ...context, assumedRole: authorize(context.engine, registration, context) }),
    });
  };
  Object.defineProperty(wrapper, 'name', { value: name });
  const registration: Registration = {
    name,
    kind: 'transaction',
    isInstance: ctorOrProto !== undefined && !isStatic,
    isMethod: ctorOrProto !== undefined,
    origFunction: fn,
    registeredFunction: wrapper,
    ownerClass,
    givenClassName: className,
    external: new Map(),
    parameters: [],
    interceptors: [],
    registeredAt: new Error('registered').stack ?? '',
  };
  const intercepted = async function (this: unknown, ...args: never[]): Promise<unknown> {
    const accepted = registration.interceptors.length > 0 ? await intercept(registration, args) : args;
    return fn.apply(this, accepted as never[]);
  };
  registry.add(registration);
  return wrapper;
}
