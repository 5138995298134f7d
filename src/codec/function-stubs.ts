// Functions do not survive being stored. The copy that goes on after a round trip gets a stand-in for each one it
// has lost, so that a call says what happened instead of "is not a function". Stand-ins are not enumerable: they are
// neither stored nor compared.
import { SerializationError } from '../model/errors/errors.js';
import { isPlainObject } from './plain-json.js';

/** These would be called by `await` and by JSON.stringify, which no user wrote. */
const NEVER_STUBBED = new Set(['constructor', 'then', 'toJSON']);

/** Puts stand-ins on every object of `revived` for the functions that its counterpart in `original` has. */
export function attachFunctionStubs(original: unknown, revived: unknown, path: readonly string[]): void {
  const seen = new Set<object>();

  function visit(before: object, after: object, place: readonly string[]): void {
    if (seen.has(before)) return;
    seen.add(before);
    for (const [key, left, right] of pairChildren(before, after)) {
      if (isObject(left) && isObject(right)) visit(left, right, [...place, key]);
    }
    if (!isPlainObject(after)) return;
    for (const name of lostFunctions(before, after)) {
      Object.defineProperty(after, name, stub(name, [...place, name]));
    }
  }

  if (isObject(original) && isObject(revived)) visit(original, revived, path);
}

type Pair = readonly [key: string, before: unknown, after: unknown];

/** The children that stand at the same place on both sides. */
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

/** The names of the object's own functions, and of its class's methods, that the copy does not have. */
function lostFunctions(before: object, after: object): Set<string> {
  const names = new Set<string>();
  let holder: unknown = before;
  while (isObject(holder) && holder !== Object.prototype) {
    for (const name of Object.getOwnPropertyNames(holder)) {
      if (name in after || NEVER_STUBBED.has(name)) continue;
      // Through the descriptor, because a getter of the class is not ours to call.
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
