// The default format, `js_superjson`: superjson's output plus a marker that tells it from older texts. Plain values take the
// fast path of `plain-json.ts`, which writes the same text. Each instance has its own recipes.
import { SuperJSON } from 'superjson';
import { type JSONValue, SerializationError, UnreadableValueError } from '../errors/errors.js';
import type { Claimed } from './errors.js';
import { attachFunctionStubs } from './function-stubs.js';
import { decodeLegacy } from './legacy.js';
import { type LossGuard, withPlainInstances } from './lost-values.js';
import {
  type Claim,
  copyIfPlain,
  isPlainObject,
  isRecord,
  NOT_PLAIN,
  parseJSON,
  refusingUnstorable,
} from './plain-json.js';
import { type AnyRecipe, type DBOSSerializer, type SerializationRecipe, SUPERJSON_FORMAT } from './serializer.js';
import { reviveSuperjson, UnusableTextError } from './superjson-reader.js';

const MARKER = '"__dbos_serializer":"superjson"';
/** What most functions return that only have effects. Superjson would walk it like any other value that is not plain. */
const UNDEFINED_TEXT = `{"json":null,"meta":{"values":["undefined"]},${MARKER}}`;

const BUFFER_RECIPE: SerializationRecipe<Buffer, number[]> = {
  name: 'Buffer',
  isApplicable: (value): value is Buffer => Buffer.isBuffer(value),
  serialize: (buffer) => [...buffer],
  deserialize: (bytes) => {
    // Of an object, its length would be allocated.
    if (Array.isArray(bytes)) return Buffer.from(bytes);
    throw new UnusableTextError('it holds a Buffer that is no array of bytes');
  },
};

// Superjson writes invalid dates and the special numbers in typed arrays as null, and rejects arrays of big integers. We
// write them as strings under superjson's own annotations, which every reader converts back. Superjson only lets us choose
// a recipe's name, so we use a name that is then replaced in the text.
const OWN_PREFIX = 'everstep:';
const OWN_ANNOTATION = /\["custom","everstep:(\w+)"\]/g;
const EXACT_ARRAYS = [Float32Array, Float64Array, BigInt64Array, BigUint64Array];

function isInvalidDate(value: unknown): value is Date {
  return value instanceof Date && Number.isNaN(value.getTime());
}

function isExactInJSON(element: number | bigint): boolean {
  return Number.isFinite(element) && !Object.is(element, -0);
}

function elementText(element: number | bigint): string {
  return Object.is(element, -0) ? '-0' : String(element);
}

/** A text with the name of its format, and the copy that a later reader will get. */
interface SuperjsonRoundTrip {
  readonly text: string;
  readonly serialization: string;
  readonly value: unknown;
}

export class SuperjsonFormat implements DBOSSerializer {
  readonly #superjson = new SuperJSON();
  readonly #recipes = new Map<string, AnyRecipe>();
  readonly #claimByRecipe = new Map<string, Claim>();
  /** The values of the map above, for the fast path. */
  #claims: readonly Claim[] = [];

  readonly #isClaimed = (value: unknown): boolean => this.#claims.some((claim) => claim(value));

  constructor() {
    this.#addRecipe(BUFFER_RECIPE);
    this.#addExactForms();
  }

  name(): string {
    return SUPERJSON_FORMAT;
  }

  /** Adds a type to this instance, replacing a recipe of the same name. */
  registerRecipe<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    this.#addRecipe(recipe);
    this.#claimByRecipe.set(recipe.name, (value) => recipe.isApplicable(value));
    this.#claims = [...this.#claimByRecipe.values()];
  }

  /** What a recipe of the application makes of a value, if one claims it. */
  claim(value: unknown): Claimed | undefined {
    const name = [...this.#claimByRecipe].find(([, claims]) => claims(value))?.[0];
    const recipe = name === undefined ? undefined : this.#recipes.get(name);
    return name !== undefined && recipe ? [name, recipe.serialize(value)] : undefined;
  }

  /** The value that a recipe claimed. Undefined if there is no such recipe. */
  reclaim([name, stored]: Claimed): unknown {
    return this.#claimByRecipe.has(name) ? this.#recipes.get(name)?.deserialize(stored as JSONValue) : undefined;
  }

  stringify(value: unknown, guard?: LossGuard, path: readonly string[] = []): string {
    if (this.#isUndefined(value)) return UNDEFINED_TEXT;
    return refusingUnstorable(() => {
      const copy = copyIfPlain(value, this.#claims);
      if (copy !== NOT_PLAIN) return plainText(copy);
      const hasInstances = guard?.check(value, path, this.#isClaimed);
      return this.#walk(hasInstances ? withPlainInstances(value, this.#isClaimed) : value);
    });
  }

  /** Null if no text is stored, as in DBOS. */
  parse(text: string | null | undefined): unknown {
    if (text === null || text === undefined) return null;
    if (text === UNDEFINED_TEXT) return undefined;
    const payload = parseJSON(text, SUPERJSON_FORMAT);
    if (!isRecord(payload) || payload.__dbos_serializer !== 'superjson') return decodeLegacy(text);
    try {
      return reviveSuperjson(payload, this.#recipes, text.length);
    } catch (error) {
      const reason = error instanceof UnusableTextError ? error.message : undefined;
      throw new UnreadableValueError(SUPERJSON_FORMAT, text, { cause: error, reason });
    }
  }

  /** The text and the copy that a later reader of it will get. */
  roundTrip(value: unknown, path: readonly string[], guard?: LossGuard): SuperjsonRoundTrip {
    if (this.#isUndefined(value)) return { text: UNDEFINED_TEXT, serialization: SUPERJSON_FORMAT, value };
    const plain = refusingUnstorable((): SuperjsonRoundTrip | undefined => {
      const copy = copyIfPlain(value, this.#claims);
      return copy === NOT_PLAIN ? undefined : { text: plainText(copy), serialization: SUPERJSON_FORMAT, value: copy };
    });
    if (plain) return plain;
    const text = refusingUnstorable(() => {
      const hasInstances = guard?.check(value, path, this.#isClaimed);
      return this.#walk(hasInstances ? withPlainInstances(value, this.#isClaimed) : value);
    });
    const revived = this.parse(text);
    attachFunctionStubs(value, revived, path);
    return { text, serialization: SUPERJSON_FORMAT, value: revived };
  }

  #isUndefined(value: unknown): value is undefined {
    return value === undefined && !this.#isClaimed(value);
  }

  #walk(value: unknown): string {
    const { json, meta } = this.#superjson.serialize(value);
    // A function or symbol has no JSON: the key is omitted, which reads as undefined.
    const jsonText: string | undefined = JSON.stringify(json);
    const parts = [jsonText === undefined ? '' : `"json":${jsonText},`, meta ? `"meta":${metaText(meta)},` : ''];
    return `{${parts.join('')}${MARKER}}`;
  }

  #addRecipe<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    const { name } = recipe;
    this.#superjson.registerCustom<T, S>(
      {
        isApplicable: (value: unknown): value is T => recipe.isApplicable(value),
        serialize: (value) => refuseLoss(name, value, recipe.serialize(value)),
        deserialize: (stored) => recipe.deserialize(stored),
      },
      name,
    );
    this.#recipes.set(name, recipe);
  }

  #addExactForms(): void {
    const isClaimed = this.#isClaimed;
    this.#superjson.registerCustom<Date, string>(
      {
        isApplicable: (value: unknown): value is Date => isInvalidDate(value) && !isClaimed(value),
        serialize: String,
        deserialize: (text) => new Date(text),
      },
      `${OWN_PREFIX}Date`,
    );
    for (const type of EXACT_ARRAYS) {
      type Elements = InstanceType<typeof type>;
      const needsTexts = (value: unknown): value is Elements =>
        value instanceof type && !Array.prototype.every.call(value, isExactInJSON) && !isClaimed(value);
      this.#superjson.registerCustom<Elements, string[]>(
        {
          isApplicable: needsTexts,
          serialize: (array) => Array.from<number | bigint, string>(array, elementText),
          deserialize: (texts) => new type(texts as never),
        },
        `${OWN_PREFIX}${type.name}`,
      );
    }
  }
}

function plainText(plain: unknown): string {
  return `{"json":${JSON.stringify(plain)},${MARKER}}`;
}

/**
 * The text of the annotations. The version that superjson adds only says that backslashes in paths are escaped. Without
 * backslashes it is omitted, because the shared format has no such key.
 */
function metaText(meta: { readonly v?: number }): string {
  const text = JSON.stringify({ ...meta, v: undefined });
  const versioned = text.includes('\\\\\\\\') ? JSON.stringify(meta) : text;
  if (!versioned.includes(OWN_PREFIX)) return versioned;
  return versioned.replace(OWN_ANNOTATION, (_annotation, type: string) =>
    type === 'Date' ? '"Date"' : `["typed-array","${type}"]`,
  );
}

/** Superjson walks into the result of a recipe for a container, which loses a string or number. */
function refuseLoss<S>(name: string, value: unknown, stored: S): S {
  const isContainer = Array.isArray(value) || value instanceof Map || value instanceof Set || value instanceof Error;
  if ((typeof stored !== 'object' || stored === null) && (isContainer || isPlainObject(value))) {
    throw new SerializationError(
      `The serialization recipe '${name}' made ${stored === null ? 'null' : `a ${typeof stored}`} of a plain object, array, Map, Set or Error. ` +
        `Return an object or an array for these.`,
    );
  }
  return stored;
}
