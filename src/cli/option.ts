// The options of commands: how they are written, what they mean, and how their text becomes a value. The table of
// commands is made of them, and drives parsing, help and the reference page alike.
import { wrongUsage } from './failure.js';
import { parseDuration, parseMoment } from './time.js';

/** What reading a text may depend on. */
export interface Reading {
  /** The option as the user has to write it, for messages. */
  readonly label: string;
  readonly now: number;
}

export interface Option<T> {
  readonly about: string;
  /** One letter. */
  readonly short?: string;
  /** Further names. */
  readonly aliases: readonly string[];
  /** What stands for the value in help texts; null for a flag. */
  readonly placeholder: string | null;
  /** Shown in help texts. */
  readonly fallback?: string;
  readonly isNeeded: boolean;
  readonly isRepeatable: boolean;
  /** The value of what was written, in order; nothing if the option was not used. */
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

function valued<T>(
  about: string,
  { short, aliases = [], placeholder = 'TEXT' }: Details,
  parse: (text: string, reading: Reading) => T,
): Option<T | undefined> {
  return {
    about,
    short,
    aliases,
    placeholder,
    isNeeded: false,
    isRepeatable: false,
    read(texts, reading) {
      const text = texts.at(-1);
      return text === undefined ? undefined : parse(text, reading);
    },
  };
}

export function flag(about: string, { short, aliases = [] }: Omit<Details, 'placeholder'> = {}): Option<boolean> {
  return {
    about,
    short,
    aliases,
    placeholder: null,
    isNeeded: false,
    isRepeatable: false,
    read: (texts) => texts.length > 0,
  };
}

export function text(about: string, details: Details = {}): Option<string | undefined> {
  return valued(about, details, (written, { label }) => {
    if (written.trim() === '') throw wrongUsage(`${label} must not be empty.`);
    return written;
  });
}

export function wholeNumber(
  about: string,
  { min = 0, ...details }: Details & { readonly min?: number } = {},
): Option<number | undefined> {
  return valued(about, { placeholder: 'N', ...details }, (written, { label }) => {
    const number = Number(written);
    if (/^-?\d+$/.test(written.trim()) && Number.isSafeInteger(number) && number >= min) return number;
    throw wrongUsage(`${label} must be a whole number of at least ${min}, but is "${written}".`);
  });
}

/** A point in time, as milliseconds since the epoch. */
export function moment(about: string, details: Details = {}): Option<number | undefined> {
  return valued(about, { placeholder: 'TIME', ...details }, (written, { label, now }) => {
    const parsed = parseMoment(written, now);
    if (parsed !== undefined) return parsed;
    throw wrongUsage(
      `${label} must be a time such as 2026-01-31T12:00:00Z or 2h (two hours ago), but is "${written}".`,
    );
  });
}

/** A length of time, in milliseconds. */
export function duration(about: string, details: Details = {}): Option<number | undefined> {
  return valued(about, { placeholder: 'DURATION', ...details }, (written, { label }) => {
    const parsed = parseDuration(written);
    if (parsed !== undefined) return parsed;
    throw wrongUsage(`${label} must be a duration such as 30s, 15m, 12h or 7d, but is "${written}".`);
  });
}

/** Upper and lower case are the same. */
export function choice<const T extends string>(
  about: string,
  choices: readonly T[],
  details: Details = {},
): Option<T | undefined> {
  return valued(about, details, (written, { label }) => chosen(written, choices, label));
}

function chosen<T extends string>(written: string, choices: readonly T[], label: string): T {
  const found = choices.find((one) => one.toLowerCase() === written.toLowerCase());
  if (found !== undefined) return found;
  throw wrongUsage(`${label} must be one of ${choices.join(', ')}, but is "${written}".`);
}

export function json(about: string, details: Details = {}): Option<unknown> {
  return valued(about, { placeholder: 'JSON', ...details }, (written, { label }): unknown => {
    try {
      return JSON.parse(written);
    } catch {
      throw wrongUsage(`${label} must be JSON. Put it between single quotes in a shell.`);
    }
  });
}

export function jsonObject(about: string, details: Details = {}): Option<Record<string, unknown> | undefined> {
  const any = json(about, details);
  return {
    ...any,
    read(texts, reading) {
      const value = any.read(texts, reading);
      if (value === undefined) return undefined;
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      if (!isObject) throw wrongUsage(`${reading.label} must be a JSON object such as '{"customer": 7}'.`);
      return value as Record<string, unknown>;
    },
  };
}

/** The option may be written several times; the values of all count. Undefined if it was not used. */
export function several<T>(option: Option<T | undefined>): Option<readonly T[] | undefined> {
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

export function needed<T>(option: Option<T | undefined>): Option<T> {
  return {
    ...option,
    isNeeded: true,
    read(texts, reading) {
      const value = option.read(texts, reading);
      if (value === undefined) throw wrongUsage(`${reading.label} is needed.`);
      return value;
    },
  };
}

/** The long name of an option: `sysDbUrl` is written `--sys-db-url`. */
export function longName(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
