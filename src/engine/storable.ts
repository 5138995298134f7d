// What a database can keep, checked before anything is sent: a bad value is then an error of the call that brought it.
import type { Encoded } from '../codec/codec.js';
import type { WorkflowSerializationFormat } from '../codec/serializer.js';
import { DBOSError } from '../model/errors.js';
import { currentContext } from './ambient.js';
import type { Engine } from './engine.js';
import type { Run } from './run.js';

export interface SerializationOptions {
  /** The format of the value; that of the workflow unless given. */
  readonly serializationType?: WorkflowSerializationFormat;
}

/** Names stand in indexes, which take no more than about 2700 bytes an entry. */
const NAME_BYTES_MAX = 1024;

/** Refuses a topic, key or ID that cannot be stored as it is. */
export function checkName(what: string, name: string | undefined): void {
  if (name === undefined) return;
  if (typeof name !== 'string') throw new DBOSError(`The ${what} must be a text, not of type ${typeof name}.`);
  const shown = JSON.stringify(name.slice(0, 40));
  if (name.includes('\0'))
    throw new DBOSError(`The ${what} ${shown} contains a NUL character, which cannot be stored.`);
  if (/\p{Surrogate}/u.test(name)) throw new DBOSError(`The ${what} ${shown} contains half of a surrogate pair.`);
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) {
    throw new DBOSError(`The ${what} ${shown}… is longer than ${NAME_BYTES_MAX} bytes. Put long texts into the value.`);
  }
}

/** The text of a message, event or stream value: in the format asked for, else in that of whoever it comes from. */
export async function encodeStorable(
  engine: Engine,
  run: Run | undefined,
  value: unknown,
  { serializationType }: SerializationOptions,
): Promise<Encoded> {
  const ownFormat = run ? (run.isPortable ? 'portable' : undefined) : currentContext()?.serialization;
  const format = serializationType ?? ownFormat;
  const encoded = await engine.codec.encodeValue(value, format);
  if (!encoded.text.includes('\0')) return encoded;
  throw new DBOSError(
    `The serializer '${encoded.serialization}' wrote a NUL character, which cannot be stored in a text.`,
  );
}
