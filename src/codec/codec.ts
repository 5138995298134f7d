// Converts between live values and stored text. Each engine or client has its own Codec, with its own recipes and perhaps
// a custom serializer. The name of the format is stored with each text, so that it can be read whatever is configured
// later.
import {
  DBOSInvalidArgumentError,
  type JSONValue,
  SerializationError,
  UnreadableValueError,
} from '../model/errors/errors.js';
import { describeThrown, encodePortableError, reviveThrown } from './errors.js';
import { attachFunctionStubs } from './function-stubs.js';
import { decodeLegacy } from './legacy.js';
import { LossGuard, type LossPolicy } from './lost-values.js';
import { andThen, type MaybePromise, orElse } from './maybe-promise.js';
import { PayloadGuard } from './payload-size.js';
import {
  decodePortable,
  decodePortableError,
  decodePortableInputs,
  encodePortable,
  encodePortableInputs,
} from './portable.js';
import {
  type DBOSSerializer,
  type Inputs,
  LEGACY_FORMAT,
  PORTABLE_FORMAT,
  type SerializationRecipe,
  SUPERJSON_FORMAT,
  type WorkflowSerializationFormat,
} from './serializer.js';
import { SuperjsonFormat } from './superjson.js';

/** A text and the name of its format, stored in two columns. */
export interface Encoded {
  readonly text: string;
  readonly serialization: string;
}

/** An encoded value, and the copy that a later reader will get: what the program continues with. */
export interface RoundTrip extends Encoded {
  readonly value: unknown;
}

export interface InputsRoundTrip extends Encoded, Inputs {}

export interface RoundTripOptions {
  readonly format?: WorkflowSerializationFormat;
  /** Where the value comes from, such as the workflow's name, for the error of a lost function. */
  readonly path?: readonly string[];
}

export interface CodecOptions {
  /** What to do with functions, symbols and class instances. Default: nothing. */
  readonly lostValues?: LossPolicy;
  /** Refuses larger texts. Default: no limit. */
  readonly maxPayloadBytes?: number;
  readonly warn?: (message: string) => void;
}

/** A stored text, or none. */
type Stored = string | null | undefined;

/**
 * Encodes and decodes. With a synchronous serializer, such as the default one, methods return their result; with an
 * asynchronous one, a promise of it.
 */
export class Codec {
  /** The 'native' format. */
  readonly serializer: DBOSSerializer;
  readonly #superjson = new SuperjsonFormat();

  readonly #guard: LossGuard | undefined;
  readonly #sizes: PayloadGuard;

  constructor(serializer?: DBOSSerializer, { lostValues, maxPayloadBytes, warn }: CodecOptions = {}) {
    this.serializer = serializer ?? this.#superjson;
    this.#guard = lostValues && new LossGuard({ policy: lostValues, warn });
    this.#sizes = new PayloadGuard({ maxBytes: maxPayloadBytes, warn });
  }

  /** Adds a type to the default format. A custom serializer ignores it. */
  registerRecipe<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    this.#superjson.registerRecipe(recipe);
  }

  encodeValue(
    value: unknown,
    format?: WorkflowSerializationFormat,
    path: readonly string[] = [],
  ): MaybePromise<Encoded> {
    const guard = this.#guard;
    if (isPortable(format)) {
      const text = encodePortable(value, () => guard?.check(value, path));
      return this.#sized({ text, serialization: PORTABLE_FORMAT }, path);
    }
    return andThen(this.#encodeNative(value, guard, path), (encoded) => this.#sized(encoded, path));
  }

  #sized<E extends Encoded>(encoded: E, path: readonly string[]): E {
    this.#sizes.check(encoded.text, path);
    return encoded;
  }

  #encodeNative(value: unknown, guard: LossGuard | undefined, path: readonly string[]): MaybePromise<Encoded> {
    const serialization = this.serializer.name();
    if (this.serializer === this.#superjson) {
      return { text: this.#superjson.stringify(value, guard, path), serialization };
    }
    return andThen<unknown, Encoded>(this.serializer.stringify(value), (text) => {
      if (typeof text === 'string') return { text, serialization };
      throw new SerializationError(`The serializer '${serialization}' returned ${typeof text} instead of a string.`);
    });
  }

  /**
   * Decodes a stored text. Without a format name, the configured serializer is used. Without a text, the value is null,
   * unless a custom serializer says otherwise.
   */
  decodeValue(text: Stored, serialization: string | null | undefined): unknown {
    if (serialization === PORTABLE_FORMAT) return decodePortable(text);
    const name = this.serializer.name();
    if (serialization === null || serialization === undefined || serialization === name) {
      return this.serializer === this.#superjson ? this.#superjson.parse(text) : this.#parseCustom(text, name);
    }
    if (serialization === SUPERJSON_FORMAT) return this.#superjson.parse(text);
    if (serialization === LEGACY_FORMAT) return text === null || text === undefined ? null : decodeLegacy(text);
    throw new SerializationError(`Value deserialization type ${serialization} is not available`);
  }

  encodeInputs(
    args: readonly unknown[],
    format?: WorkflowSerializationFormat,
    namedArgs?: Record<string, unknown>,
  ): MaybePromise<Encoded> {
    if (isPortable(format)) {
      return { text: this.#portableInputs(args, namedArgs, []), serialization: PORTABLE_FORMAT };
    }
    refuseNamedArgs(namedArgs);
    return this.encodeValue(args);
  }

  /** Decodes the arguments in a stored text. The caller decides what a missing text means. */
  decodeInputs(text: string, serialization: string | null | undefined): MaybePromise<Inputs> {
    if (serialization === PORTABLE_FORMAT) return decodePortableInputs(text);
    return andThen(this.decodeValue(text, serialization), (args): Inputs => {
      if (Array.isArray(args)) return { args };
      throw new UnreadableValueError(serialization ?? this.serializer.name(), text, {
        reason: 'it holds no arguments',
      });
    });
  }

  /** Encodes a thrown value. Fields that cannot be stored are dropped; it never fails because of them. */
  encodeError(thrown: unknown, format?: WorkflowSerializationFormat): MaybePromise<Encoded> {
    if (isPortable(format)) return { text: encodePortableError(thrown), serialization: PORTABLE_FORMAT };
    return orElse(
      () => this.#encodeNative(describeThrown(thrown), undefined, []),
      () => this.#encodeNative(describeThrown(thrown, 'plain'), undefined, []),
    );
  }

  /** Decodes a thrown value: an Error with the original's fields, or whatever was thrown. Null if there is no text. */
  decodeError(text: Stored, serialization: string | null | undefined): unknown {
    if (text === null || text === undefined) return null;
    if (serialization === PORTABLE_FORMAT) return decodePortableError(text);
    return andThen(this.decodeValue(text, serialization), reviveThrown);
  }

  /** Encodes a value and returns the copy to continue with, so that a first run sees what a recovered one will. */
  roundTripValue(value: unknown, options: RoundTripOptions = {}): MaybePromise<RoundTrip> {
    const { format, path = [] } = options;
    if (!isPortable(format) && this.serializer === this.#superjson) {
      return this.#sized(this.#superjson.roundTrip(value, path, this.#guard), path);
    }
    return andThen(this.encodeValue(value, format, path), (encoded) =>
      andThen(this.decodeValue(encoded.text, encoded.serialization), (copy): RoundTrip => {
        if (isPortable(format)) attachFunctionStubs(value, copy, path);
        return { ...encoded, value: copy };
      }),
    );
  }

  /** The same for the arguments of a workflow. */
  roundTripInputs(
    args: readonly unknown[],
    options: RoundTripOptions & { readonly namedArgs?: Record<string, unknown> } = {},
  ): MaybePromise<InputsRoundTrip> {
    const { format, namedArgs, path = [] } = options;
    if (isPortable(format)) {
      const text = this.#portableInputs(args, namedArgs, path);
      const inputs = decodePortableInputs(text);
      attachFunctionStubs(args, inputs.args, path);
      attachFunctionStubs(namedArgs, inputs.namedArgs, path);
      return { text, serialization: PORTABLE_FORMAT, ...inputs };
    }
    refuseNamedArgs(namedArgs);
    return andThen(this.roundTripValue(args, { path }), ({ text, serialization, value }): InputsRoundTrip => {
      // An array decodes to an array unless the serializer is broken.
      if (!Array.isArray(value))
        throw new SerializationError(`The serializer '${serialization}' did not return an array.`);
      return { text, serialization, args: value };
    });
  }

  #portableInputs(
    args: readonly unknown[],
    namedArgs: Record<string, unknown> | undefined,
    path: readonly string[],
  ): string {
    const text = encodePortableInputs(args, namedArgs, () => {
      this.#guard?.check(args, path);
      this.#guard?.check(namedArgs, path);
    });
    this.#sizes.check(text, path);
    return text;
  }

  #parseCustom(text: Stored, name: string): unknown {
    return orElse(
      () => this.serializer.parse(text),
      (cause) => {
        throw new UnreadableValueError(name, text ?? '', { cause, reason: 'the serializer refused it' });
      },
    );
  }
}

function isPortable(format: WorkflowSerializationFormat): boolean {
  if (format === undefined || format === 'native') return false;
  if (format === 'portable') return true;
  throw new DBOSInvalidArgumentError(
    `Unknown serialization format '${String(format)}'. Use 'native' or 'portable'.`,
    'serializationType',
  );
}

function refuseNamedArgs(namedArgs: Record<string, unknown> | undefined): void {
  if (namedArgs === undefined) return;
  throw new DBOSInvalidArgumentError(
    `Named arguments need the portable format. Use serializationType: 'portable'.`,
    'namedArgs',
  );
}
