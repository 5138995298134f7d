// Streams: values that a workflow appends for readers to follow. Appends are submitted in order and not awaited: they
// become visible before any later checkpoint or effect of the run.
import { PORTABLE_FORMAT } from '../../kernel/codec/serializer.js';
import { readAll, readOne, type ReadStreamOffsetOptions, type ReadStreamOptions, StreamReader } from './streams.js';
import { DBOSInvalidWorkflowTransitionError } from '../../kernel/errors/errors.js';
import type { EventKey } from './events.sql.js';
import { STREAM_CLOSED } from './streams.sql.js';
import { currentContext, isWorkflowCode } from '../../run/ambient.js';
import { shielded } from '../../run/shielded.js';
import type { Runtime } from '../../run/runtime.js';
import { formatOf, operation, readStored, refuseInTransaction } from '../../run/operation.js';
import { type ActiveStep, joined, own, perform, portable } from '../../run/perform.js';
import type { Run } from '../../run/run.js';
import { checkName, encodeStorable, type SerializationOptions } from '../../operator/storable.js';

/** Appends a value to a stream of the current workflow, from its code or one of its steps. */
export function writeStream(key: string, value: unknown, options: SerializationOptions = {}): Promise<void> {
  return append('DBOS.writeStream', key, async (run) =>
    encodeStorable(run.runtime.codec, value, formatOf(run, options)),
  );
}

/** Closes a stream: its readers stop here. */
export function closeStream(key: string): Promise<void> {
  const closing = { text: JSON.stringify(STREAM_CLOSED), serialization: PORTABLE_FORMAT };
  return append('DBOS.closeStream', key, async () => closing);
}

type Encode = (run: Run) => Promise<{ readonly text: string; readonly serialization: string }>;

async function append(name: string, key: string, encode: Encode): Promise<void> {
  const context = currentContext();
  const { run, step } = context ?? {};
  if (!run || context?.transactionID !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError(`Invalid call to \`${name}\` outside of a workflow or step`);
  }
  checkName('key', key);
  // A step has its own checkpoint.
  if (step) return submit(run, { key, encode, stepID: step.stepID });
  const body = joined((active) => submit(run, { key, encode, stepID: active.stepID, active }));
  return perform(run, { name, isEffect: false }, body);
}

interface Append {
  readonly key: string;
  readonly encode: Encode;
  readonly stepID: number;
  /** The operation whose checkpoint commits with the value. */
  readonly active?: ActiveStep;
}

async function submit(run: Run, { key, encode, stepID, active }: Append): Promise<void> {
  const { runtime, workflowID, owner } = run;
  await runtime.store.writer.room();
  await run.streams.serialized(async () => {
    run.check();
    const encoded = await encode(run);
    const offset = await run.streams.takeOffset(key);
    const written = runtime.store.writer.append({
      value: { workflowID, owner, key, offset, stepID, ...encoded },
      checkpoint: active?.checkpoint(portable()),
    });
    const notified = written.then((verdict) => {
      if (verdict === 'recorded') runtime.watchers.onAppended({ workflowID, key });
      return verdict;
    });
    // In a step, the value is written without a checkpoint.
    run.follow(notified, (verdict) => (active || verdict !== 'recorded' ? verdict : undefined), stepID);
  });
}

/** Reads a stream to its end, from an offset on. In workflow code each value is recorded. */
export function readStream(
  runtime: Runtime,
  stream: EventKey,
  options: ReadStreamOptions = {},
): AsyncGenerator<unknown, void, unknown> {
  const context = currentContext();
  refuseInTransaction(context, 'DBOS.readStream');
  const run = isWorkflowCode(context) ? context.run : undefined;
  const reader = new StreamReader(runtime, stream, options, run?.signal);
  return run ? readRecorded(run, reader) : readAll(reader);
}

/** Reads one value of a stream. */
export async function readStreamOffset(
  runtime: Runtime,
  stream: EventKey,
  options: ReadStreamOffsetOptions & { readonly offset: number },
): Promise<unknown> {
  const context = currentContext();
  const run = isWorkflowCode(context) ? context.run : undefined;
  const reader = new StreamReader(runtime, stream, options, run?.signal);
  const named = { name: 'DBOS.readStreamOffset', isEffect: false } as const;
  return operation(named, () => readStored(() => readOne(reader, options.offset)));
}

async function* readRecorded(run: Run, reader: StreamReader): AsyncGenerator<unknown, void, unknown> {
  const named = { name: 'DBOS.readStream', isEffect: false };
  for (let { offset } = reader; ; offset += 1) {
    // The end of the stream is recorded as well.
    const value = await shielded(
      run.streams.asOnlyReader(reader, reader.stream.key, () =>
        perform(
          run,
          named,
          own(() => readStored(() => reader.at(offset))),
        ),
      ),
    );
    if (value === STREAM_CLOSED) return;
    yield value;
  }
}
