// Encodes and decodes the outcomes in completion records. They are in superjson's format, so that DBOS can read our
// records and we can read theirs.
import { SuperJSON } from 'superjson';
import { SUPERJSON_FORMAT } from '../../kernel/codec/serializer.js';
import type { StepOutcome, TransactionStep } from '../../run/plugin.js';
import { mark, unmark } from './record-mark.js';

/** A row of the completion table: one of the two is set. */
export interface RecordedStep {
  readonly output?: string | null;
  readonly error?: string | null;
}

/** Marks text of our own serializer. Plain superjson can read it too, but not the application's custom types. */
const MARKER = '"__dbos_serializer":"superjson"';
/** In a superjson envelope: the name of the application's serializer. */
const FORMAT_KEY = '__everstep_format';
const CAUSES_MAX = 10;

export async function encodeOutput(step: TransactionStep, value: unknown): Promise<string> {
  const { text, serialization } = await step.encode(value);
  const isSuperjson = serialization === SUPERJSON_FORMAT;
  return mark(isSuperjson ? text : SuperJSON.stringify({ [FORMAT_KEY]: serialization, text }), step);
}

/** An error with all its fields, or with its message only if they cannot be stored. */
export function encodeThrown(step: TransactionStep, thrown: unknown): string {
  try {
    return mark(withFields(fieldsOf(thrown)).stringify(thrown), step);
  } catch {
    // A field cannot be stored. Keep the message at least.
    return mark(SuperJSON.stringify(thrown instanceof Error ? new Error(thrown.message) : String(thrown)), step);
  }
}

export async function decodeOutcome(step: TransactionStep, recorded: RecordedStep): Promise<StepOutcome> {
  if (typeof recorded.error === 'string') return { kind: 'error', error: decodeThrown(unmark(recorded.error)) };
  return { kind: 'value', value: await decodeOutput(step, recorded.output && unmark(recorded.output)) };
}

async function decodeOutput({ runtime }: TransactionStep, text: string | null | undefined): Promise<unknown> {
  const { codec } = runtime;
  if (!text) return null;
  if (text.includes(MARKER)) return codec.decodeValue(text, SUPERJSON_FORMAT);
  const value = SuperJSON.parse<Record<string, unknown> | null>(text);
  const format = typeof value === 'object' && value !== null ? value[FORMAT_KEY] : undefined;
  return typeof format === 'string' ? codec.decodeValue(String(value?.['text']), format) : value;
}

function decodeThrown(text: string): unknown {
  const { json } = JSON.parse(text) as { json?: unknown };
  return withFields(fieldsOf(json)).parse(text);
}

/** Returns the recorded value or throws the recorded error. */
export function replayRecordedStep<Return>({ output, error }: RecordedStep): Return {
  if (typeof error === 'string') throw decodeThrown(error) as Error;
  return (output ? SuperJSON.parse(output) : null) as Return;
}

/** A superjson that keeps these fields of errors. By default it keeps the name, the message and the cause. */
function withFields(fields: readonly string[]): SuperJSON {
  const superjson = new SuperJSON();
  superjson.allowErrorProps(...fields);
  return superjson;
}

function fieldsOf(thrown: unknown): string[] {
  const fields = new Set<string>();
  let error = thrown;
  for (let depth = 0; depth < CAUSES_MAX && typeof error === 'object' && error !== null; depth += 1) {
    for (const field of Object.keys(error)) fields.add(field);
    error = (error as { cause?: unknown }).cause;
  }
  // These are kept anyway, and must not be listed twice.
  for (const field of ['name', 'message', 'cause']) fields.delete(field);
  return thrown instanceof Error ? ['stack', ...fields] : [...fields];
}
