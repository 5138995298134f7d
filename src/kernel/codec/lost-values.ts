// Finds what a value would lose when it is stored. Of functions, streams, weak maps and the like nothing remains, or nothing
// of use. Instances of the application's classes come back as plain objects with their fields. Only values that are not
// plain JSON are looked at.
import { SerializationError } from '../errors/errors.js';
import { isPromise } from './maybe-promise.js';
import { isPlainObject } from './plain-json.js';

/** `warn` refuses values of which nothing would remain, and warns of instances. `error` refuses both. */
export type LossPolicy = 'error' | 'warn' | 'ignore';

interface Loss {
  readonly path: readonly string[];
  readonly what: string;
  /** What comes back; undefined if that is nothing, or an object without its content. */
  readonly rest?: string;
}

const PLAIN = 'as a plain object, without its methods';
const BARE = 'without its class and fields, unless it is thrown';

export interface LossOptions {
  readonly policy: LossPolicy;
  readonly warn?: (message: string) => void;
}

type Claim = (value: unknown) => boolean;

/** Warnings are remembered by what they are about, up to this many. */
const WARNINGS_MAX = 200;

export class LossGuard {
  readonly #options: LossOptions;
  readonly #warned = new Set<string>();

  constructor(options: LossOptions) {
    this.#options = options;
  }

  /** Returns whether there are instances. Values that a recipe claims are stored by it, whatever they are. */
  check(value: unknown, path: readonly string[], isClaimed: Claim = () => false): boolean {
    const { policy } = this.#options;
    if (policy === 'ignore') return false;
    let hasInstances = false;
    for (const loss of losses(value, path, { isClaimed, seen: new Set(), isInside: false })) {
      if (loss.rest === undefined || policy === 'error') throw new SerializationError(describe(loss));
      hasInstances ||= loss.rest === PLAIN;
      this.#warn(loss);
    }
    return hasInstances;
  }

  #warn(loss: Loss): void {
    if (this.#warned.has(loss.what) || this.#warned.size >= WARNINGS_MAX) return;
    this.#warned.add(loss.what);
    this.#options.warn?.(describe(loss));
  }
}

function describe({ path, what, rest }: Loss): string {
  const where = path.length === 0 ? 'The value' : `The value at ${path.join('.')}`;
  return rest === undefined
    ? `${where} is ${what}, which cannot be stored. Pass data instead, register a recipe with DBOS.registerSerialization, or set lostValues: 'ignore' to lose it.`
    : `${where} is ${what}. It is stored ${rest}. Pass plain data, register a recipe with DBOS.registerSerialization, or set lostValues: 'ignore'.`;
}

interface Walk {
  readonly isClaimed: Claim;
  readonly seen: Set<object>;
  /** In the fields of an instance, functions are methods, and other instances go without saying. */
  readonly isInside: boolean;
}

function* losses(value: unknown, path: readonly string[], walk: Walk): Generator<Loss> {
  if (walk.isClaimed(value)) return;
  if (typeof value === 'function' && !walk.isInside) yield { path, what: `a function${nameOf(value)}` };
  if (typeof value === 'symbol' && !walk.isInside) yield { path, what: String(value) };
  if (typeof value !== 'object' || value === null || walk.seen.has(value)) return;
  walk.seen.add(value);
  if (isPromise(value)) yield { path, what: 'a promise (is an await missing?)' };
  else if (Array.isArray(value) || value instanceof Set) yield* lossesIn([...value].entries(), path, walk);
  else if (value instanceof Map) yield* lossesIn(value, path, walk);
  else if (isPlainObject(value)) yield* lossesIn(Object.entries(value), path, walk);
  else if (value instanceof Error) yield* lossesOfError(value, path);
  else if (!isStored(value)) yield* lossesOfInstance(value, path, walk);
}

function* lossesIn(entries: Iterable<[unknown, unknown]>, path: readonly string[], walk: Walk): Generator<Loss> {
  for (const [key, child] of entries) yield* losses(child, [...path, String(key)], walk);
}

/** Superjson stores the name, the message and the cause. */
function* lossesOfError(error: Error, path: readonly string[]): Generator<Loss> {
  const { name } = error.constructor;
  if (name !== error.name || Object.keys(error).length > 0)
    yield { path, what: `an error of class ${name}`, rest: BARE };
}

function* lossesOfInstance(value: object, path: readonly string[], walk: Walk): Generator<Loss> {
  const kind = kindOf(value);
  if (kind !== undefined) {
    yield { path, what: kind };
    return;
  }
  if (!walk.isInside) {
    const type: unknown = value.constructor;
    const isOfClass = typeof type === 'function' && type !== Object;
    const what = isOfClass ? `an instance of class ${type.name}` : 'an object with a prototype of its own';
    yield { path, what, rest: PLAIN };
  }
  yield* lossesIn(Object.entries(value), path, { ...walk, isInside: true });
}

const TYPED_ARRAY = /^\[object (?:Big)?(?:Int|Uint)(?:8|16|32|64)(?:Clamped)?Array\]$|^\[object Float(?:32|64)Array\]$/;

/** The types that superjson knows, and objects that say themselves what is to be stored. */
function isStored(value: object): boolean {
  if (ArrayBuffer.isView(value)) return TYPED_ARRAY.test(tagOf(value));
  if (value instanceof Date || value instanceof RegExp || value instanceof URL || value instanceof Error) return true;
  return typeof (value as { toJSON?: unknown }).toJSON === 'function';
}

/** What an object is that has its content elsewhere than in its fields; undefined for an instance of a class. */
function kindOf(value: object): string | undefined {
  if (Symbol.asyncIterator in value) return 'a stream';
  const { on, emit } = value as { readonly on?: unknown; readonly emit?: unknown };
  if (typeof on === 'function' && typeof emit === 'function') return 'an event emitter';
  const [, tag = 'Object'] = /^\[object (.*)\]$/.exec(tagOf(value)) ?? [];
  // JSON writes the boxed ones as what they hold.
  return /^(?:Object|String|Number|Boolean)$/.test(tag) ? undefined : `of the type ${tag}`;
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value);
}

function nameOf({ name }: { readonly name: string }): string {
  return name === '' ? '' : ` (${name})`;
}

/**
 * The value with plain objects in place of instances. Superjson leaves these to JSON, which loses the maps, sets and errors
 * in their fields, and refuses big integers and cycles. What JSON can write, such as a date, is written as JSON does.
 */
export function withPlainInstances(value: unknown, isClaimed: Claim): unknown {
  const copies = new Map<unknown, unknown>();

  function copy(original: unknown, isInside: boolean): unknown {
    if (typeof original !== 'object' || original === null || isClaimed(original)) return original;
    if (copies.has(original)) return copies.get(original);
    // Known before it is filled: it may contain itself.
    const known = <T>(container: T): T => {
      copies.set(original, container);
      return container;
    };
    if (Array.isArray(original)) {
      const list = known<unknown[]>([]);
      for (const element of original as unknown[]) list.push(copy(element, isInside));
      return list;
    }
    if (original instanceof Set) {
      const set = known(new Set());
      for (const element of original) set.add(copy(element, isInside));
      return set;
    }
    if (original instanceof Map) {
      const map = known(new Map());
      for (const [key, element] of original) map.set(copy(key, isInside), copy(element, isInside));
      return map;
    }
    const isPlain = isPlainObject(original);
    if (!isPlain && isInside && hasJSON(original)) return copy(original.toJSON(), true);
    if (!isPlain && isStored(original)) return original;
    const fields = known<Record<string, unknown>>({});
    for (const [key, field] of Object.entries(original)) {
      // Not an assignment, which would set the prototype for the key __proto__ instead of having it refused.
      const value = copy(field, isInside || !isPlain);
      Object.defineProperty(fields, key, { value, enumerable: true, writable: true, configurable: true });
    }
    return fields;
  }

  return copy(value, false);
}

function hasJSON(value: object): value is { toJSON(): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function';
}
