// The server closes the connection when a message is longer than it reads. That looks like any lost connection, and the
// commit would be repeated without end. So such a statement fails here, like one with too large a value.
import { DatabaseStatementError } from '../../kernel/errors/database-errors.js';
import type { PreparedStatement } from './statement-batch.js';

/** What the server reads, less what surrounds the parameters in a message. */
export const MESSAGE_BYTES_MAX = 0x3fff_0000;

const PROGRAM_LIMIT_EXCEEDED = '54000';
const UTF16_UNIT_BYTES_MAX = 3;

type Values = PreparedStatement['values'];

/** Throws if the parameters of a statement are too large to send. */
export function refuseTooLarge(statements: readonly PreparedStatement[], bytesMax: number): void {
  for (const { values } of statements) {
    if (boundOf(values) <= bytesMax) continue;
    const bytes = bytesOf(values);
    if (bytes <= bytesMax) continue;
    throw new DatabaseStatementError(
      `A statement with ${bytes} bytes of values cannot be sent to Postgres: it takes at most ${bytesMax}. ` +
        'Store large values elsewhere, and pass on where they are.',
      { sqlState: PROGRAM_LIMIT_EXCEEDED },
    );
  }
}

/** An upper bound of the bytes. Cheap: the texts are not looked at. */
function boundOf(values: Values): number {
  let bound = 0;
  for (const value of values) {
    if (typeof value === 'string') bound += value.length * UTF16_UNIT_BYTES_MAX;
    else if (value instanceof Uint8Array) bound += value.length;
  }
  return bound;
}

function bytesOf(values: Values): number {
  let bytes = 0;
  for (const value of values) {
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else if (value instanceof Uint8Array) bytes += value.length;
  }
  return bytes;
}
