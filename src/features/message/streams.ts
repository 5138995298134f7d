// Reads streams in order, waiting for values that are not there yet.
import { type DurationText, inSeconds } from '../../kernel/base/duration.js';
import { DBOSNonExistentWorkflowError, DBOSStreamTimeoutError } from '../../kernel/errors/errors.js';
import { INT_MAX, integer, optional } from '../../kernel/check/validation.js';
import type { EventKey } from './events.sql.js';
import { isClosingText, STREAM_CLOSED, type StoredStreamValue } from './streams.sql.js';
import type { Operator } from '../../operator/operator.js';
import { checkName } from '../../operator/storable.js';
import { pollMsOf, type PollingOptions, timeoutCheck } from '../../operator/time-limit.js';

export interface ReadStreamOffsetOptions extends PollingOptions {
  /** How long to wait for each value. Default: no limit. */
  readonly timeoutSeconds?: number | DurationText;
}

export interface ReadStreamOptions extends ReadStreamOffsetOptions {
  /** The first offset to read. Default: 0. */
  readonly offset?: number;
}

const offsetCheck = integer({ max: INT_MAX });
const optionalTimeout = optional(timeoutCheck);

/** The values from the reader's offset to the end. */
export async function* readAll(reader: StreamReader): AsyncGenerator<unknown, void, unknown> {
  for (let { offset } = reader; ; offset += 1) {
    const value = await reader.at(offset);
    if (value === STREAM_CLOSED) return;
    yield value;
  }
}

/** The value at the offset. Throws if the stream ends before it. */
export async function readOne(reader: StreamReader, offset: number): Promise<unknown> {
  offsetCheck.read(offset, 'offset');
  const value = await reader.at(offset);
  if (value === STREAM_CLOSED) throw new DBOSStreamTimeoutError(reader.stream.workflowID, reader.stream.key);
  return value;
}

/** Reads values by offset, in batches. */
export class StreamReader {
  readonly #operator: Operator;
  readonly #timeoutMs: number | undefined;
  readonly #pollMs: number | undefined;
  readonly #signal: AbortSignal | undefined;
  /** The first offset to read. */
  readonly offset: number;
  /** The values of the last query, starting at `#from`. */
  #values: readonly StoredStreamValue[] = [];
  #from = 0;

  constructor(
    operator: Operator,
    readonly stream: EventKey,
    { offset = 0, timeoutSeconds, ...polling }: ReadStreamOptions,
    signal: AbortSignal | undefined,
  ) {
    checkName('workflowID', stream.workflowID);
    checkName('key', stream.key);
    this.#pollMs = pollMsOf(polling);
    offsetCheck.read(offset, 'offset');
    const seconds = optionalTimeout.read(inSeconds(timeoutSeconds), 'timeoutSeconds');
    this.#operator = operator;
    this.offset = offset;
    this.#timeoutMs = seconds === undefined ? undefined : seconds * 1000;
    this.#signal = signal;
  }

  /** Waits for the value at the offset; STREAM_CLOSED if the stream ends before it. */
  async at(offset: number): Promise<unknown> {
    const stored = this.#values[offset - this.#from] ?? (await this.#fetch(offset));
    if (!stored || isClosingText(stored.text)) return STREAM_CLOSED;
    return this.#operator.codec.decodeValue(stored.text, stored.serialization);
  }

  async #fetch(offset: number): Promise<StoredStreamValue | undefined> {
    const { workflowID, key } = this.stream;
    const { databaseClock, watchers } = this.#operator;
    const limitMs = this.#timeoutMs;
    const deadlineAt = limitMs === undefined || limitMs === Infinity ? undefined : databaseClock.latest() + limitMs;
    const limits = { deadlineAt, signal: this.#signal, pollMs: this.#pollMs };
    const part = await watchers.streams.waitUntil({ workflowID, key, offset }, limits);
    switch (part?.kind) {
      case undefined:
        throw new DBOSStreamTimeoutError(workflowID, key, limitMs);
      case 'missing':
        throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
      case 'ended':
        return undefined;
      case 'values':
        this.#from = offset;
        this.#values = part.values;
        return part.values[0];
    }
  }
}
