// Cuts a value to what can be shown. A stored value of a few hundred bytes can refer to its parts so often that writing
// it out never ends, and a large one costs seconds to print and is read by no one. So cut first, then print.

export interface ExcerptLimits {
  /** Values, each counted as often as it would be printed. */
  readonly nodes: number;
  /** Of strings, keys and bytes. */
  readonly characters: number;
  readonly depth: number;
  /** Whether to mark cycles as left out. Otherwise they stay cycles. */
  readonly isTree?: boolean;
}

export interface Excerpt {
  readonly value: unknown;
  readonly isTruncated: boolean;
}

const ELLIPSIS = '…';
const LEFT_OUT = '[…]';
const CIRCULAR = '[Circular]';

/** The value itself if it is within the limits. Otherwise a copy with marks where parts were left out. */
export function excerptOf(value: unknown, limits: ExcerptLimits): Excerpt {
  const cutter = new Cutter(limits);
  const copy = cutter.copy(value, 0);
  return cutter.isTruncated ? { value: copy, isTruncated: true } : { value, isTruncated: false };
}

class Cutter {
  isTruncated = false;
  readonly #depth: number;
  readonly #isTree: boolean;
  #nodes: number;
  #characters: number;
  /** The copies of the objects around the current one, so that a cycle stays one. */
  readonly #around = new Map<object, unknown>();

  constructor({ nodes, characters, depth, isTree = false }: ExcerptLimits) {
    this.#isTree = isTree;
    this.#nodes = nodes;
    this.#characters = characters;
    this.#depth = depth;
  }

  copy(value: unknown, depth: number): unknown {
    if (this.#isUsedUp) return this.#leaveOut();
    this.#nodes -= 1;
    if (typeof value === 'string') return this.#text(value);
    if (typeof value !== 'object' || value === null) return value;
    const outer = this.#around.get(value);
    if (outer !== undefined) return this.#isTree ? this.#leaveOut(CIRCULAR) : outer;
    if (depth >= this.#depth) return this.#leaveOut();
    const copy = this.#object(value, depth + 1);
    this.#around.delete(value);
    return copy;
  }

  get #isUsedUp(): boolean {
    return this.#nodes <= 0 || this.#characters < 0;
  }

  #leaveOut(mark = LEFT_OUT): string {
    this.isTruncated = true;
    return mark;
  }

  #text(text: string): string {
    const room = Math.max(0, this.#characters);
    this.#characters -= text.length;
    if (text.length <= room) return text;
    this.isTruncated = true;
    return `${text.slice(0, room)}${ELLIPSIS}`;
  }

  #object(value: object, depth: number): unknown {
    if (Array.isArray(value)) return this.#array(value, depth);
    if (value instanceof Map) return this.#map(value, depth);
    if (value instanceof Set) return this.#set(value, depth);
    if (ArrayBuffer.isView(value)) return this.#bytes(value);
    if (value instanceof Date || value instanceof RegExp || value instanceof URL) return value;
    if (value instanceof Error) return this.#fields(value, errorFields(value), depth);
    return this.#fields(value, fieldsOf(value), depth);
  }

  #array(array: readonly unknown[], depth: number): unknown[] {
    const copy: unknown[] = [];
    this.#around.set(array, copy);
    for (const element of array) if (!this.#add(copy, element, depth)) break;
    return copy;
  }

  #set(set: ReadonlySet<unknown>, depth: number): Set<unknown> {
    const elements: unknown[] = [];
    const copy = new Set<unknown>();
    this.#around.set(set, copy);
    for (const element of set) if (!this.#add(elements, element, depth)) break;
    for (const element of elements) copy.add(element);
    return copy;
  }

  /** Whether there may be room for more. */
  #add(copy: unknown[], element: unknown, depth: number): boolean {
    const hasRoom = !this.#isUsedUp;
    copy.push(this.copy(element, depth));
    return hasRoom;
  }

  #map(map: ReadonlyMap<unknown, unknown>, depth: number): Map<unknown, unknown> {
    const copy = new Map<unknown, unknown>();
    this.#around.set(map, copy);
    for (const [key, value] of map) {
      if (this.#isUsedUp) {
        copy.set(this.#leaveOut(), LEFT_OUT);
        break;
      }
      copy.set(this.copy(key, depth), this.copy(value, depth));
    }
    return copy;
  }

  #fields(object: object, fields: Iterable<readonly [string, unknown]>, depth: number): object {
    const copy: Record<string, unknown> = {};
    this.#around.set(object, copy);
    for (const [key, field] of fields) {
      if (this.#isUsedUp) {
        define(copy, this.#leaveOut(), LEFT_OUT);
        break;
      }
      define(copy, this.#text(key), this.copy(field, depth));
    }
    return copy;
  }

  #bytes(view: ArrayBufferView): ArrayBufferView {
    const room = Math.max(0, this.#characters);
    this.#characters -= view.byteLength;
    if (view.byteLength <= room) return view;
    this.isTruncated = true;
    return Buffer.from(view.buffer, view.byteOffset, room);
  }
}

function define(copy: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') copy[key] = value;
  else Object.defineProperty(copy, key, { value, enumerable: true, writable: true, configurable: true });
}

/** One by one: an object may have more fields than are copied. */
function* fieldsOf(object: object): Generator<readonly [string, unknown]> {
  for (const key in object) {
    if (Object.hasOwn(object, key)) yield [key, read(object as Record<string, unknown>, key)];
  }
}

/** A getter may throw. The rest of the value can be shown all the same. */
function read(object: Record<string, unknown>, key: string): unknown {
  try {
    return object[key];
  } catch {
    return LEFT_OUT;
  }
}

function* errorFields(error: Error): Generator<readonly [string, unknown]> {
  const { name, message, stack, cause } = error;
  yield* Object.entries({ name, message, stack, cause }).filter(([, field]) => field !== undefined);
  yield* fieldsOf(error);
}
