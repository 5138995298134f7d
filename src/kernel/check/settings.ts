// The values of a configuration, checked. They may hold passwords, so no error shows a text.
import { timed } from './duration.js';
import { DBOSConfigKeyTypeError, DBOSInitializationError } from '../errors/errors.js';
import {
  array,
  boolean,
  type Check,
  checkThat,
  filledString,
  INT_MAX,
  integer,
  messageOf,
  number,
  objectWith,
  oneOf,
  positiveInteger,
} from './validation.js';

const PORT_MAX = 65_535;

/** How long callers wait for a database that cannot be used, by default. */
export const CALL_TIMEOUT_MS = 30_000;

/** Checks that a configuration is made of. */
export const SETTINGS = {
  text: filledString,
  flag: boolean,
  names: array(filledString),
  count: positiveInteger,
  port: integer({ max: PORT_MAX }),
  intervalMs: timed(number({ min: 1, max: INT_MAX })),
  /** 0 or less for none. */
  timeoutMs: timed(number({ min: -Infinity, max: INT_MAX })),
  /** 0 or less for no limit. */
  limit: checkThat<number>('an integer', Number.isInteger, { type: 'integer' }),
  endpoints: array(
    checkThat<string>(
      'an http:// or https:// URL',
      (url) => typeof url === 'string' && /^https?:\/\//i.test(url) && URL.canParse(url),
    ),
  ),
  queues: array(
    checkThat<string | { name: string }>(
      'a queue or its name',
      (queue) => filledString.accepts(queue) || filledString.accepts((queue as { name?: unknown } | null)?.name),
    ),
  ),
  pool: objectWith('connect', 'query'),
  lostValues: oneOf(['error', 'warn', 'ignore']),
  serializer: objectWith('name', 'stringify', 'parse'),
  logger: objectWith('debug', 'info', 'warn', 'error'),
} as const;

/** Throws unless the value suits the setting, which the error calls by the label. */
export function checkSetting(check: Check<unknown>, label: string, value: unknown): void {
  const problem = check.find(value);
  if (problem === undefined) return;
  const [wanted, actual] = [typeWanted(check), value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value];
  if (wanted !== actual) throw new DBOSConfigKeyTypeError(label, wanted, actual);
  throw new DBOSInitializationError(messageOf(problem, label, shownNumber));
}

function typeWanted({ schema }: Check<unknown>): string {
  return schema['type'] === 'integer' ? 'number' : String(schema['type']);
}

function shownNumber(value: unknown): string | undefined {
  return typeof value === 'number' ? String(value) : undefined;
}
