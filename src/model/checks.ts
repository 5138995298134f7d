// The kinds of check for a single value of a configuration; which of them a field has to pass is said where the field is.
// Values may hold passwords, so no error quotes one.
import { DBOSConfigKeyTypeError, DBOSInitializationError } from './errors/errors.js';

/** The largest number of milliseconds that a timer and a Postgres timeout can hold. */
const TIME_MAX_MS = 2_147_483_647;
const PORT_MAX = 65_535;

/** Throws if a value is not fit for a field or key, which the error calls by the label. */
export type Check = (label: string, value: unknown) => void;

/** A check for the type, then for the rule. `holds` gets a value of that type. */
export function check<T>(type: string, rule: string, holds: (value: T) => boolean): Check {
  return (label, value) => {
    const actualType = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
    if (actualType !== type) throw new DBOSConfigKeyTypeError(label, type, actualType);
    // Nothing but numbers is shown: a text may hold a password.
    const shown = typeof value === 'number' ? `, but is ${value}` : '';
    if (!holds(value as T)) throw new DBOSInitializationError(`${label} must be ${rule}${shown}.`);
  };
}

/** A check for a number that a timer and a Postgres timeout can hold, and that keeps the rule. */
export function numberThat(rule: string, holds: (value: number) => boolean): Check {
  return check<number>('number', rule, (value) => Number.isFinite(value) && value <= TIME_MAX_MS && holds(value));
}

/** A check for an object that has these methods, whatever its class. */
export function objectWith(...methods: string[]): Check {
  return check<Readonly<Record<string, unknown>>>(
    'object',
    `an object with the methods ${methods.join(', ')}`,
    (value) => methods.every((method) => typeof value[method] === 'function'),
  );
}

export const KINDS = {
  text: check<string>('string', 'a text that is not empty', isText),
  flag: check<boolean>('boolean', 'true or false', () => true),
  count: numberThat('a positive integer', (value) => Number.isInteger(value) && value > 0),
  port: numberThat(
    `a port from 0 to ${PORT_MAX}`,
    (value) => Number.isInteger(value) && value >= 0 && value <= PORT_MAX,
  ),
  intervalMs: numberThat(`a finite number at least 1 millisecond and at most ${TIME_MAX_MS}`, (value) => value >= 1),
  timeoutMs: numberThat(`a finite number of milliseconds and at most ${TIME_MAX_MS}`, () => true),
  endpoints: check<unknown[]>('array', 'a list of http:// or https:// URLs', (list) =>
    list.every((url) => typeof url === 'string' && /^https?:\/\//i.test(url) && URL.canParse(url)),
  ),
  queues: check<unknown[]>('array', 'a list of queues or their names', (list) =>
    list.every((queue) => isText(queue) || isText((queue as { name?: unknown } | null)?.name)),
  ),
} as const;

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}
