// Revives a parsed superjson text. Superjson's own reader moves the elements of a Set or Map, and loses references, when an
// object in one of them is shared with another path. So ours restores references first, while sets and maps are still
// arrays, and then revives the types, each object once.
import { makeError } from './revived-error.js';
import type { AnyRecipe } from './serializer.js';

/** A stored text names a type unknown to this application, or what no writer writes. The message quotes nothing of it. */
export class UnusableTextError extends TypeError {}

interface Meta {
  readonly values?: unknown;
  readonly referentialEqualities?: unknown;
  readonly v?: number;
}

/** The parsed text: the JSON tree and annotations of its parts. */
export interface SuperjsonPayload {
  readonly json?: unknown;
  readonly meta?: Meta;
}

/** The types of a tree's parts, by path. */
interface TypeNode {
  type?: unknown;
  readonly children: Map<string, TypeNode>;
}

type Path = readonly string[];

/** One object at two paths. */
interface Link {
  readonly from: Path;
  readonly to: Path;
}

/** Wraps a shared value whose JSON form has no identity, such as the string of a Date. */
class SharedLeaf {
  readonly #json: unknown;

  constructor(json: unknown) {
    this.#json = json;
  }

  // Not a field, so that a path in a malformed text cannot reach it.
  get json(): unknown {
    return this.#json;
  }
}

type Container = Record<string, unknown>;

/** `length` is that of the text. */
export function reviveSuperjson(
  payload: SuperjsonPayload,
  recipes: ReadonlyMap<string, AnyRecipe>,
  length: number,
): unknown {
  const { json, meta } = payload;
  if (meta === undefined) return json;
  const areBackslashesEscaped = (meta.v ?? 0) >= 1;
  const split = (path: string): Path => splitPath(path, areBackslashesEscaped);
  const types: TypeNode = { children: new Map() };
  if (meta.values !== undefined) addTypes(types, meta.values, split);
  const links = readLinks(meta.referentialEqualities, split);
  for (const link of links) drawLink(json, link);
  if (links.length > 0) refuseExpansion(json, length + EXPANSION_MAX);
  return new Reviver(recipes, links.length > 0).revive(json, types);
}

/** Paths are joined by dots; a dot inside a key is escaped, and since version 1 a backslash too. */
function splitPath(path: string, areBackslashesEscaped: boolean): Path {
  const keys: string[] = [];
  let key = '';
  for (let index = 0; index < path.length; index += 1) {
    const character = path.charAt(index);
    const next = path.charAt(index + 1);
    if (character === '\\' && (next === '.' || (next === '\\' && areBackslashesEscaped))) {
      key += next;
      index += 1;
    } else if (character === '.') {
      keys.push(key);
      key = '';
    } else {
      key += character;
    }
  }
  return [...keys, key];
}

/** A tree is `[type]`, `[type, { path: tree }]` or, if the node itself has no type, `{ path: tree }`. */
function addTypes(node: TypeNode, tree: unknown, split: (path: string) => Path): void {
  if (Array.isArray(tree)) {
    const [type, inner] = tree as readonly unknown[];
    node.type = type;
    if (inner !== undefined) addTypes(node, inner, split);
    return;
  }
  for (const [path, subtree] of Object.entries(tree as object)) {
    let at = node;
    for (const key of split(path)) {
      const child = at.children.get(key) ?? { children: new Map<string, TypeNode>() };
      at.children.set(key, child);
      at = child;
    }
    addTypes(at, subtree, split);
  }
}

/** Equalities are `{ path: [paths] }`, or `[paths, { path: [paths] }?]` where the first are equal to the root. */
function readLinks(equalities: unknown, split: (path: string) => Path): Link[] {
  if (equalities === undefined) return [];
  const [toRoot, others] = (Array.isArray(equalities) ? equalities : [[], equalities]) as [string[], object?];
  const links: Link[] = toRoot.map((path) => ({ from: [], to: split(path) }));
  for (const [from, paths] of Object.entries(others ?? {})) {
    for (const path of paths as string[]) links.push({ from: split(from), to: split(path) });
  }
  // Outer paths first: a link replaces everything below its path, where another link may end.
  return links.sort((left, right) => left.to.length - right.to.length);
}

/** Puts the object at `from` also at `to`. Paths that were not written, such as a function's, are skipped. */
function drawLink(root: unknown, { from, to }: Link): void {
  const target = findParent(root, to);
  if (target === undefined) return;
  if (from.length === 0) {
    target.container[target.key] = root;
    return;
  }
  const source = findParent(root, from);
  if (source === undefined) return;
  const shared = source.container[source.key];
  const node = typeof shared === 'object' && shared !== null ? shared : new SharedLeaf(shared);
  source.container[source.key] = node;
  target.container[target.key] = node;
}

function findParent(root: unknown, path: Path): { container: Container; key: string } | undefined {
  let container = root;
  for (const [index, key] of path.entries()) {
    if (typeof container !== 'object' || container === null || !Object.hasOwn(container, key)) return undefined;
    if (index === path.length - 1) return { container: container as Container, key };
    container = (container as Container)[key];
  }
  return undefined;
}

/** How many values a text may stand for beyond its length. Superjson writes a shared value at each of its places. */
const EXPANSION_MAX = 1_000_000;

/** A chain of shared values doubles with each link. Writing or printing it would never end. */
function refuseExpansion(root: unknown, max: number): void {
  const sizes = new Map<object, number>();
  const sizeOf = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 1;
    const known = sizes.get(value);
    if (known !== undefined) return known;
    // A cycle counts once.
    sizes.set(value, 1);
    const size = Object.values(value).reduce<number>((sum, part) => sum + sizeOf(part), 1);
    sizes.set(value, size);
    return size;
  };
  if (sizeOf(root) > max) throw new UnusableTextError('its shared values stand for too many');
}

const TYPED_ARRAYS = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
];

class Reviver {
  readonly #recipes: ReadonlyMap<string, AnyRecipe>;
  readonly #isLinked: boolean;
  readonly #revived = new Map<unknown, unknown>();

  constructor(recipes: ReadonlyMap<string, AnyRecipe>, isLinked: boolean) {
    this.#recipes = recipes;
    this.#isLinked = isLinked;
  }

  /** The live value of a node. Plain objects and arrays are revived in place: the parsed tree is ours. */
  revive(raw: unknown, node: TypeNode | undefined): unknown {
    if (node === undefined && !this.#isLinked) return raw;
    const canBeShared = typeof raw === 'object' && raw !== null;
    if (canBeShared && this.#revived.has(raw)) return this.#revived.get(raw);
    const json = raw instanceof SharedLeaf ? raw.json : raw;
    const value = node?.type === undefined ? this.#reviveUntyped(json, node) : this.#reviveTyped(json, node);
    if (canBeShared) this.#revived.set(raw, value);
    return value;
  }

  #reviveUntyped(json: unknown, node: TypeNode | undefined): unknown {
    if (typeof json !== 'object' || json === null) return json;
    this.#revived.set(json, json);
    this.#reviveChildren(json as Container, node);
    return json;
  }

  /** Without links, only nodes with typed descendants need a visit. */
  #reviveChildren(container: Container, node: TypeNode | undefined): void {
    const keys = this.#isLinked ? Object.keys(container) : (node?.children.keys() ?? []);
    for (const key of keys) {
      if (Object.hasOwn(container, key)) container[key] = this.revive(container[key], node?.children.get(key));
    }
  }

  #reviveTyped(json: unknown, node: TypeNode): unknown {
    const { type } = node;
    if (Array.isArray(type)) return this.#reviveNamedType(json, node);
    switch (type) {
      case 'set':
        return this.#reviveSet(json as unknown[], node);
      case 'map':
        return this.#reviveMap(json as [unknown, unknown][], node);
      case 'Error':
        return this.#reviveError(json as Container, node);
      default:
        return reviveLeaf(json, String(type));
    }
  }

  // A set, map or error is registered before it is filled, because it may contain itself.

  #reviveSet(json: unknown[], node: TypeNode): Set<unknown> {
    const set = new Set<unknown>();
    this.#revived.set(json, set);
    this.#reviveChildren(json as unknown as Container, node);
    for (const element of json) set.add(element);
    return set;
  }

  #reviveMap(json: [unknown, unknown][], node: TypeNode): Map<unknown, unknown> {
    const map = new Map<unknown, unknown>();
    this.#revived.set(json, map);
    this.#reviveChildren(json as unknown as Container, node);
    for (const [key, value] of json) map.set(key, value);
    return map;
  }

  #reviveError(json: Container, node: TypeNode): Error {
    const error = makeError(json);
    this.#revived.set(json, error);
    this.#reviveChildren(json, node);
    if ('cause' in json)
      Object.defineProperty(error, 'cause', { value: json.cause, writable: true, configurable: true });
    return error;
  }

  #reviveNamedType(json: unknown, node: TypeNode): unknown {
    const [kind, name] = node.type as readonly unknown[];
    if (kind === 'typed-array') {
      const constructor = TYPED_ARRAYS.find((candidate) => candidate.name === name);
      // The elements are numbers, or strings that the constructor converts. Anything else may be a length to allocate.
      if (constructor && Array.isArray(json)) return new constructor(json as never);
    }
    const recipe = kind === 'custom' ? this.#recipes.get(String(name)) : undefined;
    if (recipe === undefined)
      throw new UnusableTextError(`it holds a ${String(kind)} named '${String(name)}', which is not registered`);
    if (typeof json === 'object' && json !== null) {
      // A recipe runs after its parts are revived, so a reference from a part back to the whole is null.
      this.#revived.set(json, null);
      this.#reviveChildren(json as Container, node);
    }
    return recipe.deserialize(json as never);
  }
}

function reviveLeaf(json: unknown, type: string): unknown {
  const text = String(json);
  switch (type) {
    case 'undefined':
      return undefined;
    case 'bigint':
      return BigInt(text);
    case 'number':
      return Number(text);
    case 'Date':
      return new Date(text);
    case 'URL':
      return new URL(text);
    case 'regexp': {
      const end = text.lastIndexOf('/');
      return new RegExp(text.slice(1, end), text.slice(end + 1));
    }
    default:
      throw new UnusableTextError(`it holds a value of the unknown type '${type}'`);
  }
}
