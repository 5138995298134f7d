// Prepares messages to workflows: checks, encodes and identifies them. The callers write them.
import { andThen, type MaybePromise } from '../../kernel/codec/maybe-promise.js';
import { newID } from '../../kernel/base/ids.js';
import type { Codec } from '../../kernel/codec/codec.js';
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import { DBOSNonExistentWorkflowError } from '../../kernel/errors/errors.js';
import { storableName } from '../../kernel/check/validation.js';
import type { MessageKey, NewMessage } from './messages.sql.js';
import { checkOptionalName, encodeStorable, type SerializationOptions } from '../../operator/storable.js';

/** A message of `DBOS.sendBulk`. */
export interface BulkMessage<T = unknown> extends SerializationOptions {
  readonly destinationID: string;
  readonly message: T;
  readonly topic?: string;
  /** Messages with the same key are sent to the same workflow only once. */
  readonly idempotencyKey?: string;
}

/** Stands for messages without a topic. */
export const NO_TOPIC = '__null__topic__';

export function checkMessage({ destinationID, topic, idempotencyKey }: BulkMessage): void {
  storableName.read(destinationID, 'destinationID');
  checkOptionalName('topic', topic);
  checkOptionalName('idempotencyKey', idempotencyKey);
}

export function encodeMessage(
  codec: Codec,
  outgoing: BulkMessage,
  format: WorkflowSerializationFormat | undefined,
): MaybePromise<NewMessage> {
  const { destinationID, topic = NO_TOPIC, idempotencyKey } = outgoing;
  return andThen(encodeStorable(codec, outgoing.message, format), ({ text, serialization }) => {
    const messageID = idempotencyKey === undefined ? newID() : keyedMessageID(idempotencyKey, destinationID);
    return { messageID, destinationID, topic, text, serialization };
  });
}

/** As DBOS and send_message make it, so that all deliver a key once. Where it could be split in two ways, the key's bytes are added. */
function keyedMessageID(idempotencyKey: string, destinationID: string): string {
  const messageID = `${idempotencyKey}::${destinationID}`;
  const isAmbiguous = messageID.indexOf('::') !== messageID.lastIndexOf('::');
  return isAmbiguous ? `${Buffer.byteLength(idempotencyKey)}::${messageID}` : messageID;
}

export function keyOfMessage({ destinationID, topic }: NewMessage): MessageKey {
  return { workflowID: destinationID, topic };
}

export function missingDestinations(messages: readonly NewMessage[]): Error {
  const workflowIDs = [...new Set(messages.map(({ destinationID }) => destinationID))];
  return new DBOSNonExistentWorkflowError(
    `Sent to non-existent destination workflow UUID: ${workflowIDs.slice(0, 10).join(', ')}`,
  );
}
