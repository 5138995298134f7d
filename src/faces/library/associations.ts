// Metadata that plugins attach to classes, functions and parameters during setup, and read at launch. A plugin is
// identified by a key: its constructor, an instance of it, or a name.
import {
  type AnyConstructor,
  type FunctionName,
  type Registration,
  type Registry,
  type UserFunction,
  type WorkflowConfig,
  type WorkflowRegistration,
} from '../../run/registration/registry.js';
import { infoIn, type MethodParameter } from '../../run/registration/method-parameter.js';
import type { Functions } from './functions.js';

/** A plugin's key. */
export type PluginKey = AnyConstructor | object | string;

/** A class, as plugins see it. */
export interface ClassRegistrationView {
  readonly name: string;
  readonly externalRegInfo: ReadonlyMap<unknown, object>;
  getRegisteredInfo(key: unknown): object;
}

/** A function, as plugins see it. */
export interface MethodRegistrationBase {
  readonly name: string;
  readonly className: string;
  /** The function's class; undefined if it has none, or none yet. */
  readonly defaults: ClassRegistrationView | undefined;
  /** Set for a workflow. */
  readonly workflowConfig?: WorkflowConfig;
  /** Set for a step. */
  readonly stepConfig?: object;
  readonly isInstance: boolean;
  readonly args: readonly MethodParameter[];
  readonly externalRegInfo: ReadonlyMap<unknown, object>;
  /** The application's own function. */
  readonly origFunction: UserFunction;
  /** The function to start as a workflow. */
  readonly registeredFunction: UserFunction;
  /** The wrapper that makes it a workflow or step; undefined for a plain function. */
  readonly wrappedFunction: UserFunction | undefined;
  /** Calls the function with its wrappers and interceptors. */
  invoke(receiver: unknown, args: readonly unknown[]): Promise<unknown>;
  getRequiredRoles(): string[];
  addEntryInterceptor(interceptor: MethodInterceptor, sequence?: number): void;
  getRegisteredInfo(key: unknown): object;
}

/** A plugin's interceptor: runs before the function and may replace the arguments. */
export type MethodInterceptor = (method: MethodRegistrationBase, args: unknown[]) => unknown[] | Promise<unknown[]>;

/** A plugin's metadata about one function, read at launch. */
export interface ExternalRegistration {
  /** Empty if the plugin has recorded nothing about the class. */
  readonly classConfig?: unknown;
  readonly methodConfig?: unknown;
  readonly paramConfig: readonly { readonly name: string; readonly index: number; readonly paramConfig?: object }[];
  readonly methodReg: MethodRegistrationBase;
}

/** The plugin's own object. Older plugins destructure it: `regInfo` is the object itself. */
export type FunctionInfo = object & {
  readonly regInfo: object;
  readonly registration: MethodRegistrationBase;
};

const INTERCEPTOR_SEQUENCE = 50;

export class Associations {
  readonly #registry: Registry;
  readonly #functions: Functions;
  readonly #views = new WeakMap<Registration, MethodRegistrationBase>();

  constructor(registry: Registry, functions: Functions) {
    this.#registry = registry;
    this.#functions = functions;
  }

  withClass(key: PluginKey, cls: AnyConstructor | string): object {
    const { external } = typeof cls === 'string' ? this.#registry.classNamed(cls) : this.#registry.classOf(cls);
    return infoIn(external, key);
  }

  withFunction(key: PluginKey, fn: UserFunction, target: FunctionName): FunctionInfo {
    const registration = this.#functions.registerPlain(fn, target);
    const info = infoIn(registration.external, key);
    // Not enumerable, because they are not part of the plugin's data.
    const hidden = (value: unknown) => ({ value, configurable: true, writable: true });
    Object.defineProperties(info, { regInfo: hidden(info), registration: hidden(this.viewOf(registration)) });
    return info as FunctionInfo;
  }

  withParameter(
    key: PluginKey,
    fn: UserFunction | undefined,
    target: FunctionName & { readonly param: number | string },
  ): object | undefined {
    const { ctorOrProto, name = '' } = target;
    // A parameter decorator runs before the method's decorator, so the method is only visible on its class.
    const found = fn ?? ((ctorOrProto as Record<string, unknown> | undefined)?.[name] as UserFunction | undefined);
    if (!found) return undefined;
    const { parameters } = this.#functions.registerPlain(found, target);
    const parameter = parameters.find((one) => one.index === target.param || one.name === target.param);
    return parameter?.getRegisteredInfo(key);
  }

  find(key: PluginKey, cls?: object | string, functionName?: string): ExternalRegistration[] {
    return [...this.#registry.registrations]
      .filter((registration) => cls === undefined || this.#isOf(registration, cls))
      .filter(({ name }) => functionName === undefined || name === functionName)
      .flatMap((registration) => this.#describe(key, registration));
  }

  #describe(key: PluginKey, registration: Registration): ExternalRegistration[] {
    const methodConfig = registration.external.get(key);
    const classConfig = this.#classInfo(key, registration);
    const paramConfig = registration.parameters.map(({ name, index, externalRegInfo }) => ({
      name,
      index,
      paramConfig: externalRegInfo.get(key),
    }));
    const isKnown = methodConfig ?? classConfig ?? paramConfig.find((parameter) => parameter.paramConfig);
    if (!isKnown) return [];
    return [{ methodConfig, classConfig: classConfig ?? {}, paramConfig, methodReg: this.viewOf(registration) }];
  }

  #classInfo(key: PluginKey, registration: Registration): object | undefined {
    const { ownerClass } = registration;
    const own = ownerClass && this.#registry.classOf(ownerClass).external.get(key);
    // The plugin may have referred to the class by name before it existed.
    const className = this.#registry.classNameFor(registration);
    return own ?? (className === '' ? undefined : this.#registry.classNamed(className).external.get(key));
  }

  #isOf(registration: Registration, cls: object | string): boolean {
    if (typeof cls === 'string') return this.#registry.classNameFor(registration) === cls;
    return registration.ownerClass === (typeof cls === 'function' ? cls : cls.constructor);
  }

  viewOf(registration: Registration): MethodRegistrationBase {
    const known = this.#views.get(registration);
    if (known) return known;
    const view = new MethodView(this.#registry, registration);
    this.#views.set(registration, view);
    return view;
  }
}

class MethodView implements MethodRegistrationBase {
  readonly #registry: Registry;
  readonly #given: Registration;

  constructor(registry: Registry, registration: Registration) {
    this.#registry = registry;
    this.#given = registration;
  }

  /** A plain function may have become a workflow since. */
  get #registration(): Registration {
    return this.#registry.findByFunction(this.#given.origFunction) ?? this.#given;
  }

  get name(): string {
    return this.#registration.name;
  }

  get className(): string {
    return this.#registry.classNameFor(this.#registration);
  }

  get defaults(): ClassRegistrationView | undefined {
    const { ownerClass } = this.#registration;
    const { className: name } = this;
    if (!ownerClass && name === '') return undefined;
    const { external } = ownerClass ? this.#registry.classOf(ownerClass) : this.#registry.classNamed(name);
    return { name, externalRegInfo: external, getRegisteredInfo: (key) => infoIn(external, key) };
  }

  get workflowConfig(): WorkflowConfig | undefined {
    const registration = this.#registration;
    return registration.kind === 'workflow' ? (registration as WorkflowRegistration).config : undefined;
  }

  get stepConfig(): object | undefined {
    return this.#registration.stepConfig;
  }

  get isInstance(): boolean {
    return this.#registration.isInstance;
  }

  get args(): MethodParameter[] {
    return this.#registration.parameters;
  }

  get externalRegInfo(): ReadonlyMap<unknown, object> {
    return this.#registration.external;
  }

  get origFunction(): UserFunction {
    return this.#registration.origFunction;
  }

  get registeredFunction(): UserFunction {
    return this.#registration.registeredFunction;
  }

  get wrappedFunction(): UserFunction | undefined {
    return this.#registration.kind === 'plain' ? undefined : this.#registration.registeredFunction;
  }

  async invoke(receiver: unknown, args: readonly unknown[]): Promise<unknown> {
    return this.#registration.registeredFunction.apply(receiver, args as never[]);
  }

  getRequiredRoles(): string[] {
    const { requiredRoles, ownerClass } = this.#registration;
    return [...(requiredRoles ?? (ownerClass && this.#registry.classOf(ownerClass).defaultRoles) ?? [])];
  }

  addEntryInterceptor(interceptor: MethodInterceptor, sequence = INTERCEPTOR_SEQUENCE): void {
    const { interceptors } = this.#registration;
    interceptors.push({ run: (args) => interceptor(this, args), sequence });
    interceptors.sort((a, b) => a.sequence - b.sequence);
  }

  getRegisteredInfo(key: unknown): object {
    return infoIn(this.#registration.external, key);
  }
}
