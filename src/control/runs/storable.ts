// What a database can keep, checked before anything is sent: a bad value is then an error of the call that brought it.
import type { Codec, Encoded } from '../../codec/codec.js';
import type { WorkflowSerializationFormat } from '../../codec/serializer.js';
import { SerializationError } from '../../model/errors/errors.js';
import { optional, storableName, string } from '../../model/validation/validation.js';

export interface SerializationOptions {
  /** The format of the value; that of the workflow unless given. */
  readonly serializationType?: WorkflowSerializationFormat;
}

const optionalName = optional(storableName);
const sought = string();

/** Refuses a topic, key or ID that cannot be stored as it is. */
export function checkName(argument: string, name: string | undefined): void {
  optionalName.read(name, argument);
}

/** Refuses an ID that no workflow can have: the database would refuse every query that asks for it among others. */
export function checkSoughtID(workflowID: string): void {
  sought.read(workflowID, 'workflowID');
}

/** The text of a message, event or stream value. */
export async function encodeStorable(
  codec: Codec,
  value: unknown,
  format: WorkflowSerializationFormat | undefined,
): Promise<Encoded> {
  const encoded = await codec.encodeValue(value, format);
  if (!encoded.text.includes('\0')) return encoded;
  throw new SerializationError(
    `Serializer "${encoded.serialization}" wrote a NUL character, which the database cannot store.`,
  );
}
