// Registers functions that always run in a transaction, and makes the wrappers that the application calls instead.
import { stackHere } from '../../kernel/base/log.js';
import { authorize } from '../../run/registration/authorization.js';
import { decorateMethod, functionOwnerOf, type MethodDecorator } from '../../run/registration/function-owner.js';
import { parametersOf } from '../../run/registration/parameter-names.js';
import {
  type FunctionName,
  intercept,
  type Registration,
  type Registry,
  type UserFunction,
} from '../../run/registration/registry.js';
import { callTransaction } from './call-transaction.run.js';

export interface TransactionSettings {
  readonly dsName: string;
  /** Passed to the data source. Its name fields say what is registered. */
  readonly config: FunctionName | undefined;
}

/** Returns the wrapper to call instead of the function. */
export function registerTransactionFunction(
  registry: Registry,
  given: UserFunction,
  { dsName, config }: TransactionSettings,
  owner = functionOwnerOf(given, config ?? {}),
): UserFunction {
  const { name } = owner;
  const fn = registry.originalOf(given);
  const intercepted = async function (this: unknown, ...args: never[]): Promise<unknown> {
    const accepted = registration.interceptors.length > 0 ? await intercept(registration, args) : args;
    return fn.apply(this, accepted as never[]);
  };
  const wrapper = function (this: unknown, ...args: never[]): Promise<unknown> {
    return callTransaction(registry, {
      dsName,
      name,
      config,
      target: this,
      func: intercepted,
      args,
      authorize: (context) => ({ ...context, assumedRole: authorize(context.runtime, registration, context) }),
    });
  };
  Object.defineProperty(wrapper, 'name', { value: name });
  const registration: Registration = {
    ...owner,
    kind: 'transaction',
    origFunction: fn,
    registeredFunction: wrapper,
    external: new Map(),
    parameters: parametersOf(fn, owner),
    interceptors: [],
    registeredAt: stackHere('registered'),
  };
  registry.add(registration);
  return wrapper;
}

/** A method decorator for `registerTransactionFunction`. */
export function decorateTransaction(registry: Registry, settings: TransactionSettings): MethodDecorator {
  return decorateMethod(
    registry,
    (fn, owner) => registerTransactionFunction(registry, fn, settings, owner),
    settings.config?.name,
  );
}
