// dbos-config.yaml: found, filled in from the environment, and brought to the fields of the configuration. It also has
// the kinds of check for a single value; which of them a field has to pass is said in config.ts. Values may hold
// passwords, so no error quotes one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { silentLogger } from '../base/log.js';
import { DBOSConfigKeyTypeError, DBOSInitializationError } from '../model/errors.js';

const CONFIG_FILE = 'dbos-config.yaml';

/** The largest number of milliseconds that a timer and a Postgres timeout can hold. */
const TIME_MAX_MS = 2_147_483_647;
const PORT_MAX = 65_535;

export interface ConfigFile {
  /** What the file sets, by field of the configuration. Not checked yet. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The key that set a field, for messages. */
  readonly keys: ReadonlyMap<string, string>;
}

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
  return check<Mapping>('object', `an object with the methods ${methods.join(', ')}`, (value) =>
    methods.every((method) => typeof value[method] === 'function'),
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

type Mapping = Readonly<Record<string, unknown>>;

/** A field of the configuration, the key in the file, and how to turn one into the other where they differ. */
type Entry = readonly [field: string, key: string, translate?: (value: unknown, key: string) => unknown];

/** Of two keys for one field the first wins. */
const ENTRIES: readonly Entry[] = [
  ['name', 'name'],
  ['systemDatabaseUrl', 'system_database_url'],
  ['systemDatabaseSchemaName', 'system_database_schema_name'],
  ['systemDatabaseSchemaName', 'dbos_system_schema'],
  ['databaseUrl', 'database_url'],
  ['systemDatabasePoolSize', 'database.sys_db_pool_size'],
  ['connectionPerOperation', 'database.db_engine_kwargs.poolclass', (value) => value === 'NullPool' || undefined],
  ['logLevel', 'telemetry.logs.logLevel'],
  ['addContextMetadata', 'telemetry.logs.addContextMetadata'],
  ['logger', 'telemetry.logs.silent', loggerIfSilent],
  ['otlpLogsEndpoints', 'telemetry.OTLPExporter.logsEndpoint', asList],
  ['otlpTracesEndpoints', 'telemetry.OTLPExporter.tracesEndpoint', asList],
  // The file has no switch for it: whoever names an endpoint wants it used.
  ['enableOTLP', 'telemetry.OTLPExporter.logsEndpoint', trueIfAny],
  ['enableOTLP', 'telemetry.OTLPExporter.tracesEndpoint', trueIfAny],
  ['useListenNotify', 'use_listen_notify'],
  ['adminPort', 'runtimeConfig.admin_port'],
  ['runAdminServer', 'runtimeConfig.runAdminServer'],
  ['adminHost', 'runtimeConfig.admin_host'],
  ['adminToken', 'runtimeConfig.admin_token'],
  ['adminOpen', 'runtimeConfig.admin_open'],
];

/** Reads the file in the folder, or gives undefined if there is none. */
export function readConfigFile(folder: string, environment: NodeJS.ProcessEnv): ConfigFile | undefined {
  const text = readIfPresent(join(folder, CONFIG_FILE));
  if (text === undefined) return undefined;
  const file = parse(substitute(text, environment));
  refuseOtherLanguages(file);
  const values: Record<string, unknown> = {};
  const keys = new Map<string, string>();
  for (const [field, key, translate] of ENTRIES) {
    const found = find(file, key);
    const value = translate === undefined || found === undefined ? found : translate(found, key);
    if (value === undefined || keys.has(field)) continue;
    values[field] = value;
    keys.set(field, `${CONFIG_FILE}: ${key}`);
  }
  values['name'] ??= packageName(folder);
  return { values, keys };
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new DBOSInitializationError(
      `${path} cannot be read. Check that it is a file and its rights.`,
      error as Error,
    );
  }
}

/** Replaces each `${VARIABLE}`. One that is not set becomes an empty YAML string, also where it stands in quotes. */
function substitute(text: string, environment: NodeJS.ProcessEnv): string {
  return text.replace(/(["']?)\$\{([^}]+)\}\1/g, (_, quote: string, name: string) => {
    const value = environment[name.trim()];
    return value === undefined ? '""' : `${quote}${value}${quote}`;
  });
}

function parse(text: string): Mapping {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' });
  const [error] = document.errors;
  if (error) {
    const { line } = lineCounter.linePos(error.pos[0]);
    throw unreadable(`line ${line} is wrong (${error.code})`);
  }
  let content: unknown;
  try {
    content = document.toJS();
  } catch {
    // The error names the alias, which may be a password that starts with an asterisk; it is not kept as the cause.
    throw unreadable('it uses an alias that is not defined, or too many');
  }
  if (content == null) return {};
  if (!isMapping(content)) throw unreadable('it does not consist of keys and values');
  return content;
}

function unreadable(reason: string): DBOSInitializationError {
  return new DBOSInitializationError(
    `${CONFIG_FILE} cannot be read as YAML: ${reason}. Correct it. A \${VARIABLE} is replaced by its value as it ` +
      'stands, or by "" if it is not set; put quotes around one whose value has special characters.',
  );
}

function refuseOtherLanguages(file: Mapping): void {
  const language = find(file, 'language');
  if (language === undefined || language === 'node') return;
  throw new DBOSInitializationError(
    `${CONFIG_FILE} is of an application in another language. Only language: node can be run here.`,
  );
}

/** The value under a key with dots, undefined if it or a mapping above it is absent, null or empty. */
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

/** One value or several, without those whose variable is not set. */
function asList(value: unknown): unknown[] | undefined {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  const present = list.filter((item) => item != null && item !== '');
  return present.length > 0 ? present : undefined;
}

function trueIfAny(value: unknown): true | undefined {
  return asList(value) && true;
}

function loggerIfSilent(value: unknown, key: string): unknown {
  KINDS.flag(`${CONFIG_FILE}: ${key}`, value);
  return value ? silentLogger : undefined;
}

function packageName(folder: string): unknown {
  const path = join(folder, 'package.json');
  const text = readIfPresent(path);
  if (text === undefined) return undefined;
  try {
    return (JSON.parse(text) as { name?: unknown } | null)?.name;
  } catch (error) {
    throw new DBOSInitializationError(
      `${path} is not valid JSON. Correct it, or set name in ${CONFIG_FILE}.`,
      error as Error,
    );
  }
}
