// Streams: values that a workflow writes one after the other, for readers that follow along. A write is sent on its way
// in its order and not waited for: no later effect of the run is visible before it, and no checkpoint.
import { PORTABLE_FORMAT } from '../../codec/serializer.js';
import {
  readAll,
  readOne,
  type ReadStreamOffsetOptions,
  type ReadStreamOptions,
  StreamReader,
} from '../../control/messaging/streams.js';
import { DBOSInvalidWorkflowTransitionError } from '../../model/errors/errors.js';
import type { EventKey } from '../../store/messaging/events.js';
import { STREAM_CLOSED } from '../../store/messaging/streams.js';
import { currentContext, isWorkflowCode } from '../runs/ambient.js';
import type { Engine } from '../engine.js';
import { formatOf, operation, portableStep, recorded, refuseInTransaction, wasDone } from '../runs/operation.js';
import type { Run } from '../runs/run.js';
import { checkName, encodeStorable, type SerializationOptions } from '../../control/runs/storable.js';

/** Appends a value to a stream of the workflow around, from its code or one of its steps. */
export function writeStream(key: string, value: unknown, options: SerializationOptions = {}): Promise<void> {
  return append('DBOS.writeStream', key, (run) => encodeStorable(run.engine.codec, value, formatOf(run, options)));
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
  await run.streams.serialized(async () => {
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
  return run ? readRecorded(run, reader) : readAll(reader);
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
  return operation({ name: 'DBOS.readStreamOffset', isEffect: false }, () => readOne(reader, options.offset));
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
