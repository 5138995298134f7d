// Registers functions: the wrappers that the application calls instead of its own functions, and the decorators that
// create them. Supports both TypeScript's legacy decorators and the standard ones.
import type { WorkflowHandle } from '../../operator/outcome.js';
import { DBOSInvalidWorkflowTransitionError, DBOSNotRegisteredError } from '../../kernel/errors/errors.js';
import { consoleLogger, stackHere } from '../../kernel/base/log.js';
import { type Context, currentContext, inContext, isWorkflowCode } from '../../run/ambient.js';
import { attempted } from '../../run/shielded.js';
import { authorize } from '../../run/registration/authorization.js';
import { Engine } from '../../run/engine.js';
import { parametersOf } from '../../run/registration/parameter-names.js';
import {
  type FunctionName,
  intercept,
  type Registration,
  type Registry,
  type UserFunction,
  type WorkflowConfig,
  type WorkflowRegistration,
} from '../../run/registration/registry.js';
import {
  decorateMethod,
  type FunctionOwner,
  functionOwnerOf,
  isStandardContext,
  type MethodDecorator,
} from '../../run/registration/function-owner.js';
import type { StartRequest, StartWorkflowParams } from '../../run/new-workflow.js';
import { callWorkflow, startWorkflow } from '../../run/start.js';
import { callback, stepConfigCheck, workflowConfigCheck } from './function-checks.js';
import { runStep, type StepConfig } from '../../run/step.js';

export { isStandardContext, type MethodDecorator };

/** What the wrappers need from their instance. */
export interface Host {
  readonly registry: Registry;
  /** The launched engine that runs this registry's functions. */
  engineFor(reason: string): Engine;
  contextFor(called: string): Context | undefined;
}

/** The name of a configured instance, if the object is one. */
export type InstanceName = (object: unknown) => string | undefined;

function newRegistration(fn: UserFunction, kind: Registration['kind'], owner: FunctionOwner): Registration {
  return {
    name: owner.name,
    kind,
    isInstance: owner.isInstance,
    isMethod: owner.isMethod,
    origFunction: fn,
    registeredFunction: fn,
    ownerClass: owner.ownerClass,
    givenClassName: owner.givenClassName,
    external: new Map(),
    parameters: parametersOf(fn, owner),
    interceptors: [],
    registeredAt: stackHere('registered'),
  };
}

/** Places that are warned of. */
const AWAITED_MAX = 100;

export class Functions {
  readonly #host: Host;
  readonly #instanceName: InstanceName;
  /** Where code has awaited a start that it did not make. */
  readonly #awaited = new Set<string>();

  constructor(host: Host, instanceName: InstanceName) {
    this.#host = host;
    this.#instanceName = instanceName;
  }

  registerWorkflow(given: UserFunction, config: FunctionName & WorkflowConfig, owner?: FunctionOwner): UserFunction {
    callback.read(given, 'func');
    workflowConfigCheck.read(config, 'config');
    const fn = this.#host.registry.originalOf(given);
    const named = owner ?? functionOwnerOf(fn, config);
    const registration: WorkflowRegistration = {
      ...newRegistration(fn, 'workflow', named),
      kind: 'workflow',
      config,
    };
    return this.#add(registration, (target, args) =>
      callWorkflow(this.#host.engineFor('workflows'), this.requestFor(registration, target, args, {})),
    );
  }

  registerStep(given: UserFunction, config: FunctionName & StepConfig, owner?: FunctionOwner): UserFunction {
    callback.read(given, 'func');
    stepConfigCheck.read(config, 'config');
    const fn = this.#host.registry.originalOf(given);
    const registration: Registration = {
      ...newRegistration(fn, 'step', owner ?? functionOwnerOf(fn, config)),
      stepConfig: config,
    };
    return this.#add(registration, (target, args) => {
      // Not async: that would make two more promises of the one that the function returns.
      const body = (): Promise<unknown> => {
        this.#refuseUnregisteredInstance(registration, target);
        if (registration.interceptors.length === 0) return fn.apply(target, args as never[]);
        return intercept(registration, args).then((accepted) => fn.apply(target, accepted as never[]));
      };
      return this.callStep(registration.name, config, body, { registration, args });
    });
  }

  /** The registration of a function that a plugin refers to; creates a plain one, neither workflow nor step, if needed. */
  registerPlain(fn: UserFunction, owner: FunctionName | FunctionOwner): Registration {
    const { registry } = this.#host;
    const known = registry.findByFunction(fn);
    if (known) return known;
    const registration = newRegistration(fn, 'plain', 'isMethod' in owner ? owner : functionOwnerOf(fn, owner));
    this.#add(registration, (receiver, args) =>
      this.#callAuthorized(registration, async () =>
        fn.apply(receiver, (await intercept(registration, args)) as never[]),
      ),
    );
    return registration;
  }

  /** Calls a function that takes no number, if the caller has a required role. */
  #callAuthorized<R>(registration: Registration, body: () => Promise<R>): Promise<R> {
    const context = this.#host.contextFor(registration.name);
    const assumedRole = authorize(this.#host, registration, context);
    if (!context || assumedRole === (context.assumedRole ?? '')) return body();
    return inContext({ ...context, assumedRole }, body);
  }

  #add(registration: Registration, call: (target: unknown, args: unknown[]) => Promise<unknown>): UserFunction {
    const wrapper = function (this: unknown, ...args: unknown[]): Promise<unknown> {
      return attempted(() => call(this, args));
    };
    Object.defineProperty(wrapper, 'name', { value: registration.name });
    registration.registeredFunction = wrapper;
    this.#host.registry.add(registration);
    return wrapper;
  }

  /** Runs a function as a step of the surrounding workflow; elsewhere it is a plain call. */
  callStep<R>(
    name: string,
    config: StepConfig,
    body: () => Promise<R>,
    { registration, args }: { readonly registration?: Registration; readonly args?: readonly unknown[] } = {},
  ): Promise<R> {
    const context = this.#host.contextFor(name);
    if (context?.transactionID !== undefined) {
      throw new DBOSInvalidWorkflowTransitionError(`Invalid call to step "${name}" inside a \`transaction\``);
    }
    if (!isWorkflowCode(context)) {
      return registration ? this.#callAuthorized(registration, () => promised(body)) : promised(body);
    }
    const stepID = context.run.nextStepID();
    if (!registration) return runStep(context, { stepID, name, config }, body);
    const assumedRole = authorize(context.runtime, registration, context);
    const stepContext = assumedRole === context.assumedRole ? context : { ...context, assumedRole };
    return runStep(stepContext, { stepID, name, config, args }, body);
  }

  /** The workflow to start, from a registration and the object it is called on. */
  requestFor(
    registration: WorkflowRegistration,
    target: unknown,
    args: unknown[],
    params: StartWorkflowParams,
  ): StartRequest {
    this.#refuseUnregisteredInstance(registration, target);
    // A function registered with a class may become a method of its instances later.
    const configName = (registration.isMethod ? this.#instanceName(target) : undefined) ?? null;
    // A static method always has its class as `this`, as it would after a recovery.
    const receiver = configName === null ? (registration.ownerClass ?? target) : target;
    const className = this.#host.registry.classNameFor(registration) || null;
    const { name, config } = registration;
    const callee = { registration, name, className, configName, format: config.serialization };
    return { callee, target: receiver, args, params };
  }

  #refuseUnregisteredInstance(registration: Registration, target: unknown): void {
    if (!registration.isInstance) return;
    const name = this.#instanceName(target);
    const isRegistered = name !== undefined && this.#host.registry.hasInstance(target as object);
    if (isRegistered || (registration.kind === 'step' && name !== undefined)) return;
    throw new DBOSInvalidWorkflowTransitionError(
      `"${registration.name}" is a method of a ConfiguredInstance and was called on another object.`,
    );
  }

  /** Starts a workflow instead of calling it: a function for a function, a proxy for a class or an instance. */
  starterOf(target: unknown, params: StartWorkflowParams): unknown {
    if (target === undefined || target === null) {
      throw new DBOSNotRegisteredError(
        String(target),
        `DBOS.startWorkflow was given ${String(target)}. Pass a registered workflow, and look for circular imports.`,
      );
    }
    const { registry } = this.#host;
    if (typeof target === 'function' && registry.findByFunction(target)) {
      return this.#start(target, target.name, undefined, params);
    }
    const callable = typeof target === 'function' ? target : () => {};
    return new Proxy(callable, {
      get: (_, property) => {
        const fn = (target as Record<PropertyKey, unknown>)[property];
        if (registry.findByFunction(fn)) return this.#start(fn, String(property), target, params);
        throw new DBOSNotRegisteredError(
          String(property),
          `${String(property)} is not a registered DBOS workflow function`,
        );
      },
      apply: (_, __, args: unknown[]) =>
        this.#start(target, (target as { name?: string }).name ?? 'The function', undefined, params)(...args),
    });
  }

  #start(fn: unknown, name: string, receiver: unknown, params: StartWorkflowParams) {
    const start = (...args: unknown[]): Promise<WorkflowHandle<unknown>> =>
      attempted(() => {
        const { registry } = this.#host;
        const registration = registry.findByFunction(fn);
        if (registration?.kind === 'step' || registration?.kind === 'transaction') {
          throw new DBOSInvalidWorkflowTransitionError(
            `Attempt to start or enqueue ${registration.kind} "${name}". Only a workflow can be started.`,
          );
        }
        const workflow = registry.workflowOf(fn, name);
        return startWorkflow(this.#host.engineFor('workflows'), this.requestFor(workflow, receiver, args, params));
      });
    // An await reads it. It is no promise: nothing starts before it is called.
    return Object.defineProperty(start, 'then', { get: () => void this.#warnOfAwait(name) });
  }

  #warnOfAwait(name: string): void {
    // The line below this method, the getter and what it belongs to.
    const place = new Error().stack?.split('\n')[3]?.trim() ?? '';
    if (this.#awaited.has(place) || this.#awaited.size >= AWAITED_MAX) return;
    this.#awaited.add(place);
    const logger = currentContext()?.runtime.logger ?? Engine.launchedWith(this.#host.registry)?.runtime.logger;
    (logger ?? consoleLogger()).warn(
      `DBOS.startWorkflow(${name}) is awaited ${place}, but it starts nothing before what it returns is called: ` +
        `await DBOS.startWorkflow(${name})(…).`,
    );
  }

  /** A method decorator that lets only users with one of the roles call the function, be it a workflow, a step or neither. */
  requireRole(anyOf: readonly string[]): MethodDecorator {
    return this.decorate((fn, owner) => {
      const registration = this.registerPlain(fn, owner);
      registration.requiredRoles = anyOf;
      return registration.registeredFunction;
    });
  }

  /** A method decorator for both kinds of decorators. */
  decorate(register: (fn: UserFunction, owner: FunctionOwner) => UserFunction, name?: string): MethodDecorator {
    return decorateMethod(this.#host.registry, register, name);
  }
}

/** A function that is not async, or throws at once, is as good as one that is. */
async function promised<R>(body: () => Promise<R>): Promise<R> {
  return body();
}
