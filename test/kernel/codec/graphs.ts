// Values for the codec's property tests, and what it means for a copy to be faithful: the same kinds of values in the
// same places, and one object wherever the original has one object.
import * as fc from 'fast-check';

/** Placeholders for the shared objects of a graph. */
const SHARED = [Symbol('first'), Symbol('second'), Symbol('third')];

/** A leaf of `graphs` that is put in its place as it is, however odd an object it may be. */
export class Opaque {
  constructor(readonly value: unknown) {}
}

const AWKWARD_KEYS = [
  'a.b',
  'a\\b',
  'a\\',
  '\\.',
  '.',
  '',
  '0',
  '10',
  'toString',
  'length',
  'json',
  'meta',
  '\u0000',
  '\ud800',
];

export const keys = fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom(...AWKWARD_KEYS)).filter(isAllowedKey);

function isAllowedKey(key: string): boolean {
  return !['__proto__', 'constructor', 'prototype'].includes(key);
}

const strings = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\u0000', '\ud800', '\udc00x', '\u2028'),
);

/** Null, booleans, texts and the numbers that JSON keeps. */
export const plainLeaves = fc.oneof(
  fc.constantFrom(null, true, false),
  strings,
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
);

/** Every kind of leaf that superjson knows. */
export const knownLeaves = fc.oneof(
  plainLeaves,
  fc.constantFrom(undefined, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0),
  fc.bigInt(),
  fc.date({ noInvalidDate: false }),
  fc.constantFrom(/a\/b[/]c/giu, /(?:)/, /\\/m).map((regexp) => new RegExp(regexp)),
  fc.webUrl().map((url) => new URL(url)),
  fc.array(fc.double()).map((numbers) => Float64Array.from(numbers)),
  fc.array(fc.float()).map((numbers) => Float32Array.from(numbers)),
  fc.uint8Array(),
  fc.int16Array(),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  fc.bigInt64Array(),
);

interface Containers {
  readonly leaves: fc.Arbitrary<unknown>;
  readonly kinds: readonly ('array' | 'object' | 'map' | 'set' | 'error')[];
}

/** Trees of the given leaves and containers in which some objects, perhaps inside each other, stand in several places. */
export function graphs({ leaves, kinds }: Containers): fc.Arbitrary<unknown> {
  const tree = trees({ leaves, kinds });
  const targets = fc
    .tuple(...SHARED.map(() => tree))
    .map((nodes) => nodes.map((node) => (isObject(node) ? node : [node])));
  return fc.tuple(tree, targets).map(([root, shared]) => placeShared(root, shared));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The same without anything shared. */
export function trees({ leaves, kinds }: Containers): fc.Arbitrary<unknown> {
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => {
    const children = fc.array(tie('tree'), { maxLength: 4 });
    const containers = {
      array: children,
      object: fc.dictionary(keys, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
      map: fc.array(fc.tuple(tie('tree'), tie('tree')), { maxLength: 3 }).map((entries) => new Map(entries)),
      set: children.map((elements) => new Set(elements)),
      error: fc.tuple(fc.string(), tie('tree')).map(([message, cause]) => new Error(message, { cause })),
    };
    return {
      tree: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaves, ...kinds.map((kind) => containers[kind])),
    };
  });
  return tree;
}

/** Leaves plus placeholders for the shared objects of `graphs`. */
export function withShared(leaves: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 4, arbitrary: leaves }, { weight: 1, arbitrary: fc.constantFrom(...SHARED) });
}

/** A copy of the tree with a copy of a target in place of each placeholder, also those in the targets themselves. */
function placeShared(tree: unknown, targets: readonly object[]): unknown {
  const copies = new Map<object, unknown>();

  function place(node: unknown): unknown {
    if (typeof node === 'symbol' && SHARED.includes(node)) return place(targets[SHARED.indexOf(node)]);
    if (node instanceof Opaque) return node.value;
    if (!isObject(node)) return node;
    if (copies.has(node)) return copies.get(node);
    const copy = emptyCopy(node);
    copies.set(node, copy);
    if (node instanceof Map && copy instanceof Map) for (const [key, value] of node) copy.set(place(key), place(value));
    else if (node instanceof Set && copy instanceof Set) for (const element of node) copy.add(place(element));
    else if (node instanceof Error && copy instanceof Error) copy.cause = place(node.cause);
    else if (copy !== node)
      for (const [key, value] of Object.entries(node)) (copy as Record<string, unknown>)[key] = place(value);
    return copy;
  }

  return place(tree);
}

/** Anything but the containers of `trees` stands for itself. */
function emptyCopy(node: object): object {
  switch (Object.getPrototypeOf(node)) {
    case Map.prototype:
      return new Map();
    case Set.prototype:
      return new Set();
    case Error.prototype:
      return new Error((node as Error).message, { cause: undefined });
    case Array.prototype:
      return [];
    case Object.prototype:
      return {};
    default:
      return node;
  }
}

/** Where the copy differs from the original, or undefined when it is faithful and shares no object with it. */
export function findDifference(original: unknown, copy: unknown): string | undefined {
  const copyOf = new Map<object, object>();
  const originalOf = new Map<object, object>();

  function differ(left: unknown, right: unknown, path: string): string | undefined {
    if (!isObject(left)) return Object.is(left, right) ? undefined : path;
    if (!isObject(right) || left === right) return path;
    if (copyOf.has(left) || originalOf.has(right)) {
      return copyOf.get(left) === right && originalOf.get(right) === left ? undefined : `${path} (identity)`;
    }
    copyOf.set(left, right);
    originalOf.set(right, left);
    if (Object.getPrototypeOf(left) !== Object.getPrototypeOf(right)) return `${path} (class)`;
    const [before, after] = [partsOf(left), partsOf(right)];
    if (before.length !== after.length) return `${path} (size)`;
    for (const [index, part] of before.entries()) {
      const difference = differ(part, after[index], `${path}/${index}`);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }

  return differ(original, copy, '');
}

function partsOf(value: object): readonly unknown[] {
  if (value instanceof Map) return [...value].flat(1);
  if (value instanceof Set) return [...value];
  if (value instanceof Date) return [value.getTime()];
  if (value instanceof URL || value instanceof RegExp) return [String(value)];
  if (value instanceof Error) return [value.name, value.message, 'cause' in value, value.cause];
  if (ArrayBuffer.isView(value)) return [...(value as Uint8Array)];
  return Object.entries(value).flat(1);
}
