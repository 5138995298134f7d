// Functions cannot be stored. After a round trip, the copy gets a stub for each function it lost, so that a call explains
// what happened instead of "is not a function". Stubs are not enumerable, so they are neither stored nor compared.
import { isPlainObject } from './plain-json.js';
import { SerializationError } from '../errors/errors.js';

/** `await` and JSON.stringify would call these. */
const NEVER_STUBBED = new Set(['constructor', 'then', 'toJSON']);

/** Adds stubs to every object of `revived` for the functions of its counterpart in `original`. */
export function attachFunctionStubs(original: unknown, revived: unknown, path: readonly string[]): void {
  const seen = new Set<object>();

  function visit(before: object, after: object, at: readonly string[]): void {
    if (seen.has(before)) return;
    seen.add(before);
    for (const [key, left, right] of pairChildren(before, after)) {
      if (isObject(left) && isObject(right)) visit(left, right, [...at, key]);
    }
    if (!isPlainObject(after)) return;
    for (const name of lostFunctions(before, after)) {
      Object.defineProperty(after, name, stub(name, [...at, name]));
    }
  }

  if (isObject(original) && isObject(revived)) visit(original, revived, path);
}

type Pair = readonly [key: string, before: unknown, after: unknown];

/** The children at the same key or index on both sides. */
function pairChildren(before: object, after: object): Pair[] {
  if (before instanceof Map && after instanceof Map) return pairLists([...before.values()], [...after.values()]);
  if (before instanceof Set && after instanceof Set) return pairLists([...before], [...after]);
  if (Array.isArray(before) && Array.isArray(after)) return pairLists(before, after);
  if (!isPlainObject(after)) return [];
  const live = before as Record<string, unknown>;
  return Object.entries(after).map(([key, value]) => [key, live[key], value]);
}

function pairLists(before: readonly unknown[], after: readonly unknown[]): Pair[] {
  return after.map((value, index) => [String(index), before[index], value]);
}

/** The object's own functions and its class's methods that the copy lacks. */
function lostFunctions(before: object, after: object): Set<string> {
  const names = new Set<string>();
  let holder: unknown = before;
  while (isObject(holder) && holder !== Object.prototype) {
    for (const name of Object.getOwnPropertyNames(holder)) {
      if (name in after || NEVER_STUBBED.has(name)) continue;
      // By descriptor, so that no getter is called.
      if (typeof Object.getOwnPropertyDescriptor(holder, name)?.value === 'function') names.add(name);
    }
    holder = Object.getPrototypeOf(holder);
  }
  return names;
}

function stub(name: string, path: readonly string[]): PropertyDescriptor {
  const value = (): never => {
    throw new SerializationError(
      `Attempted to call '${name}' at path ${path.join('.')}. ` +
        `Functions are not preserved through serialization; see 'DBOS.registerSerialization'.`,
    );
  };
  return { value, enumerable: false, writable: true, configurable: true };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
