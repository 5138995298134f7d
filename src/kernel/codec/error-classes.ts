// Which class an error has that was stored: the names of its classes are stored with it, and found again.
//
//   built in, or of our catalogue  ─┐
//   registered, or given to a step ─┴─► the class of that name
//   stored by this process before  ───► the class that it had
//   neither                        ───► a stand-in of that name, until code asks with `instanceof`: see `UnknownClass`
//
// No constructor is ever called.
import { createHash } from 'node:crypto';
import { isPrototypeOf } from '../base/copies.js';
import * as catalogue from '../errors/errors.js';
import { isPlainObject } from './plain-json.js';

/** A class of errors. Its constructor may be private and take any arguments. */
export interface ErrorClass {
  readonly name: string;
  readonly prototype: Error;
}

/** Classes under their own names, and objects that give them others: `[CardDeclined, { 'orders.NotFound': NotFound }]`. */
export type ErrorClasses = readonly (ErrorClass | Readonly<Record<string, ErrorClass>>)[];

/** What is stored of the class of an error. */
export interface StoredClass {
  /** From its own class to one that every process has. */
  readonly names: readonly string[];
  /** The class itself, in the process that stored it. */
  readonly seen?: string;
}

/** What makes errors of a stored class. */
export interface FoundClass {
  readonly prototype: object;
  /** Set if the class may not be the right one. */
  readonly unknown?: UnknownClass;
}

/** What minifiers make of names: one or two characters, perhaps with a digit. An anonymous class has none. */
const MINIFIED = /^[A-Za-z_$]{0,2}\d?$/;
/** Classes are remembered up to this many. Functions that define a class make another one with each call. */
const SEEN_MAX = 1000;

const BUILT_IN = namedClasses([
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
  DOMException,
]);
/** What every process has, by name. */
const STANDARD = new Map([...BUILT_IN, ...namedClasses([ownClasses()])]);
const STANDARD_NAMES = new Map([...STANDARD].map(([name, type]) => [type, name]));

function ownClasses(): Record<string, ErrorClass> {
  return Object.fromEntries(
    Object.entries(catalogue).filter((entry): entry is [string, typeof catalogue.DBOSError] => isErrorClass(entry[1])),
  );
}

export interface RegisterOptions {
  /** The line of the call. */
  readonly site: string;
  /** Whether modules are evaluated again, as by Next.js. Then a class replaces the one of its name. */
  readonly isReloadable?: boolean;
}

interface Registered {
  readonly type: ErrorClass;
  readonly site: string;
}

/** The classes of errors of an application, and those that this process has stored errors of. */
export class KnownErrors {
  readonly #registered = new Map<string, Registered>();
  readonly #fullNames = new Map<string, ErrorClass>();
  readonly #fullNameByClass = new WeakMap<ErrorClass, string>();
  readonly #names = new WeakMap<ErrorClass, string>();
  readonly #numbers = new WeakMap<ErrorClass, number>();
  readonly #seen = new Map<number, WeakRef<ErrorClass>>();
  readonly #processID: string;
  #count = 0;

  /** `processID` tells this object from those of other processes. */
  constructor(processID: string) {
    this.#processID = processID;
  }

  /** Registered under names that the next build may give to other classes. */
  get minifiedNames(): string[] {
    return [...this.#registered.keys()].map(plainName).filter((name) => MINIFIED.test(name));
  }

  /** A name stands for one class: rows have nothing else to find it by. */
  register(classes: ErrorClasses, { site, isReloadable = false }: RegisterOptions): void {
    for (const [name, type] of namedClasses(classes)) {
      const other = this.#registered.get(name);
      if (STANDARD.has(name) || (other && !isReloadable && !isSameClass(other, { type, site }))) {
        throw new catalogue.DBOSConflictingRegistrationError(
          `Another class of errors has the name "${name}": ${other ? `it is registered ${other.site}` : 'it is built in'}. ` +
            `Register this one under a name of its own: DBOS.registerErrors({ 'my.${name}': ${ownNameOf(type)} }).`,
        );
      }
      this.#registered.set(name, { type, site });
      // Errors may be stored from before it was registered.
      this.#fullNames.set(fullNameOf(type), type);
      this.#names.set(type, name);
    }
  }

  /** At the end of an application: nothing is registered. */
  clear(): void {
    for (const { type } of this.#registered.values()) this.#names.delete(type);
    this.#registered.clear();
    this.#fullNames.clear();
  }

  /** Whether errors of the class keep it in every process. */
  isKnown(type: ErrorClass, given: ErrorClasses = []): boolean {
    return this.#names.has(type) || STANDARD_NAMES.has(type) || [...namedClasses(given).values()].includes(type);
  }

  isSeen(type: ErrorClass): boolean {
    const number = this.#numbers.get(type);
    return number !== undefined && this.#seen.has(number);
  }

  /** What to store of an error's class. Remembers the class. */
  describe(error: Error, given?: ErrorClasses): StoredClass {
    const unknown = UnknownClass.of(error);
    const [type] = classesOf(error);
    const names = unknown ? unknown.names : this.#namesOf(error, given);
    const original = unknown ? unknown.like : type;
    return original === undefined || this.isKnown(original, given)
      ? { names }
      : { names, seen: `${this.#processID}.${this.#numberOf(original)}` };
  }

  /** The names of the classes of an error of which only the fields are stored, such as one that DBOS has stored. */
  namesByFields(
    { name, code }: { readonly name?: unknown; readonly code?: unknown },
    given: ErrorClasses = [],
  ): string[] {
    if (typeof name !== 'string') return ['Error'];
    const standard = STANDARD.get(name);
    const isStandard = standard !== undefined && (BUILT_IN.has(name) || codeOf(standard) === code);
    const isKnown = isStandard || this.#registered.has(name) || namedClasses(given).has(name);
    return [isKnown ? name : 'Error'];
  }

  #namesOf(error: Error, given?: ErrorClasses): string[] {
    return classesOf(error).map((type) => this.#nameOf(type, given));
  }

  /** Whether errors of a class, and of those that it extends, may have been stored under the names. */
  haveNames(classes: readonly ErrorClass[], names: readonly string[], given?: ErrorClasses): boolean {
    // They may have been registered then and not now, or now and not then.
    const isNamed = (type: ErrorClass, name: string | undefined): boolean =>
      name === this.#nameOf(type, given) || name === this.#fullNameOf(type) || name === lastingNameOf(type);
    return classes.length === names.length && classes.every((type, index) => isNamed(type, names[index]));
  }

  #nameOf(type: ErrorClass, given: ErrorClasses = []): string {
    const givenName = entriesOf(given).find(([, one]) => one === type)?.[0];
    return givenName ?? this.#names.get(type) ?? STANDARD_NAMES.get(type) ?? this.#fullNameOf(type);
  }

  /** The digest of a long text takes its time. */
  #fullNameOf(type: ErrorClass): string {
    const known = this.#fullNameByClass.get(type);
    if (known !== undefined) return known;
    const name = fullNameOf(type);
    this.#fullNameByClass.set(type, name);
    return name;
  }

  #numberOf(type: ErrorClass): number {
    const known = this.#numbers.get(type);
    if (known !== undefined && this.#seen.has(known)) return known;
    this.#count += 1;
    this.#numbers.set(type, this.#count);
    this.#seen.set(this.#count, new WeakRef(type));
    if (this.#seen.size > SEEN_MAX) this.#seen.delete(this.#seen.keys().next().value as number);
    return this.#count;
  }

  /** The class of a stored error. `isLive`: it is being stored, so its class is certain. */
  find({ names, seen }: StoredClass, { given, isLive }: { given?: ErrorClasses; isLive?: boolean } = {}): FoundClass {
    const exact = this.#seenAs(seen);
    if (exact && isLive) return { prototype: exact.prototype };
    const classes = namedClasses(given ?? []);
    const lookUp = (name: string): ErrorClass | undefined =>
      classes.get(name) ?? this.#registered.get(name)?.type ?? STANDARD.get(name) ?? this.#fullNames.get(name);
    const index = names.findIndex((name) => lookUp(name) !== undefined);
    const known = lookUp(names[index] ?? 'Error') ?? Error;
    if (index === 0 && !exact) return { prototype: known.prototype };
    const like = exact ?? this.onlySeen(names, given);
    const unknown = new UnknownClass(this, { names, like, given });
    const unknownNames = index < 0 ? names : names.slice(0, index);
    return { prototype: like?.prototype ?? standIn(unknownNames, known.prototype), unknown };
  }

  #seenAs(seen: string | undefined): ErrorClass | undefined {
    const prefix = `${this.#processID}.`;
    if (!seen?.startsWith(prefix)) return undefined;
    return this.#seen.get(Number(seen.slice(prefix.length)))?.deref();
  }

  /** The class with these names, if there is one that this process has stored errors of, and no other. */
  onlySeen(names: readonly string[], given?: ErrorClasses): ErrorClass | undefined {
    const found = [...this.#seen.values()]
      .map((reference) => reference.deref())
      .filter((type) => type !== undefined)
      .filter((type) => this.haveNames(classesOf(type.prototype), names, given));
    return found.length === 1 ? found[0] : undefined;
  }
}

const UNKNOWN = Symbol.for('everstep.unknownErrorClass');

interface UnknownParts {
  readonly names: readonly string[];
  /** The class that its process stored it with, or the only one of its names. */
  readonly like: ErrorClass | undefined;
  readonly given: ErrorClasses | undefined;
}

/**
 * The class of an error that was read back in a process that does not know it for certain: nobody has registered it. The
 * application's code has the class at hand when it asks `error instanceof CardDeclined`, so that is where it is found: the
 * error becomes an instance if the names and texts of the class and those that it extends are those that were stored.
 */
export class UnknownClass implements UnknownParts {
  readonly names: readonly string[];
  readonly like: ErrorClass | undefined;
  readonly given: ErrorClasses | undefined;
  readonly #known: KnownErrors;

  constructor(known: KnownErrors, { names, like, given }: UnknownParts) {
    this.#known = known;
    this.names = names;
    this.like = like;
    this.given = given;
  }

  static of(error: object): UnknownClass | undefined {
    return Object.hasOwn(error, UNKNOWN) ? (error as { [UNKNOWN]: UnknownClass })[UNKNOWN] : undefined;
  }

  attachTo(error: Error): void {
    Object.defineProperty(error, UNKNOWN, { value: this, configurable: true });
    recognizeUnknownClasses();
  }

  /** Makes the error an instance of the class, or of one derived from it, if that may be its class. */
  adopt(error: object, asked: ErrorClass): boolean {
    const classes = classesOf(asked.prototype);
    const derived = this.names.slice(0, -classes.length);
    if (!this.#known.haveNames(classes, this.names.slice(-classes.length), this.given)) return false;
    if (derived.length === 0 ? !this.#mayBe(asked) : this.like !== undefined) return false;
    // Fails if the application has frozen the error.
    Reflect.setPrototypeOf(error, standIn(derived, asked.prototype));
    if (derived.length === 0) Reflect.deleteProperty(error, UNKNOWN);
    return true;
  }

  /** A class that has thrown errors of its own is another one, unless it is the only one of its names. */
  #mayBe(asked: ErrorClass): boolean {
    if (!this.#known.isSeen(asked)) return true;
    return this.like === undefined && this.#known.onlySeen(this.names, this.given) === asked;
  }
}

/** A class without code for each of the names, so that `error.constructor.name` and logs show them. */
function standIn(names: readonly string[], base: object): object {
  return names.reduceRight((parent, name) => {
    const prototype = Object.create(parent) as object;
    const type = Object.defineProperty(function () {}, 'name', { value: plainName(name), configurable: true });
    type.prototype = prototype;
    return Object.defineProperty(prototype, 'constructor', { value: type, writable: true, configurable: true });
  }, base);
}

/**
 * Classes of errors inherit `instanceof` from `Error`. There, it learns to ask errors of unknown classes. Called when the
 * first of them is read back: a process that registers its classes keeps the `Error` that it has.
 */
function recognizeUnknownClasses(): void {
  const ordinary = Error[Symbol.hasInstance] as ((value: unknown) => boolean) & { [UNKNOWN]?: true };
  if (ordinary[UNKNOWN]) return;
  const hasInstance = function (this: unknown, value: unknown): boolean {
    if (ordinary.call(this, value)) return true;
    if (typeof value !== 'object' || value === null || !isErrorClass(this)) return false;
    return UnknownClass.of(value)?.adopt(value, this) ?? false;
  };
  // Refused if the application has frozen the built-in objects. Then such an error is none of its class.
  Reflect.defineProperty(Error, Symbol.hasInstance, {
    value: Object.assign(hasInstance, { [UNKNOWN]: true }),
    writable: true,
    configurable: true,
  });
}

/** The same class, or the one of a module that was loaded again. */
function isSameClass(one: Registered, other: Registered): boolean {
  if (one.type === other.type) return true;
  return one.site === other.site && one.site !== '' && textOf(one.type) === textOf(other.type);
}

/** Classes of errors, no two of them under one name. */
export function areErrorClasses(value: unknown): value is ErrorClasses {
  const isListed = (one: unknown): boolean =>
    isErrorClass(one) || (isPlainObject(one) && Object.values(one).every(isErrorClass));
  if (!Array.isArray(value) || !value.every(isListed)) return false;
  const entries = entriesOf(value as ErrorClasses);
  return entries.every(([name, type]) => entries.every(([other, another]) => name !== other || type === another));
}

function namedClasses(classes: ErrorClasses): Map<string, ErrorClass> {
  return new Map(entriesOf(classes));
}

function entriesOf(classes: ErrorClasses): [string, ErrorClass][] {
  return classes.flatMap((one) =>
    isErrorClass(one) ? [[lastingNameOf(one), one] as [string, ErrorClass]] : Object.entries(one),
  );
}

function isErrorClass(value: unknown): value is ErrorClass {
  if (typeof value !== 'function') return false;
  const prototype: unknown = value.prototype;
  return prototype === Error.prototype || prototype instanceof Error;
}

/** From the class of an error, or of the prototype of one, to the first that every process has. */
function classesOf(error: object): ErrorClass[] {
  const { prototypes, standard } = lineOf(error);
  return [...prototypes.map(classAt).filter((type) => type !== undefined), standard];
}

/** The prototypes of an error that only this application has, and the class that every process has behind them. */
export function lineOf(error: object): { readonly prototypes: readonly object[]; readonly standard: ErrorClass } {
  const prototypes: object[] = [];
  let at = classAt(error) ? error : (Object.getPrototypeOf(error) as object | null);
  for (; at && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) {
    const type = classAt(at);
    const standard = type && standardOf(type);
    if (standard) return { prototypes, standard };
    prototypes.push(at);
  }
  return { prototypes, standard: Error };
}

/** The class whose prototype an object is. */
function classAt(prototype: object): ErrorClass | undefined {
  const type: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof type === 'function' && type.prototype === prototype ? type : undefined;
}

/** Ours for a class of another realm, or of another copy of the package. */
function standardOf(type: ErrorClass): ErrorClass | undefined {
  if (STANDARD_NAMES.has(type)) return type;
  const builtIn = BUILT_IN.get(ownNameOf(type));
  if (builtIn && textOf(type).includes('[native code]')) return builtIn;
  if (isPrototypeOf(type.prototype, 'PortableWorkflowError')) return catalogue.PortableWorkflowError;
  const code = codeOf(type);
  if (code === undefined || !(type.prototype instanceof catalogue.DBOSError)) return undefined;
  return [...STANDARD.values()].find((one) => codeOf(one) === code);
}

/** The static code of a class of ours, not an inherited one. */
function codeOf(type: ErrorClass): unknown {
  return Object.getOwnPropertyDescriptor(type, 'code')?.value;
}

function ownNameOf(type: ErrorClass): string {
  const name: unknown = Object.getOwnPropertyDescriptor(type, 'name')?.value;
  return typeof name === 'string' ? name : '';
}

/** The next build may give a minified name to another class. The text of the class tells them apart. */
function lastingNameOf(type: ErrorClass): string {
  const name = ownNameOf(type);
  return MINIFIED.test(name) ? fullNameOf(type) : name;
}

/** The name of a class, and a digest of its text. */
function fullNameOf(type: ErrorClass): string {
  return `${ownNameOf(type)}#${createHash('sha256').update(textOf(type)).digest('base64url').slice(0, 8)}`;
}

/** The name in a full name. */
export function plainName(name: string): string {
  return name.replace(/#.*$/, '');
}

/** Whether the next build may give the name to another class. */
export function isMinified(name: string): boolean {
  return MINIFIED.test(name);
}

function textOf(type: ErrorClass): string {
  return Function.prototype.toString.call(type);
}
