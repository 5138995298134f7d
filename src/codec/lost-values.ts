// Finds what a value would lose when it is stored: functions, symbols and promises, of which nothing remains, and class
// instances, which come back as plain objects. Only values that are not plain JSON are looked at.
import { SerializationError } from '../model/errors/errors.js';
import { isPlainObject } from './plain-json.js';

/** `warn` refuses values of which nothing would remain, and warns of the others. */
export type LossPolicy = 'error' | 'warn' | 'ignore';

interface Loss {
  readonly path: readonly string[];
  readonly what: string;
  /** Whether nothing of it remains: it would read as null or undefined. A lost method has a stand-in instead. */
  readonly isTotal: boolean;
}

export interface LossOptions {
  readonly policy: LossPolicy;
  readonly warn?: (message: string) => void;
}

/** Warnings are remembered by what they are about, up to this many. */
const WARNINGS_MAX = 200;

export class LossGuard {
  readonly #options: LossOptions;
  readonly #warned = new Set<string>();

  constructor(options: LossOptions) {
    this.#options = options;
  }

  /** Values that a recipe claims are stored by it, whatever they are. */
  check(value: unknown, path: readonly string[], isClaimed: (value: unknown) => boolean = () => false): void {
    const { policy } = this.#options;
    if (policy === 'ignore') return;
    for (const loss of losses(value, path, { isClaimed, seen: new Set() })) {
      if (loss.isTotal || policy === 'error') throw new SerializationError(describe(loss));
      this.#warn(loss);
    }
  }

  #warn(loss: Loss): void {
    if (this.#warned.has(loss.what) || this.#warned.size >= WARNINGS_MAX) return;
    this.#warned.add(loss.what);
    this.#options.warn?.(describe(loss));
  }
}

function describe({ path, what, isTotal }: Loss): string {
  const where = path.length === 0 ? 'The value' : `The value at ${path.join('.')}`;
  return isTotal
    ? `${where} is ${what}, which cannot be stored. Pass data instead, or register a recipe with DBOS.registerSerialization.`
    : `${where} is ${what}. It is stored as a plain object, without its methods. Pass plain data, register a recipe with DBOS.registerSerialization, or set lostValues: 'ignore'.`;
}

interface Walk {
  readonly isClaimed: (value: unknown) => boolean;
  readonly seen: Set<object>;
}

function* losses(value: unknown, path: readonly string[], walk: Walk): Generator<Loss> {
  if (walk.isClaimed(value)) return;
  if (typeof value === 'function') yield { path, what: `a function${nameOf(value)}`, isTotal: true };
  if (typeof value === 'symbol') yield { path, what: String(value), isTotal: true };
  if (typeof value !== 'object' || value === null || walk.seen.has(value)) return;
  walk.seen.add(value);
  if (value instanceof Promise) yield { path, what: 'a promise (is an await missing?)', isTotal: true };
  else if (Array.isArray(value) || value instanceof Set) yield* lossesIn([...value].entries(), path, walk);
  else if (value instanceof Map) yield* lossesIn(value, path, walk);
  else if (isPlainObject(value)) yield* lossesOfObject(value, path, walk);
  else if (isInstance(value)) {
    yield { path, what: `an instance of class ${value.constructor.name}`, isTotal: false };
  }
}

function* lossesIn(entries: Iterable<[unknown, unknown]>, path: readonly string[], walk: Walk): Generator<Loss> {
  for (const [key, child] of entries) yield* losses(child, [...path, String(key)], walk);
}

/** An object that has methods keeps its data and gets stand-ins for them. */
function* lossesOfObject(value: Record<string, unknown>, path: readonly string[], walk: Walk): Generator<Loss> {
  for (const [key, child] of Object.entries(value)) {
    if (typeof child !== 'function') yield* losses(child, [...path, key], walk);
    else if (!walk.isClaimed(child)) yield { path, what: `an object with the method ${key}`, isTotal: false };
  }
}

/** What is left are types that superjson knows, and classes. One with a JSON form of its own says what is to be stored. */
function isInstance(value: object): boolean {
  if (ArrayBuffer.isView(value)) return false;
  if (value instanceof Date || value instanceof RegExp || value instanceof URL || value instanceof Error) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  return typeof value.constructor === 'function';
}

function nameOf({ name }: { readonly name: string }): string {
  return name === '' ? '' : ` (${name})`;
}
