// Checks that names and values can be stored before anything is sent, so that only the offending call fails.
import { andThen, type MaybePromise } from '../kernel/codec/maybe-promise.js';
import type { Codec, Encoded } from '../kernel/codec/codec.js';
import type { WorkflowSerializationFormat } from '../kernel/codec/serializer.js';
import { SerializationError } from '../kernel/errors/errors.js';
import { optional, storableName, string } from '../kernel/check/validation.js';

export interface SerializationOptions {
  /** The format of the value. Default: the workflow's. */
  readonly serializationType?: WorkflowSerializationFormat;
}

const optionalName = optional(storableName);
const lookupID = string();

/** Refuses a key or ID that cannot be stored unchanged. */
export function checkName(argument: string, name: string): void {
  storableName.read(name, argument);
}

/** The same for a topic or key that may be left out. */
export function checkOptionalName(argument: string, name: string | undefined): void {
  optionalName.read(name, argument);
}

/** Refuses an ID that the database cannot compare: it would fail the whole shared query. */
export function checkLookupID(workflowID: string): void {
  lookupID.read(workflowID, 'workflowID');
}

/** Encodes a message, event or stream value. */
export function encodeStorable(
  codec: Codec,
  value: unknown,
  format: WorkflowSerializationFormat | undefined,
): MaybePromise<Encoded> {
  return andThen(codec.encodeValue(value, format), refuseNUL);
}

/** Only a serializer of the user's can write one. */
export function refuseNUL<E extends Encoded>(encoded: E): E {
  if (!encoded.text.includes('\0')) return encoded;
  throw new SerializationError(
    `Serializer "${encoded.serialization}" wrote a NUL character, which the database cannot store.`,
  );
}
