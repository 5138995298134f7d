// Reads dbos-config.yaml: finds it, substitutes environment variables, parses it. Callers interpret the keys. Values may
// contain passwords, so errors never quote them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DBOSConfigKeyTypeError, DBOSInitializationError } from '../../model/errors/errors.js';

export const CONFIG_FILE = 'dbos-config.yaml';

type Mapping = Readonly<Record<string, unknown>>;

export interface ConfigDocument {
  /** The value of a dotted key; undefined if it or a mapping above it is absent, null or empty. */
  find(key: string): unknown;
  /** The application's name, from the file or from package.json next to it. */
  readonly name: unknown;
}

/** Reads YAML. Passed in, because the parser is heavy and seldom needed. Throws what `unreadable` makes. */
export type ParseYaml = (text: string) => unknown;

/** Reads the file in the folder; undefined if there is none. */
export function readConfigDocument(
  folder: string,
  environment: NodeJS.ProcessEnv,
  parseYaml: ParseYaml,
): ConfigDocument | undefined {
  const text = readIfPresent(join(folder, CONFIG_FILE));
  if (text === undefined) return undefined;
  const file = toMapping(parseYaml(substitute(text, environment)));
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

/** Replaces each `${VARIABLE}`. An unset one becomes an empty YAML string, quoted or not. */
function substitute(text: string, environment: NodeJS.ProcessEnv): string {
  return text.replace(/(["']?)\$\{([^}]+)\}\1/g, (_, quote: string, name: string) => {
    const value = environment[name.trim()];
    return value === undefined ? '""' : `${quote}${value}${quote}`;
  });
}

function toMapping(content: unknown): Mapping {
  if (content == null) return {};
  if (!isMapping(content)) throw unreadable('it is not a mapping');
  return content;
}

export function unreadable(reason: string): DBOSInitializationError {
  return new DBOSInitializationError(
    `${CONFIG_FILE} is not valid YAML: ${reason}. Note that each \${VARIABLE} is replaced literally by its value, or ` +
      'by "" if it is unset; put quotes around one whose value has special characters.',
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
