// Outcomes of steps as texts in the application's database. They are in superjson's format, so that DBOS programs can
// read our records and we theirs.
import { SuperJSON } from 'superjson';
import { SUPERJSON_FORMAT } from '../codec/serializer.js';
import type { StepOutcome, TransactionStep } from '../engine/plugin.js';

/** A row of the table: one of the two is set. */
export interface RecordedStep {
  readonly output?: string | null;
  readonly error?: string | null;
}

/** Set in texts of our own serializer, which superjson reads as well, but without the application's recipes. */
const MARKER = '"__dbos_serializer":"superjson"';
/** Names the serializer of the application in a text that superjson reads. */
const FORMAT_KEY = '__everstep_format';
const CAUSES_MAX = 10;

export async function encodeOutput(step: TransactionStep, value: unknown): Promise<string> {
  const { text, serialization } = await step.encode(value);
  return serialization === SUPERJSON_FORMAT ? text : SuperJSON.stringify({ [FORMAT_KEY]: serialization, text });
}

/** An error with all its fields. Those that cannot be stored are left out. */
export function encodeThrown(thrown: unknown): string {
  try {
    return withFields(fieldsOf(thrown)).stringify(thrown);
  } catch {
    // Some field cannot be stored. The error itself matters more.
    return SuperJSON.stringify(thrown instanceof Error ? new Error(thrown.message) : String(thrown));
  }
}

export async function decodeOutcome(step: TransactionStep, recorded: RecordedStep): Promise<StepOutcome> {
  if (typeof recorded.error === 'string') return { kind: 'error', error: decodeThrown(recorded.error) };
  return { kind: 'value', value: await decodeOutput(step, recorded.output) };
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

/** A superjson that keeps these fields of errors; by itself it keeps the name, the message and the cause. */
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
  // Not to be listed twice: these are kept anyway.
  for (const field of ['name', 'message', 'cause']) fields.delete(field);
  return thrown instanceof Error ? ['stack', ...fields] : [...fields];
}
