// Converts between live values and stored text. Each engine or client has its own Codec, with its own recipes and perhaps
// a custom serializer. The name of the format is stored with each text, so that it can be read whatever is configured
// later.
import {
  DBOSInvalidArgumentError,
  type JSONValue,
  SerializationError,
  UnreadableValueError,
} from '../errors/errors.js';
import { type ErrorClasses, isMinified, KnownErrors, plainName, type RegisterOptions } from './error-classes.js';
import { type Claimed, type Describing, describeThrown, encodePortableError, reviveThrown } from './errors.js';
import { attachFunctionStubs } from './function-stubs.js';
import { decodeLegacy } from './legacy.js';
import { LossGuard, type LossPolicy } from './lost-values.js';
import { andThen, type MaybePromise, orElse } from './maybe-promise.js';
import { PayloadGuard } from './payload-size.js';
import { copyIfPlain, NOT_PLAIN } from './plain-json.js';
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

/** An encoded thrown value, and the copy that a later reader will get: what the program continues with. */
export interface ErrorRoundTrip extends Encoded {
  readonly error: unknown;
}

export interface ErrorOptions {
  readonly format?: WorkflowSerializationFormat;
  /** Classes of errors that the step knows, besides those that the application has registered. */
  readonly errors?: ErrorClasses | undefined;
}

export interface CodecOptions {
  /** The classes of errors that the application has registered. Default: none. */
  readonly knownErrors?: KnownErrors;
  /** Whether to warn of classes of errors that are not registered. Default: false. */
  readonly warnsOfErrors?: boolean;
  /** What to do with what would not come back, and with class instances. Default: nothing. */
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

  readonly #knownErrors: KnownErrors;
  readonly #onUnknownError: ((name: string) => void) | undefined;
  readonly #guard: LossGuard | undefined;
  readonly #sizes: PayloadGuard;

  constructor(
    serializer?: DBOSSerializer,
    { knownErrors, warnsOfErrors, lostValues, maxPayloadBytes, warn }: CodecOptions = {},
  ) {
    this.serializer = serializer ?? this.#superjson;
    this.#knownErrors = knownErrors ?? new KnownErrors('');
    this.#onUnknownError = warnsOfErrors && warn ? warnerOfErrors(warn) : undefined;
    this.#guard = lostValues && new LossGuard({ policy: lostValues, warn });
    this.#sizes = new PayloadGuard({ maxBytes: maxPayloadBytes, warn });
  }

  /** The names of the formats that it decodes. */
  get formats(): readonly string[] {
    return [...new Set([PORTABLE_FORMAT, this.serializer.name(), SUPERJSON_FORMAT, LEGACY_FORMAT])];
  }

  /** Adds classes whose errors are read back as instances of them. */
  registerErrors(classes: ErrorClasses, options: RegisterOptions): void {
    this.#knownErrors.register(classes, options);
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
    if (this.#isDefault) {
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
      return this.#isDefault ? this.#superjson.parse(text) : this.#parseCustom(text, name);
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
  encodeError(thrown: unknown, { format, errors }: ErrorOptions = {}): MaybePromise<Encoded> {
    if (isPortable(format)) return { text: encodePortableError(thrown), serialization: PORTABLE_FORMAT };
    const claim = (error: Error): Claimed | undefined => (this.#isDefault ? this.#superjson.claim(error) : undefined);
    const encode = (options: Pick<Describing, 'claim' | 'canStore'>): MaybePromise<Encoded> => {
      const shared = { known: this.#knownErrors, given: errors, onUnknown: this.#onUnknownError };
      const described = describeThrown(thrown, { ...options, ...shared });
      return this.#encodeNative(described, undefined, []);
    };
    return orElse(
      () => encode({ claim, canStore: () => true }),
      () => encode({ claim: (error) => this.#storable(claim, error), canStore: (field) => this.#canStore(field) }),
    );
  }

  #storable(claim: Describing['claim'], error: Error): Claimed | undefined {
    try {
      const claimed = claim(error);
      return claimed && this.#canStore(claimed[1]) ? claimed : undefined;
    } catch {
      // The recipe failed. The error that it failed for matters more.
      return undefined;
    }
  }

  get #isDefault(): boolean {
    return this.serializer === this.#superjson;
  }

  #canStore(field: unknown): boolean {
    if (!this.#isDefault) return copyIfPlain(field) !== NOT_PLAIN;
    try {
      this.#superjson.stringify(field);
      return true;
    } catch {
      // Whatever is wrong with it.
      return false;
    }
  }

  /** Decodes a thrown value: an Error with the original's class and fields, or whatever was thrown. Null if there is no text. */
  decodeError(text: Stored, serialization: string | null | undefined, errors?: ErrorClasses): unknown {
    return this.#decodeError(text, serialization, { errors, isLive: false });
  }

  #decodeError(
    text: Stored,
    serialization: string | null | undefined,
    { errors, isLive }: ErrorOptions & { readonly isLive: boolean },
  ): unknown {
    if (text === null || text === undefined) return null;
    if (serialization === PORTABLE_FORMAT) return decodePortableError(text);
    const reclaim = (claimed: Claimed): unknown => (this.#isDefault ? this.#superjson.reclaim(claimed) : undefined);
    const reviving = { known: this.#knownErrors, given: errors, isLive, reclaim };
    return andThen(this.decodeValue(text, serialization), (described) => reviveThrown(described, reviving));
  }

  /** Encodes a thrown value and returns the copy to continue with, so that a first run sees what a replay will. */
  roundTripError(thrown: unknown, options: ErrorOptions = {}): MaybePromise<ErrorRoundTrip> {
    return andThen(this.encodeError(thrown, options), (encoded) =>
      andThen(
        this.#decodeError(encoded.text, encoded.serialization, { ...options, isLive: true }),
        (error): ErrorRoundTrip => ({ ...encoded, error }),
      ),
    );
  }

  /** Encodes a value and returns the copy to continue with, so that a first run sees what a recovered one will. */
  roundTripValue(value: unknown, options: RoundTripOptions = {}): MaybePromise<RoundTrip> {
    const { format, path = [] } = options;
    if (!isPortable(format) && this.#isDefault) {
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

/** Names of classes are remembered up to this many. */
const ERROR_WARNINGS_MAX = 200;

function warnerOfErrors(warn: (message: string) => void): (name: string) => void {
  const warned = new Set<string>();
  return (name) => {
    if (warned.has(name) || warned.size >= ERROR_WARNINGS_MAX) return;
    warned.add(name);
    const own = plainName(name);
    warn(
      `A workflow got an error of class ${own || 'without a name'}, which is not registered. After a restart, \`instanceof\` ` +
        'recognises such an error if the code of the class is still the same, and it has no methods until then. ' +
        `Add: DBOS.registerErrors(${isMinified(own) ? `{ 'a lasting name': ${own || 'TheClass'} }` : own})`,
    );
  };
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
