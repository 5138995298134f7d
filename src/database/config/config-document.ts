// Reads dbos-config.yaml: finds it, substitutes environment variables, parses it. Callers interpret the keys. Values may
// contain passwords, so errors never quote them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DBOSConfigKeyTypeError, DBOSInitializationError } from '../../kernel/errors/errors.js';

export const CONFIG_FILE = 'dbos-config.yaml';

type Mapping = Readonly<Record<string, unknown>>;

export interface ConfigDocument {
  /** The value of a dotted key; undefined if it or a mapping above it is absent, null or empty. */
  find(key: string): unknown;
  /** The application's name, from the file or from package.json next to it. */
  readonly name: unknown;
}

/** The value of a text in the file. `isPlain`: it has no quotes, so a number in it is a number. */
export type ReadText = (text: string, isPlain: boolean) => unknown;

/** Reads YAML. Passed in, because the parser is heavy and seldom needed. Throws what `unreadable` makes. */
export type ParseYaml = (text: string, readText: ReadText) => unknown;

/** Reads the file in the folder; undefined if there is none. */
export function readConfigDocument(
  folder: string,
  environment: NodeJS.ProcessEnv,
  parseYaml: ParseYaml,
): ConfigDocument | undefined {
  const text = readIfPresent(join(folder, CONFIG_FILE));
  if (text === undefined) return undefined;
  const { inert, readText } = withVariables(text, environment);
  const file = toMapping(parseYaml(inert, readText));
  refuseOtherLanguages(file);
  return { find: (key) => find(file, key), name: find(file, 'name') ?? packageName(folder) };
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new DBOSInitializationError(
      `Cannot read ${path}. Check that it is a file and that its permissions allow it.`,
      error as Error,
    );
  }
}

/**
 * A variable may hold anything, also what means something in YAML. So the text is parsed with a plain word in the place of
 * each `${VARIABLE}`, and the values are put into the parsed texts. One that is not set is empty.
 */
function withVariables(text: string, environment: NodeJS.ProcessEnv): { inert: string; readText: ReadText } {
  const names: string[] = [];
  let mark = 'VARIABLE';
  while (text.includes(mark)) mark += '_';
  const inert = text.replace(/\$\{([^}]+)\}/g, (_, name: string) => `${mark}${names.push(name.trim()) - 1}.`);
  const marks = new RegExp(`${mark}(\\d+)\\.`, 'g');
  const whole = new RegExp(`^${mark}\\d+\\.$`);
  return {
    inert,
    readText(given, isPlain) {
      const value = given.replace(marks, (_, index: string) => environment[names[Number(index)] ?? ''] ?? '');
      return isPlain && whole.test(given) ? readPlain(value) : value;
    },
  };
}

/** A variable that is all of a value without quotes may be a number or a boolean. */
function readPlain(value: string): unknown {
  if (/^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/.test(value)) return Number(value);
  return value === 'true' ? true : value === 'false' ? false : value;
}

function toMapping(content: unknown): Mapping {
  if (content == null) return {};
  if (!isMapping(content)) throw unreadable('it is not a mapping');
  return content;
}

export function unreadable(reason: string): DBOSInitializationError {
  return new DBOSInitializationError(
    `${CONFIG_FILE} is not valid YAML: ${reason}. Put quotes around values that have special characters.`,
  );
}

function refuseOtherLanguages(file: Mapping): void {
  const language = find(file, 'language');
  if (language === undefined || language === 'node') return;
  throw new DBOSInitializationError(
    `${CONFIG_FILE} is for an application in another language. Only language: node is supported.`,
  );
}

function find(file: Mapping, key: string): unknown {
  const path = key.split('.');
  let value: unknown = file;
  for (const [depth, part] of path.entries()) {
    if (!isMapping(value)) {
      throw new DBOSConfigKeyTypeError(`${CONFIG_FILE}: ${path.slice(0, depth).join('.')}`, 'mapping', typeof value);
    }
    value = Object.hasOwn(value, part) ? value[part] : undefined;
    if (value == null || value === '') return undefined;
  }
  return value;
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function packageName(folder: string): unknown {
  const path = join(folder, 'package.json');
  const text = readIfPresent(path);
  if (text === undefined) return undefined;
  try {
    return (JSON.parse(text) as { name?: unknown } | null)?.name;
  } catch (error) {
    throw new DBOSInitializationError(
      `${path} is not valid JSON. Fix it, or set name in ${CONFIG_FILE}.`,
      error as Error,
    );
  }
}
