// What a registered function belongs to: a class, or none; and the method decorators that find it out. Both kinds of
// decorators work: TypeScript's legacy ones and the standard ones.
import type { AnyConstructor, FunctionName, Registry, UserFunction } from './registry.js';

export interface FunctionOwner {
  readonly name: string;
  readonly isInstance: boolean;
  readonly isMethod: boolean;
  readonly ownerClass: AnyConstructor | undefined;
  readonly givenClassName: string | undefined;
}

/** The type of a method decorator, legacy or standard. */
export interface MethodDecorator {
  <This, Args extends never[], Return>(
    target: (this: This, ...args: Args) => Promise<Return>,
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Args) => Promise<Return>>,
  ): (this: This, ...args: Args) => Promise<Return>;
  <This, Args extends never[], Return>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(this: This, ...args: Args) => Promise<Return>>,
  ): TypedPropertyDescriptor<(this: This, ...args: Args) => Promise<Return>> | void;
}

export interface StandardContext {
  readonly kind: 'method' | 'class';
  readonly name: string | symbol | undefined;
  readonly static: boolean;
  addInitializer(initializer: (this: unknown) => void): void;
}

export function isStandardContext(value: unknown): value is StandardContext {
  return typeof value === 'object' && value !== null && 'kind' in value && 'addInitializer' in value;
}

export function functionOwnerOf(fn: UserFunction, config: FunctionName): FunctionOwner {
  const { ctorOrProto } = config;
  const isStatic = typeof ctorOrProto === 'function' && !hasMethod(ctorOrProto.prototype, fn);
  const ownerClass = typeof ctorOrProto === 'function' ? ctorOrProto : ctorOrProto?.constructor;
  return {
    name: config.name ?? fn.name,
    isInstance: ctorOrProto !== undefined && !isStatic,
    isMethod: ctorOrProto !== undefined,
    ownerClass: ownerClass as AnyConstructor | undefined,
    givenClassName: config.className,
  };
}

/** Whether the prototype of a class, or one that it extends, has the function as a method. */
function hasMethod(prototype: unknown, fn: UserFunction): boolean {
  for (let one = prototype; one && one !== Object.prototype; one = Object.getPrototypeOf(one)) {
    const properties = Object.values(Object.getOwnPropertyDescriptors(one));
    if (properties.some(({ value }) => value === fn)) return true;
  }
  return false;
}

/** A method decorator, legacy or standard, that registers the method with `register`. */
export function decorateMethod(
  registry: Registry,
  register: (fn: UserFunction, owner: FunctionOwner) => UserFunction,
  name?: string,
): MethodDecorator {
  const decorator = (target: unknown, contextOrKey: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (isStandardContext(contextOrKey)) {
      const isStatic = contextOrKey.static;
      const wrapper = register(target as UserFunction, {
        name: name ?? String(contextOrKey.name),
        isInstance: !isStatic,
        isMethod: true,
        ownerClass: undefined,
        givenClassName: undefined,
      });
      contextOrKey.addInitializer(function (this: unknown) {
        const registration = registry.findByFunction(wrapper);
        if (!registration || registration.ownerClass) return;
        registry.assignClass(registration, (isStatic ? this : (this as object).constructor) as AnyConstructor);
      });
      return wrapper;
    }
    const isStatic = typeof target === 'function';
    const wrapper = register(descriptor?.value as UserFunction, {
      name: name ?? String(contextOrKey),
      isInstance: !isStatic,
      isMethod: true,
      ownerClass: (isStatic ? target : (target as object).constructor) as AnyConstructor,
      givenClassName: undefined,
    });
    return { ...descriptor, value: wrapper };
  };
  // The types of the two kinds exclude each other. At run time one function serves both.
  return decorator as unknown as MethodDecorator;
}
