// The single values of a query, checked. A value that is undefined or null was not asked for: JSON has no undefined.
import { InvalidQueryError, type JSONValue } from './errors/errors.js';

type Given<T> = T | null | undefined;

const DATE = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[Zz]|[+-]\d{2}:\d{2}))?$/;
/** Far beyond what anybody means by attributes; it bounds the statement that looks for them. */
const JSON_NODES_MAX = 200;
const JSON_DEPTH_MAX = 20;

/** Refuses fields that nobody would look at: a misspelt filter must not find everything. */
export function checkFields(what: string, input: unknown, known: readonly string[]): void {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidQueryError(`${what} must be an object, not ${shown(input)}.`);
  }
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new InvalidQueryError(`${what} has an unknown field ${shown(unknown)}. There is: ${known.join(', ')}.`);
}

/** A text or a list of texts, as a list. */
export function oneOrMany(name: string, given: Given<unknown>): readonly string[] | undefined {
  if (given === undefined || given === null) return undefined;
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  for (const one of list) checkText(name, one);
  return list as readonly string[];
}

function checkText(name: string, given: unknown): void {
  if (typeof given !== 'string') {
    throw new InvalidQueryError(`${name} must be a text or a list of texts, but holds ${shown(given)}.`);
  }
  const problem = textProblem(given);
  if (problem !== undefined) throw new InvalidQueryError(`${name} holds ${shown(given)}, which contains ${problem}.`);
}

/** What no database can store, so that nothing can be found by it. */
function textProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'a NUL character';
  return /\p{Surrogate}/u.test(text) ? 'half of a surrogate pair' : undefined;
}

export function flag(name: string, given: Given<boolean>): boolean | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof given === 'boolean') return given;
  throw new InvalidQueryError(`${name} must be true or false, but is ${shown(given)}.`);
}

/** A number from 0, or from `min`. */
export function wholeNumber(name: string, given: Given<number>, min = 0): number | undefined {
  if (given === undefined || given === null) return undefined;
  if (Number.isSafeInteger(given) && given >= min) return given;
  throw new InvalidQueryError(`${name} must be a whole number from ${min}, but is ${shown(given)}.`);
}

/** The epoch milliseconds of a time in RFC 3339, or of a day, which begins at midnight in UTC. */
export function time(name: string, given: Given<string>): number | undefined {
  if (given === undefined || given === null) return undefined;
  const isDate = typeof given === 'string' && DATE.test(given) && isDay(given.slice(0, 10));
  const at = isDate ? Date.parse(given.replace(' ', 'T').toUpperCase()) : NaN;
  if (Number.isFinite(at)) return at;
  throw new InvalidQueryError(
    `${name} must be a time in RFC 3339 with its zone, such as 2026-01-31T12:00:00Z, but is ${shown(given)}.`,
  );
}

/** The parser of dates takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  return new Date(text).getUTCDate() === Number(text.slice(8));
}

/** A plain object of JSON values, as a copy. */
export function jsonObject(name: string, given: Given<unknown>): { [key: string]: JSONValue } | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof given !== 'object' || Array.isArray(given)) {
    throw new InvalidQueryError(`${name} must be an object, but is ${shown(given)}.`);
  }
  let text: string;
  try {
    text = JSON.stringify(given);
  } catch (cause) {
    throw new InvalidQueryError(`${name} cannot be written as JSON.`, { cause });
  }
  const copy: unknown = JSON.parse(text);
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) {
    throw new InvalidQueryError(`${name} must be an object, but is written as ${shown(copy)} in JSON.`);
  }
  checkTexts(name, copy);
  return copy as { [key: string]: JSONValue };
}

function checkTexts(name: string, value: unknown): void {
  if (typeof value === 'string') checkText(name, value);
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) for (const key of Object.keys(value)) checkText(name, key);
  for (const one of Object.values(value)) checkTexts(name, one);
}

/** The same for a pattern to look for, which may not be too large. */
export function jsonPattern(name: string, given: Given<unknown>): { [key: string]: JSONValue } | undefined {
  const pattern = jsonObject(name, given);
  if (pattern) checkSize(name, pattern);
  return pattern;
}

function checkSize(name: string, whole: JSONValue): void {
  let nodes = 0;
  const visit = (value: JSONValue, depth: number): void => {
    nodes += 1;
    if (nodes > JSON_NODES_MAX || depth > JSON_DEPTH_MAX) {
      throw new InvalidQueryError(
        `${name} must have at most ${JSON_NODES_MAX} values in ${JSON_DEPTH_MAX} levels. Ask for less.`,
      );
    }
    if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) visit(one, depth + 1);
  };
  visit(whole, 0);
}

export function shown(value: unknown): string {
  let text: string | undefined;
  try {
    text = typeof value === 'bigint' ? `${value}n` : JSON.stringify(value);
  } catch {
    // A value that goes in circles is named by its type.
  }
  const whole = text ?? typeof value;
  return whole.length > 80 ? `${whole.slice(0, 80)}…` : whole;
}
