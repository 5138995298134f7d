// Command options: names, description, and how their text is parsed. The command table is built from them and drives
// parsing, help and the reference page.
import {
  anything,
  type Check,
  checkThat,
  filledString,
  integer,
  jsonObject as jsonRecord,
  messageOf,
  oneOf,
} from '../../kernel/check/validation.js';
import { wrongUsage } from './failure.js';
import { parseDuration, parseMoment } from './time.js';

/** Context for parsing an option's text. */
export interface Reading {
  /** The option's name in messages: `--limit`. */
  readonly label: string;
  readonly now: number;
}

export interface Option<T> {
  readonly about: string;
  /** One letter. */
  readonly short?: string;
  /** Other long names. */
  readonly aliases: readonly string[];
  /** The value's placeholder in help texts; null for a flag. */
  readonly placeholder: string | null;
  /** The default value, as help texts show it. */
  readonly fallback?: string;
  readonly isRequired: boolean;
  readonly isRepeatable: boolean;
  /** Parses the texts given for this option, in order. Empty if the option was not used. */
  read(texts: readonly string[], reading: Reading): T;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

/** The values of options. */
export type Values<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

interface Details {
  readonly short?: string;
  readonly aliases?: readonly string[];
  readonly placeholder?: string;
}

/** Parses a text. Returns unparsable text unchanged, so that the check refuses it and the message quotes it. */
type Parse = (text: string, reading: Reading) => unknown;

function valued<T>(
  about: string,
  { short, aliases = [], placeholder = 'TEXT' }: Details,
  check: Check<T>,
  parse: Parse = (text) => text,
): Option<T | undefined> {
  return {
    about,
    short,
    aliases,
    placeholder,
    isRequired: false,
    isRepeatable: false,
    read(texts, reading) {
      const text = texts.at(-1);
      return text === undefined ? undefined : readOption(check, parse(text, reading), reading);
    },
  };
}

/** The value, if the check accepts it. */
export function readOption<T>(check: Check<T>, value: unknown, { label }: Reading): T {
  const problem = check.find(value);
  if (problem !== undefined) throw wrongUsage(messageOf(problem, label));
  // The check has accepted it.
  return value as T;
}

export function flag(about: string, { short, aliases = [] }: Omit<Details, 'placeholder'> = {}): Option<boolean> {
  return {
    about,
    short,
    aliases,
    placeholder: null,
    isRequired: false,
    isRepeatable: false,
    read: (texts) => texts.length > 0,
  };
}

export function text(about: string, details: Details = {}): Option<string | undefined> {
  return valued(about, details, filledString);
}

export function wholeNumber(
  about: string,
  { min = 0, ...details }: Details & { readonly min?: number } = {},
): Option<number | undefined> {
  const parse = (written: string): unknown => (/^-?\d+$/.test(written.trim()) ? Number(written) : written);
  return valued(about, { placeholder: 'N', ...details }, integer({ min }), parse);
}

const momentCheck = checkThat<number>(
  'a time such as 2026-01-31T12:00:00Z or 2h (two hours ago)',
  (value) => typeof value === 'number',
);

/** A point in time, as milliseconds since the epoch. */
export function moment(about: string, details: Details = {}): Option<number | undefined> {
  const parse: Parse = (written, { now }) => parseMoment(written, now) ?? written;
  return valued(about, { placeholder: 'TIME', ...details }, momentCheck, parse);
}

const durationCheck = checkThat<number>('a duration such as 30s, 15m, 12h or 7d', (value) => typeof value === 'number');

/** A length of time, in milliseconds. */
export function duration(about: string, details: Details = {}): Option<number | undefined> {
  return valued(
    about,
    { placeholder: 'DURATION', ...details },
    durationCheck,
    (written) => parseDuration(written) ?? written,
  );
}

/** Case-insensitive. */
export function choice<const T extends string>(
  about: string,
  choices: readonly T[],
  details: Details = {},
): Option<T | undefined> {
  const parse = (written: string): string =>
    choices.find((one) => one.toLowerCase() === written.toLowerCase()) ?? written;
  return valued(about, details, oneOf(choices), parse);
}

export function json(about: string, details: Details = {}): Option<unknown> {
  return valued(about, { placeholder: 'JSON', ...details }, anything, parseJSON);
}

const jsonObjectCheck = checkThat<Record<string, unknown>>(`a JSON object such as '{"customer": 7}'`, (value) =>
  jsonRecord.accepts(value),
);

export function jsonObject(about: string, details: Details = {}): Option<Record<string, unknown> | undefined> {
  return valued(about, { placeholder: 'JSON', ...details }, jsonObjectCheck, parseJSON);
}

function parseJSON(written: string, { label }: Reading): unknown {
  try {
    return JSON.parse(written) as unknown;
  } catch {
    throw wrongUsage(`${label} must be JSON. Put it between single quotes in a shell.`);
  }
}

/** An option that may be repeated, with an array as value. Undefined if it was not used. */
export function repeatable<T>(option: Option<T | undefined>): Option<readonly T[] | undefined> {
  return {
    ...option,
    isRepeatable: true,
    read(texts, reading) {
      if (texts.length === 0) return undefined;
      return texts.map((written) => option.read([written], reading) as T);
    },
  };
}

export function withDefault<T>(option: Option<T | undefined>, value: T, shown = String(value)): Option<T> {
  return { ...option, fallback: shown, read: (texts, reading) => option.read(texts, reading) ?? value };
}

export function required<T>(option: Option<T | undefined>): Option<T> {
  return {
    ...option,
    isRequired: true,
    read(texts, reading) {
      const value = option.read(texts, reading);
      if (value === undefined) throw wrongUsage(`${reading.label} is required.`);
      return value;
    },
  };
}

/** The long name of an option: `sysDbUrl` becomes `sys-db-url`. */
export function longName(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
