// What a command's answer is written on: how wide it is, whether it takes colours, and what time it is there. Texts that
// come from the database are made harmless before they reach a terminal.
import { inspect } from 'node:util';
import { isActive, type WorkflowStatusString } from '../model/status.js';

export interface Paper {
  /** In columns; Infinity where nothing has to fit. */
  readonly width: number;
  readonly hasColours: boolean;
  readonly now: number;
}

const COLOURS = { bold: 1, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90 } as const;
export type Colour = keyof typeof COLOURS;

export function paint(paper: Pick<Paper, 'hasColours'>, colour: Colour | undefined, text: string): string {
  return paper.hasColours && colour !== undefined && text !== '' ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text;
}

// Control characters, which a terminal would obey, and marks that turn the direction of writing.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** The text on one line, without anything that a terminal would take for a command. */
export function harmless(text: string): string {
  return text.replace(UNSAFE, (character) =>
    character === '\n' ? '⏎' : character === '\t' ? ' ' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A value for people, on one line. */
export function shortValue(value: unknown): string {
  if (value instanceof Error) return harmless(`${value.name}: ${value.message}`);
  return harmless(inspect(value, { depth: 4, breakLength: Infinity, maxStringLength: 1000, maxArrayLength: 50 }));
}

/** A value for people, on as many lines as it needs. */
export function longValue(value: unknown): string {
  const shown = value instanceof Error ? { ...value, name: value.name, message: value.message } : value;
  return inspect(shown, { depth: 20, breakLength: 100, maxStringLength: 100_000, maxArrayLength: 1000 })
    .split('\n')
    .map(harmless)
    .join('\n');
}

export function statusColour(status: WorkflowStatusString): Colour {
  if (status === 'SUCCESS') return 'green';
  if (status === 'CANCELLED') return 'yellow';
  return isActive(status) ? (status === 'PENDING' ? 'cyan' : 'blue') : 'red';
}

/** The value as JSON. What JSON cannot express is given in the nearest form. */
export function toJSONText(value: unknown, indent?: number): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) => plain(inner), indent);
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Map) return Object.fromEntries(value) as unknown;
  if (value instanceof Set) return [...(value as Set<unknown>)];
  if (value instanceof Error) return { ...value, name: value.name, message: value.message };
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return value;
}
