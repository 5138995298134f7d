// Checks of single values.
import { Check, checkThat, type Problem, wrong } from './check.js';

/** The largest number that a Postgres INTEGER, a timer and a Postgres timeout can hold. */
export const INT_MAX = 2_147_483_647;

/** Names stand in indexes, which take no more than about 2700 bytes an entry. */
const NAME_BYTES_MAX = 1024;
const UTF16_UNIT_BYTES_MAX = 3;

export interface StringOptions {
  /** Characters; 1 refuses the empty string. */
  readonly min?: number;
  readonly max?: number;
}

/** A string that both databases can store: without NUL, and without half of a surrogate pair. */
export function string({ min = 0, max = Infinity }: StringOptions = {}): Check<string> {
  const wants = min > 0 ? 'a non-empty string' : 'a string';
  const schema = {
    type: 'string',
    ...(min > 0 && { minLength: min }),
    ...(max < Infinity && { maxLength: max }),
  };
  return new Check({
    wants,
    schema,
    find(value) {
      if (typeof value !== 'string') return wrong(wants, value);
      if (value.length < min) return says('must not be empty');
      if (value.length > max) return says(`must have at most ${max} characters, but has ${value.length}`);
      return storageProblem(value);
    },
  });
}

/** A string of more than white space. */
export const filledString: Check<string> = new Check({
  wants: 'a non-empty string',
  schema: { type: 'string', minLength: 1 },
  find(value) {
    if (typeof value !== 'string') return wrong('a non-empty string', value);
    return value.trim() === '' ? says('must not be empty') : storageProblem(value);
  },
});

/** An ID, a topic or a key: a string that an index can hold. */
export const storableName: Check<string> = new Check({
  wants: 'a string',
  schema: { type: 'string' },
  find: nameProblem,
});

/** The same, of more than white space. */
export const filledName: Check<string> = new Check({
  wants: 'a non-empty string',
  schema: { type: 'string', minLength: 1 },
  find(value) {
    if (typeof value !== 'string') return wrong('a non-empty string', value);
    return value.trim() === '' ? says('must not be empty') : nameProblem(value);
  },
});

function nameProblem(value: unknown): Problem | undefined {
  if (typeof value !== 'string') return wrong('a string', value);
  const isShort = value.length * UTF16_UNIT_BYTES_MAX <= NAME_BYTES_MAX;
  if (isShort || Buffer.byteLength(value) <= NAME_BYTES_MAX) return storageProblem(value);
  return { ...says(`must not be longer than ${NAME_BYTES_MAX} bytes`), hint: 'Put long texts into the value.' };
}

/** What neither database can store in a text. */
export function storageProblem(value: string): Problem | undefined {
  if (value.includes('\0')) return says('must not contain a NUL character', value);
  return isWellFormed(value) ? undefined : says('must not contain half of a surrogate pair', value);
}

/** Every supported runtime has the method; our TypeScript library does not declare it yet. */
export function isWellFormed(value: string): boolean {
  return (value as string & { isWellFormed(): boolean }).isWellFormed();
}

function says(text: string, value?: string): Problem {
  return value === undefined ? { at: '', says: text } : { at: '', says: text, got: { value } };
}

export interface NumberOptions {
  readonly min?: number;
  readonly max?: number;
}

/** An integer; from 0 unless told otherwise. */
export function integer({ min = 0, max = Number.MAX_SAFE_INTEGER }: NumberOptions = {}): Check<number> {
  return checkThat(
    bounded('an integer', min, max),
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
    { type: 'integer', minimum: min, maximum: max },
  );
}

/** A finite number; from 0 unless told otherwise. */
export function number({ min = 0, max = Number.MAX_SAFE_INTEGER }: NumberOptions = {}): Check<number> {
  return checkThat(
    bounded('a number', min, max),
    (value) => typeof value === 'number' && value >= min && value <= max && Number.isFinite(value),
    { type: 'number', minimum: min, maximum: max },
  );
}

export const positiveInteger: Check<number> = checkThat(
  'a positive integer',
  (value) => Number.isSafeInteger(value) && (value as number) > 0,
  { type: 'integer', minimum: 1 },
);

export const positiveNumber: Check<number> = checkThat(
  'a positive finite number',
  (value) => typeof value === 'number' && value > 0 && Number.isFinite(value),
  { type: 'number', exclusiveMinimum: 0 },
);

/** Any number but NaN and the infinite ones. */
export const finiteNumber: Check<number> = checkThat('a finite number', Number.isFinite, { type: 'number' });

function bounded(kind: string, min: number, max: number): string {
  if (min === -Infinity) return `${kind} of at most ${max}`;
  return max < Number.MAX_SAFE_INTEGER ? `${kind} from ${min} to ${max}` : `${kind} of at least ${min}`;
}

export const boolean: Check<boolean> = checkThat('true or false', (value) => typeof value === 'boolean', {
  type: 'boolean',
});

export function oneOf<const T extends string>(values: readonly T[]): Check<T> {
  return checkThat(`one of ${values.join(', ')}`, (value) => values.includes(value as T), {
    type: 'string',
    enum: values,
  });
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[Zz]|[+-]\d{2}:\d{2}))?$/;

/** A time in RFC 3339, or a day, which begins at midnight in UTC. `parseTimestamp` reads what was accepted. */
export const timestamp: Check<string> = checkThat(
  'a time in RFC 3339 with its zone, such as 2026-01-31T12:00:00Z',
  (value) => typeof value === 'string' && RFC_3339.test(value) && isDay(value.slice(0, 10)) && isTime(value),
  { type: 'string', format: 'date-time' },
);

/** Epoch milliseconds. */
export function parseTimestamp(checked: string): number {
  return Date.parse(checked.replace(' ', 'T').toUpperCase());
}

function isTime(value: string): boolean {
  return Number.isFinite(parseTimestamp(value));
}

/** The parser of dates takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  return new Date(text).getUTCDate() === Number(text.slice(8));
}

export const date: Check<Date> = checkThat(
  'a valid Date',
  (value) => value instanceof Date && Number.isFinite(value.getTime()),
);

export const func: Check<(...args: never[]) => unknown> = checkThat(
  'a function',
  (value) => typeof value === 'function',
);

/** An object that has these methods, whatever its class. */
export function objectWith<T extends object>(...methods: string[]): Check<T> {
  const wants = methods.length === 0 ? 'an object' : `an object with the methods ${methods.join(', ')}`;
  return checkThat(
    wants,
    (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      return methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function');
    },
    { type: 'object' },
  );
}

/** Any value. */
export const anything: Check<unknown> = new Check({ wants: 'any value', find: () => undefined });
