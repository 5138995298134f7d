// The format before superjson: JSON with marked objects for dates, big integers and buffers. Read only, also for texts
// that claim to be superjson but lack its marker.
import { UnreadableValueError } from '../errors/errors.js';
import { isRecord } from './plain-json.js';
import { LEGACY_FORMAT } from './serializer.js';

export function decodeLegacy(text: string): unknown {
  try {
    return JSON.parse(text, (_key, value: unknown) => (isRecord(value) ? reviveMarked(value) : value));
  } catch (error) {
    throw new UnreadableValueError(LEGACY_FORMAT, text, { cause: error });
  }
}

function reviveMarked(value: Record<string, unknown>): unknown {
  if (typeof value.dbos_data === 'string') {
    if (value.dbos_type === 'dbos_Date') return new Date(value.dbos_data);
    if (value.dbos_type === 'dbos_BigInt') return BigInt(value.dbos_data);
  }
  if (value.type === 'Buffer' && Array.isArray(value.data)) return Buffer.from(value.data as number[]);
  return value;
}
