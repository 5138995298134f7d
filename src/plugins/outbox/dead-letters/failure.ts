// What a dead letter keeps of an error: its text, bounded, and a fingerprint that groups equal failures.
import { createHash } from 'node:crypto';

const TEXT_MAX = 8192;
const NAME_MAX = 255;
const FRAME_MAX = 1024;
const MARKER = '… [truncated]';

/** Renders an error for `last_exception`. Return null to keep nothing. */
export type ErrorRenderer = (error: unknown) => string | null;

export interface Failure {
  readonly text: string | null;
  readonly name: string | null;
  readonly fingerprint: string | null;
}

export const NO_FAILURE: Failure = { text: null, name: null, fingerprint: null };

export function toFailure(error: unknown, render: ErrorRenderer = renderError): Failure {
  if (error === undefined) return NO_FAILURE;
  try {
    const name = error instanceof Error ? String(error.name) : typeof error;
    const kept = name.slice(0, NAME_MAX);
    return { text: bounded(render(error)), name: storable(kept), fingerprint: fingerprintOf(error, name) };
  } catch {
    // The message must become a dead letter, whatever was thrown and whatever renders it.
    return { ...NO_FAILURE, text: 'The error could not be rendered.' };
  }
}

export function renderError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\nCaused by: ${renderError(error.cause)}`;
  return `${error.stack ?? `${error.name}: ${error.message}`}${cause}`;
}

function bounded(text: string | null): string | null {
  if (text === null) return null;
  return storable(text.length <= TEXT_MAX ? text : text.slice(0, TEXT_MAX - MARKER.length) + MARKER);
}

/** Postgres stores neither NUL nor half of a surrogate pair, which a cut may leave. */
function storable(text: string): string {
  return text.replace(/\0|\p{Surrogate}/gu, '\uFFFD');
}

/** The same for errors of one kind from one place: numbers and IDs in the message, and line numbers, do not count. */
function fingerprintOf(error: unknown, name: string): string {
  const message = error instanceof Error ? String(error.message) : String(error);
  const kind = message.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/gi, '#');
  const frame = error instanceof Error ? firstFrame(String(error.stack ?? '')) : '';
  return createHash('sha256').update(`${name}\n${kind}\n${frame}`).digest('hex').slice(0, 32);
}

/** The first line of the stack that is the application's. */
function firstFrame(stack: string): string {
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const own = frames.find((line) => !/node:|node_modules/.test(line)) ?? '';
  // Cut, because the cost of the pattern grows with the square of the length.
  return own.slice(0, FRAME_MAX).replace(/(:\d+)+\)?$/, '');
}
