// What a database can keep, checked before anything is sent: a bad value is then an error of the call that brought it.
import type { Codec, Encoded } from '../../codec/codec.js';
import type { WorkflowSerializationFormat } from '../../codec/serializer.js';
import { DBOSError } from '../../model/errors/errors.js';

export interface SerializationOptions {
  /** The format of the value; that of the workflow unless given. */
  readonly serializationType?: WorkflowSerializationFormat;
}

/** Names stand in indexes, which take no more than about 2700 bytes an entry. */
const NAME_BYTES_MAX = 1024;

/** Refuses a topic, key or ID that cannot be stored as it is. */
export function checkName(what: string, name: string | undefined): void {
  const problem = name === undefined ? undefined : problemOf(name);
  if (problem !== undefined) throw new DBOSError(`The ${what} ${shown(name)} ${problem}`);
}

/** Refuses an ID that no workflow can have: the database would refuse every query that asks for it among others. */
export function checkSoughtID(workflowID: string): void {
  if (typeof workflowID === 'string' && !workflowID.includes('\0')) return;
  throw new DBOSError(`The ID of the workflow ${shown(workflowID)} ${problemOf(workflowID)}`);
}

/** Whether a text from outside can be a topic, key or ID. */
export function isStorableName(name: unknown): name is string {
  return name !== undefined && problemOf(name) === undefined;
}

function problemOf(name: unknown): string | undefined {
  if (typeof name !== 'string') return `must be a text, not of type ${typeof name}.`;
  if (name.includes('\0')) return 'contains a NUL character, which cannot be stored.';
  if (/\p{Surrogate}/u.test(name)) return 'contains half of a surrogate pair, which cannot be stored.';
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return undefined;
  return `is longer than ${NAME_BYTES_MAX} bytes. Put long texts into the value.`;
}

function shown(name: unknown): string {
  const text = JSON.stringify(name) ?? typeof name;
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** The text of a message, event or stream value. */
export async function encodeStorable(
  codec: Codec,
  value: unknown,
  format: WorkflowSerializationFormat | undefined,
): Promise<Encoded> {
  const encoded = await codec.encodeValue(value, format);
  if (!encoded.text.includes('\0')) return encoded;
  throw new DBOSError(
    `The serializer '${encoded.serialization}' wrote a NUL character, which cannot be stored in a text.`,
  );
}
