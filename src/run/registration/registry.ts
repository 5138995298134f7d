// What the application has registered: workflows, steps, transactions, classes, configured instances, queues, schedules
// and data sources. One registry per engine.
import { newID } from '../../kernel/base/ids.js';
import { KnownErrors } from '../../kernel/codec/error-classes.js';
import { functionKey, instanceKey } from '../../kernel/workflow/function-key.js';
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import type { HistoryLevel } from '../../features/history/event.js';
import type { QueueRecord } from '../../features/queue/queue.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { MethodParameter } from './method-parameter.js';
import type { CodeSchedule } from '../../features/schedule/schedule-entry.run.js';
import type { DataSourceTransactionHandler } from '../../plugins/transaction/data-source-handler.run.js';
import { DBOSConflictingRegistrationError, DBOSNotRegisteredError } from '../../kernel/errors/errors.js';

/** Any async function of the application. Its signature is checked where it is registered. */
export type UserFunction = (this: unknown, ...args: never[]) => Promise<unknown>;
export type AnyConstructor = abstract new (...args: never[]) => object;

/** An object with `parse`, or any Standard Schema (zod, valibot, arktype …). */
export type InputSchema =
  | { parse(input: unknown): unknown }
  | {
      readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        validate(value: unknown): unknown;
      };
    };

export interface WorkflowConfig {
  /** How often a workflow may be recovered before it becomes a dead letter. Default: 100. */
  readonly maxRecoveryAttempts?: number;
  readonly name?: string;
  readonly serialization?: WorkflowSerializationFormat;
  /** How long a wait has to be for a workflow to leave memory meanwhile; 0: it never does. Default: that of the configuration. */
  readonly parkAfterMs?: number;
  /** Validates, and may transform, the array of arguments before each run. */
  readonly inputSchema?: InputSchema;
  /** How much of its history is kept. Default: `history` of the configuration. */
  readonly history?: HistoryLevel;
}

export interface FunctionName {
  readonly name?: string;
  readonly className?: string;
  readonly ctorOrProto?: object;
}

/** Runs before the function and may replace the arguments. Interceptors run in the order of their sequence numbers. */
export type EntryInterceptor = (args: unknown[]) => unknown[] | Promise<unknown[]>;

export interface ClassRegistration {
  readonly constructorFunction: AnyConstructor | undefined;
  alias?: string;
  defaultRoles?: readonly string[];
  readonly external: Map<unknown, object>;
}

export interface Registration {
  readonly name: string;
  readonly kind: 'workflow' | 'step' | 'transaction' | 'plain';
  readonly isInstance: boolean;
  /** Whether it belongs to a class, which may not be known yet. */
  readonly isMethod: boolean;
  /** The function that the application wrote. */
  readonly origFunction: UserFunction;
  /** The wrapper that the application calls instead. */
  registeredFunction: UserFunction;
  /** With standard decorators, an instance method's class is unknown until its first instance is created. */
  ownerClass: AnyConstructor | undefined;
  readonly givenClassName: string | undefined;
  readonly external: Map<unknown, object>;
  readonly parameters: MethodParameter[];
  requiredRoles?: readonly string[];
  readonly interceptors: { readonly run: EntryInterceptor; readonly sequence: number }[];
  readonly registeredAt: string;
  /** Steps only. */
  readonly stepConfig?: object;
}

export interface WorkflowRegistration extends Registration {
  readonly kind: 'workflow';
  readonly config: WorkflowConfig;
}

/** What the registry knows of its engine. `engine.ts` has the full type; naming it here would be an import cycle. */
export interface LaunchedEngine {
  readonly runtime: { readonly logger: DLogger };
}

const MAX_RECOVERY_ATTEMPTS = 100;

export function maxRecoveryAttempts(registration: WorkflowRegistration): number {
  // As in DBOS, zero means the default.
  return registration.config.maxRecoveryAttempts || MAX_RECOVERY_ATTEMPTS;
}

/** Passes the arguments through the function's interceptors. */
export async function intercept(registration: Registration, args: unknown[]): Promise<unknown[]> {
  let accepted = args;
  for (const interceptor of registration.interceptors) accepted = await interceptor.run(accepted);
  return accepted;
}

export class Registry {
  readonly #byFunction = new Map<UserFunction, Registration>();
  readonly #registrations = new Set<Registration>();
  readonly #classes = new Map<AnyConstructor, ClassRegistration>();
  readonly #classesByName = new Map<string, ClassRegistration>();
  readonly #instances = new Map<string, object>();
  readonly #knownInstances = new WeakSet<object>();
  /** In-memory queues, by name. */
  readonly queues = new Map<string, QueueRecord>();
  /** Classes of errors. */
  readonly errors = new KnownErrors(newID());
  /** Data sources, by name. */
  readonly dataSources = new Map<string, DataSourceTransactionHandler>();
  /** Set while an engine is launched with this registry. */
  engine: LaunchedEngine | undefined;
  /** From the call of `shutdown` to its end. */
  isShuttingDown = false;
  /** Schedules defined in code. */
  readonly codeSchedules = new Set<CodeSchedule>();
  /** Queues that are served even if `listenQueues` does not name them. */
  readonly alwaysServed = new Set<string>();
  /**
   * Whether modules are evaluated again, as by the bundles and the hot reload of Next.js. What they register replaces what
   * has its name, even after launch. Otherwise only functions with the same source do.
   */
  isReloadable = false;
  #launchStack: string | undefined;
  #builtIn: readonly WorkflowRegistration[] = [];
  #byKey: Map<string, WorkflowRegistration> | undefined;

  get registrations(): Iterable<Registration> {
    return this.#registrations;
  }

  /** At launch: refuses further registrations, and class names that are not unique. Adds workflows of the library's own. */
  freeze(launchStack: string, builtIn: readonly WorkflowRegistration[]): void {
    this.#launchStack = launchStack;
    this.#builtIn = builtIn;
    const names = new Map<string, AnyConstructor>();
    for (const { ownerClass } of this.#registrations) {
      if (!ownerClass) continue;
      const name = this.classNameOf(ownerClass);
      const other = names.get(name);
      if (other && other !== ownerClass) {
        throw new DBOSConflictingRegistrationError(
          `Two classes are named "${name}". Give one of them another name with @DBOS.className('…').`,
        );
      }
      names.set(name, ownerClass);
    }
    this.#byKey = this.#keyed();
  }

  #keyed(): Map<string, WorkflowRegistration> {
    const workflows = [...this.#registrations].filter(({ kind }) => kind === 'workflow') as WorkflowRegistration[];
    const all = [...this.#builtIn, ...workflows];
    return new Map(all.map((one) => [functionKey(this.classNameFor(one), one.name), one]));
  }

  /** Called at the first instance of a class, which may be created after launch. */
  assignClass(registration: Registration, ownerClass: AnyConstructor): void {
    registration.ownerClass = ownerClass;
    this.#replaceDuplicate(registration);
    if (this.#byKey) this.#byKey = this.#keyed();
  }

  /** At shutdown: allows registrations again. */
  thaw(): void {
    this.#launchStack = undefined;
    this.#byKey = undefined;
  }

  clear(): void {
    this.thaw();
    this.#byFunction.clear();
    this.#registrations.clear();
    this.#classes.clear();
    this.#classesByName.clear();
    this.#instances.clear();
    this.queues.clear();
    this.errors.clear();
    this.dataSources.clear();
    this.alwaysServed.clear();
    this.codeSchedules.clear();
  }

  addQueue(queue: QueueRecord): void {
    if (this.queues.has(queue.name) && !this.isReloadable) {
      throw new DBOSConflictingRegistrationError(`Workflow Queue '${queue.name}' defined multiple times`);
    }
    this.queues.set(queue.name, queue);
  }

  /** Adds a function. It is found by the original as well as by its wrapper. */
  add<R extends Registration>(registration: R): R {
    if (!this.#hasCopy(registration)) this.refuseAfterLaunch();
    const known = this.#byFunction.get(registration.origFunction);
    if (known && known.kind !== 'plain' && known.kind !== registration.kind) {
      throw new DBOSConflictingRegistrationError(
        `Operation (Name: ${this.fullNameOf(known)}) is registered with conflicting function type: ` +
          `it is a ${known.kind} and cannot be a ${registration.kind} as well.`,
      );
    }
    this.#replaceDuplicate(registration);
    if (known?.kind === 'plain') this.#replacePlain(known, registration);
    this.#registrations.add(registration);
    this.#byFunction.set(registration.origFunction, registration);
    this.#byFunction.set(registration.registeredFunction, registration);
    if (this.#byKey && registration.kind === 'workflow') this.#byKey = this.#keyed();
    return registration;
  }

  /** Plugins may associate information with a function before it is registered. Keep it. */
  #replacePlain(plain: Registration, registration: Registration): void {
    this.#registrations.delete(plain);
    this.#byFunction.set(plain.registeredFunction, registration);
    registration.requiredRoles ??= plain.requiredRoles;
    for (const [external, information] of plain.external) registration.external.set(external, information);
    registration.parameters.splice(0, Infinity, ...plain.parameters);
  }

  /** Rows name the workflow function to run, so names of workflows are unique. Nothing finds a step by its name. */
  #replaceDuplicate(registration: Registration): void {
    if (registration.kind !== 'workflow') return;
    for (const other of this.#registrations) {
      if (other === registration || other.kind !== 'workflow' || other.name !== registration.name) continue;
      if (this.#scopeOf(other) === undefined || this.#scopeOf(other) !== this.#scopeOf(registration)) continue;
      if (this.#isCopy(other, registration)) {
        this.#replace(other, registration);
        continue;
      }
      throw new DBOSConflictingRegistrationError(
        `Operation (Name: ${this.fullNameOf(registration)}) is already registered. It was registered first at:\n${other.registeredAt}`,
      );
    }
  }

  /** Calls and starts by the function of the other module find the new one. */
  #replace(old: Registration, registration: Registration): void {
    this.#registrations.delete(old);
    this.#byFunction.set(old.origFunction, registration);
    this.#byFunction.set(old.registeredFunction, registration);
    registration.interceptors.push(...old.interceptors);
  }

  /** The same function, registered by another bundle or by a module that was loaded again. */
  #isCopy(other: Registration, registration: Registration): boolean {
    return this.isReloadable || other.origFunction.toString() === registration.origFunction.toString();
  }

  #hasCopy(registration: Registration): boolean {
    return [...this.#registrations].some(
      (other) =>
        other.kind === registration.kind &&
        other.name === registration.name &&
        (this.#scopeOf(registration) ?? this.#scopeOf(other)) === this.#scopeOf(other) &&
        this.#isCopy(other, registration),
    );
  }

  /** The class name within which names are unique; undefined while the class is unknown. */
  #scopeOf(registration: Registration): unknown {
    if (registration.ownerClass) return this.classNameOf(registration.ownerClass);
    if (registration.givenClassName !== undefined) return registration.givenClassName;
    return registration.isMethod ? undefined : '';
  }

  findByFunction(fn: unknown): Registration | undefined {
    return this.#byFunction.get(fn as UserFunction);
  }

  /** The application's function behind a wrapper that is neither workflow nor step, as of a decorator that ran before. */
  originalOf(fn: UserFunction): UserFunction {
    const known = this.findByFunction(fn);
    return known?.kind === 'plain' ? known.origFunction : fn;
  }

  workflowOf(fn: unknown, name: string): WorkflowRegistration {
    const registration = this.findByFunction(fn);
    if (registration?.kind === 'workflow') return registration as WorkflowRegistration;
    throw new DBOSNotRegisteredError(name, `${name} is not a registered DBOS workflow function`);
  }

  /** The workflow function that a row names. */
  findWorkflow(className: string | null, name: string): WorkflowRegistration | undefined {
    return this.#byKey?.get(functionKey(className, name));
  }

  /** The keys of all workflow functions, as claims compare them. */
  get workflowKeys(): string[] {
    return [...(this.#byKey?.keys() ?? [])];
  }

  /** The keys of all configured instances, as claims compare them. */
  get instanceKeys(): string[] {
    return [...this.#instances.keys()];
  }

  keyOf(registration: Registration): string {
    return `${this.classNameFor(registration)}.${registration.name}`;
  }

  /** The class name stored with a workflow; empty for a function without a class. */
  classNameFor(registration: Registration): string {
    if (registration.ownerClass) return this.classNameOf(registration.ownerClass);
    return registration.givenClassName ?? '';
  }

  fullNameOf(registration: Registration): string {
    const className = this.classNameFor(registration);
    return className === '' ? registration.name : `${className}.${registration.name}`;
  }

  classNameOf(constructorFunction: AnyConstructor): string {
    return this.#classes.get(constructorFunction)?.alias ?? constructorFunction.name;
  }

  classOf(constructorFunction: AnyConstructor): ClassRegistration {
    let known = this.#classes.get(constructorFunction);
    if (!known) this.#classes.set(constructorFunction, (known = { constructorFunction, external: new Map() }));
    return known;
  }

  /** Creates an entry if there is none: plugins may name a class before it is registered. */
  classNamed(name: string): ClassRegistration {
    for (const [constructorFunction, registration] of this.#classes) {
      if (this.classNameOf(constructorFunction) === name) return registration;
    }
    let known = this.#classesByName.get(name);
    if (!known)
      this.#classesByName.set(name, (known = { constructorFunction: undefined, alias: name, external: new Map() }));
    return known;
  }

  setAlias(constructorFunction: AnyConstructor, alias: string): void {
    if (!this.isReloadable) this.refuseAfterLaunch();
    const registration = this.classOf(constructorFunction);
    if (registration.alias !== undefined) {
      throw new DBOSConflictingRegistrationError(
        `Class "${constructorFunction.name}" already has the name "${registration.alias}".`,
      );
    }
    registration.alias = alias;
  }

  addInstance(instance: object, className: string, name: string): void {
    const key = instanceKey(className, name);
    if (this.#instances.has(key) && !this.isReloadable) {
      throw new DBOSConflictingRegistrationError(
        `An instance of class "${className}" with the name "${name}" exists already.`,
      );
    }
    this.#instances.set(key, instance);
    this.#knownInstances.add(instance);
  }

  get instances(): Iterable<object> {
    return this.#instances.values();
  }

  /** Whether it is a configured instance, of this or an earlier load of its module. */
  hasInstance(instance: object): boolean {
    return this.#knownInstances.has(instance);
  }

  findInstance(className: string, name: string): object | undefined {
    return this.#instances.get(instanceKey(className, name));
  }

  refuseAfterLaunch(): void {
    if (this.#launchStack === undefined) return;
    throw new DBOSConflictingRegistrationError(
      `DBOS code is being registered after DBOS.launch(). Register everything first, then launch. It was launched at:\n${this.#launchStack}`,
    );
  }
}
