// What rendering depends on (width, colours, time), and how values become text. Texts from the database are sanitized
// before they reach a terminal.
import { inspect } from 'node:util';
import { excerptOf, type ExcerptLimits } from '../../kernel/base/excerpt.js';
import { isActive, type WorkflowStatusString } from '../../kernel/workflow/status.js';

export interface RenderContext {
  /** In columns; Infinity if the output is not a terminal. */
  readonly width: number;
  readonly hasColours: boolean;
  readonly now: number;
}

const COLOURS = { bold: 1, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90 } as const;
export type Colour = keyof typeof COLOURS;

export function paint(rendering: Pick<RenderContext, 'hasColours'>, colour: Colour | undefined, text: string): string {
  return rendering.hasColours && colour !== undefined && text !== ''
    ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m`
    : text;
}

// Control characters, line separators and bidirectional marks.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
/** The same without those that JSON escapes itself, or has between its values. */
const UNSAFE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text on one line, with control characters escaped. */
export function sanitize(text: string): string {
  return text.replace(UNSAFE, (character) =>
    character === '\n' ? '⏎' : character === '\t' ? ' ' : escaped(character),
  );
}

/** JSON text with the characters escaped that a terminal would act on. They only occur in strings. */
export function safeJSON(text: string): string {
  return text.replace(UNSAFE_IN_JSON, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const SHORT: ExcerptLimits = { nodes: 1000, characters: 10_000, depth: 10 };
const LONG: ExcerptLimits = { nodes: 20_000, characters: 200_000, depth: 100 };
/** Only for values that cannot be written whole. */
const JSON_LIMITS: ExcerptLimits = { nodes: 1_000_000, characters: 100_000_000, depth: 1000, isTree: true };

/** A readable form of a value, on one line. */
export function shortValue(value: unknown): string {
  if (value instanceof Error) return sanitize(`${value.name}: ${value.message}`);
  const { value: excerpt } = excerptOf(value, SHORT);
  return sanitize(inspect(excerpt, { depth: 4, breakLength: Infinity, maxStringLength: 1000, maxArrayLength: 50 }));
}

/** A readable form of a value, on several lines if needed. */
export function longValue(value: unknown): string {
  const shown = value instanceof Error ? { ...value, name: value.name, message: value.message } : value;
  const { value: excerpt } = excerptOf(shown, LONG);
  return inspect(excerpt, { depth: 20, breakLength: 100, maxStringLength: 100_000, maxArrayLength: 1000 })
    .split('\n')
    .map(sanitize)
    .join('\n');
}

export function statusColour(status: WorkflowStatusString): Colour {
  if (status === 'SUCCESS') return 'green';
  if (status === 'CANCELLED') return 'yellow';
  return isActive(status) ? (status === 'PENDING' ? 'cyan' : 'blue') : 'red';
}

/** The value as JSON. What JSON cannot express is converted to the nearest form. */
export function toJSONText(value: unknown, indent?: number): string {
  const write = (written: unknown): string =>
    safeJSON(JSON.stringify(written, (_, inner: unknown) => plain(inner), indent));
  try {
    return write(value ?? null);
  } catch {
    // It contains itself, or is too deep or too long.
    return write(excerptOf(value, JSON_LIMITS).value);
  }
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Map) return Object.fromEntries(value) as unknown;
  if (value instanceof Set) return [...(value as Set<unknown>)];
  if (value instanceof Error) return { ...value, name: value.name, message: value.message };
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return value;
}
