// Streams: values that a workflow writes one after the other, for readers that follow along. A write is sent on its way
// in its order and not waited for: no later effect of the run is visible before it, and no checkpoint.
import { PORTABLE_FORMAT } from '../codec/serializer.js';
import {
  DBOSError,
  DBOSInvalidWorkflowTransitionError,
  DBOSNonExistentWorkflowError,
  DBOSStreamTimeoutError,
} from '../model/errors.js';
import type { EventKey } from '../store/events.js';
import { isClosingText, STREAM_CLOSED, type StoredStreamValue } from '../store/streams.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import type { Engine } from './engine.js';
import { operation, portableStep, recorded, refuseInTransaction, wasDone } from './operation.js';
import type { Run } from './run.js';
import { checkName, encodeStorable, type SerializationOptions } from './storable.js';
import { checkPolling, type PollingOptions } from './time-limit.js';

export interface ReadStreamOffsetOptions extends PollingOptions {
  /** How long to wait for each value; for ever unless given. */
  readonly timeoutSeconds?: number;
}

export interface ReadStreamOptions extends ReadStreamOffsetOptions {
  /** Where to begin; 0 unless given. */
  readonly offset?: number;
}

/** Appends a value to a stream of the workflow around, from its code or one of its steps. */
export function writeStream(key: string, value: unknown, options: SerializationOptions = {}): Promise<void> {
  return append('DBOS.writeStream', key, (run) => encodeStorable(run.engine, run, value, options));
}

/** Ends a stream: readers stop here. */
export function closeStream(key: string): Promise<void> {
  const closing = { text: JSON.stringify(STREAM_CLOSED), serialization: PORTABLE_FORMAT };
  return append('DBOS.closeStream', key, async () => closing);
}

async function append(
  name: string,
  key: string,
  encode: (run: Run) => Promise<{ readonly text: string; readonly serialization: string }>,
): Promise<void> {
  const context = currentContext();
  const { run } = context ?? {};
  if (!run || context?.transactionID !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError(`Invalid call to \`${name}\` outside of a workflow or step`);
  }
  checkName('key of a stream', key);
  const isCode = isWorkflowCode(context);
  const stepID = context?.step?.stepID ?? run.nextStepID();
  if (isCode && (await wasDone(run, stepID, name))) return;
  const { engine, workflowID, owner } = run;
  await engine.store.writer.room();
  await run.streams.inTurn(async () => {
    run.check();
    const encoded = await encode(run);
    const offset = await run.streams.takeOffset(key);
    const written = engine.store.writer.append({
      value: { workflowID, owner, key, offset, stepID, ...encoded },
      checkpoint: isCode ? run.checkpoint(portableStep(run, { stepID, name })) : undefined,
    });
    const told = written.then((verdict) => {
      if (verdict === 'recorded') engine.watches.onAppended({ workflowID, key });
      return verdict;
    });
    run.follow(told, stepID, (verdict) => verdict);
  });
}

/** Reads a stream from its beginning, or from an offset, to its end. In workflow code each value is a step. */
export function readStream(
  engine: Engine,
  stream: EventKey,
  options: ReadStreamOptions = {},
): AsyncGenerator<unknown, void, unknown> {
  const context = currentContext();
  refuseInTransaction(context, 'DBOS.readStream');
  const run = isWorkflowCode(context) ? context.run : undefined;
  const reader = new StreamReader(engine, stream, options, run?.signal);
  return run ? readRecorded(run, reader) : readPlain(reader);
}

/** One value of a stream. */
export async function readStreamOffset(
  engine: Engine,
  stream: EventKey,
  options: ReadStreamOffsetOptions & { readonly offset: number },
): Promise<unknown> {
  const context = currentContext();
  const run = isWorkflowCode(context) ? context.run : undefined;
  const reader = new StreamReader(engine, stream, options, run?.signal);
  return operation({ name: 'DBOS.readStreamOffset', isEffect: false }, async () => {
    const value = await reader.at(options.offset);
    if (value === STREAM_CLOSED) throw new DBOSStreamTimeoutError(stream.workflowID, stream.key);
    return value;
  });
}

async function* readPlain(reader: StreamReader): AsyncGenerator<unknown, void, unknown> {
  for (let { offset } = reader; ; offset += 1) {
    const value = await reader.at(offset);
    if (value === STREAM_CLOSED) return;
    yield value;
  }
}

async function* readRecorded(run: Run, reader: StreamReader): AsyncGenerator<unknown, void, unknown> {
  const named = { name: 'DBOS.readStream', isEffect: false };
  for (let { offset } = reader; ; offset += 1) {
    // The end of the stream is recorded as well.
    const value = await run.streams.asOnlyReader(reader, reader.stream.key, () =>
      recorded(run, run.nextStepID(), named, () => reader.at(offset)),
    );
    if (value === STREAM_CLOSED) return;
    yield value;
  }
}

/** Reads values by their offsets, several at a time. */
class StreamReader {
  readonly #engine: Engine;
  readonly #timeoutMs: number | undefined;
  readonly #signal: AbortSignal | undefined;
  /** Where to begin. */
  readonly offset: number;
  /** What the last query has brought, and from where on. */
  #values: readonly StoredStreamValue[] = [];
  #from = 0;

  constructor(
    engine: Engine,
    readonly stream: EventKey,
    { offset = 0, timeoutSeconds, ...polling }: ReadStreamOptions,
    signal: AbortSignal | undefined,
  ) {
    checkName('ID of the workflow', stream.workflowID);
    checkName('key of a stream', stream.key);
    checkPolling(polling);
    if (!(Number.isInteger(offset) && offset >= 0 && offset <= OFFSET_MAX)) {
      throw new DBOSError(`offset must be an integer and not negative, but is ${offset}.`);
    }
    if (timeoutSeconds !== undefined && !(timeoutSeconds >= 0)) {
      throw new DBOSError(`timeoutSeconds must be a number and not negative, but is ${timeoutSeconds}.`);
    }
    this.#engine = engine;
    this.offset = offset;
    this.#timeoutMs = timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000;
    this.#signal = signal;
  }

  /** The value, or the mark of the end. Waits for it. */
  async at(offset: number): Promise<unknown> {
    const stored = this.#values[offset - this.#from] ?? (await this.#fetch(offset));
    if (!stored || isClosingText(stored.text)) return STREAM_CLOSED;
    return this.#engine.codec.decodeValue(stored.text, stored.serialization);
  }

  async #fetch(offset: number): Promise<StoredStreamValue | undefined> {
    const { workflowID, key } = this.stream;
    const { clock, watches } = this.#engine;
    const limitMs = this.#timeoutMs;
    const deadlineAt = limitMs === undefined || limitMs === Infinity ? undefined : clock.now() + limitMs;
    const part = await watches.streams.waitUntil({ workflowID, key, offset }, { deadlineAt, signal: this.#signal });
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

const OFFSET_MAX = 2_147_483_647;
