// The one door between live values and stored texts. An engine or client has one Codec, with its own recipes and
// perhaps a serializer of the application's; nothing is shared between two. Each stored text goes with the name of
// its format, by which it is read again whatever is configured then.
import {
  DBOSInvalidArgumentError,
  type JSONValue,
  SerializationError,
  UnreadableValueError,
} from '../model/errors/errors.js';
import { describeThrown, encodePortableError, reviveThrown } from './errors.js';
import { attachFunctionStubs } from './function-stubs.js';
import { decodeLegacy } from './legacy.js';
import { andThen, type MaybePromise, orElse } from './maybe-promise.js';
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

/** A text and the name of its format, as they stand in two columns. */
export interface Encoded {
  readonly text: string;
  readonly serialization: string;
}

/** An encoded value and the copy that a later reader will get: what the program goes on with. */
export interface RoundTrip extends Encoded {
  readonly value: unknown;
}

export interface InputsRoundTrip extends Encoded, Inputs {}

export interface RoundTripOptions {
  readonly format?: WorkflowSerializationFormat;
  /** Where the value stands, such as the workflow's name, for the message of a lost function. */
  readonly path?: readonly string[];
}

/** A stored text, or none. */
type Stored = string | null | undefined;

/**
 * Encodes and decodes. With a synchronous serializer, which the default one is, every method returns its result at
 * once; with an asynchronous one it returns a promise. `await` serves both.
 */
export class Codec {
  /** What 'native' means here. */
  readonly serializer: DBOSSerializer;
  readonly #superjson = new SuperjsonFormat();

  constructor(serializer?: DBOSSerializer) {
    this.serializer = serializer ?? this.#superjson;
  }

  /** Teaches the default format a type. It does not concern a custom serializer. */
  registerRecipe<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    this.#superjson.registerRecipe(recipe);
  }

  encodeValue(value: unknown, format?: WorkflowSerializationFormat): MaybePromise<Encoded> {
    if (isPortable(format)) return { text: encodePortable(value), serialization: PORTABLE_FORMAT };
    const serialization = this.serializer.name();
    if (this.serializer === this.#superjson) return { text: this.#superjson.stringify(value), serialization };
    return andThen<unknown, Encoded>(this.serializer.stringify(value), (text) => {
      if (typeof text === 'string') return { text, serialization };
      throw new SerializationError(`The serializer '${serialization}' returned ${typeof text} instead of a text.`);
    });
  }

  /**
   * The value of a stored text. No format name means the configured serializer. No text decodes to null, unless a
   * custom serializer says otherwise.
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
    if (isPortable(format)) return { text: encodePortableInputs(args, namedArgs), serialization: PORTABLE_FORMAT };
    refuseNamedArgs(namedArgs);
    return this.encodeValue(args);
  }

  /** The arguments in a stored text. It is for the caller to say what a missing text means. */
  decodeInputs(text: string, serialization: string | null | undefined): MaybePromise<Inputs> {
    if (serialization === PORTABLE_FORMAT) return decodePortableInputs(text);
    return andThen(this.decodeValue(text, serialization), (args): Inputs => {
      if (Array.isArray(args)) return { args };
      throw new UnreadableValueError(serialization ?? this.serializer.name(), text, {
        reason: 'it holds no arguments',
      });
    });
  }

  /** Encodes whatever was thrown. It does not fail on fields that cannot be stored; it leaves them out. */
  encodeError(thrown: unknown, format?: WorkflowSerializationFormat): MaybePromise<Encoded> {
    if (isPortable(format)) return { text: encodePortableError(thrown), serialization: PORTABLE_FORMAT };
    return orElse(
      () => this.encodeValue(describeThrown(thrown)),
      () => this.encodeValue(describeThrown(thrown, 'plain')),
    );
  }

  /** The thrown value: an Error with the fields of the original, or what else was thrown. No text decodes to null. */
  decodeError(text: Stored, serialization: string | null | undefined): unknown {
    if (text === null || text === undefined) return null;
    if (serialization === PORTABLE_FORMAT) return decodePortableError(text);
    return andThen(this.decodeValue(text, serialization), reviveThrown);
  }

  /** Encodes a value and gives the copy to go on with, so that a first run sees what a recovered one will see. */
  roundTripValue(value: unknown, options: RoundTripOptions = {}): MaybePromise<RoundTrip> {
    const { format, path = [] } = options;
    if (!isPortable(format) && this.serializer === this.#superjson) {
      return { serialization: SUPERJSON_FORMAT, ...this.#superjson.roundTrip(value, path) };
    }
    return andThen(this.encodeValue(value, format), (encoded) =>
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
      const text = encodePortableInputs(args, namedArgs);
      const inputs = decodePortableInputs(text);
      attachFunctionStubs(args, inputs.args, path);
      attachFunctionStubs(namedArgs, inputs.namedArgs, path);
      return { text, serialization: PORTABLE_FORMAT, ...inputs };
    }
    refuseNamedArgs(namedArgs);
    return andThen(this.roundTripValue(args, { path }), ({ text, serialization, value }): InputsRoundTrip => {
      // What was an array when encoded is one when decoded, or the serializer is broken.
      if (!Array.isArray(value))
        throw new SerializationError(`The serializer '${serialization}' did not return an array.`);
      return { text, serialization, args: value };
    });
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
