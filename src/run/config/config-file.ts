// Maps dbos-config.yaml to the fields of the configuration. Values may hold passwords, so no error quotes one.
import { silentLogger } from '../../kernel/base/log.js';
import { checkSetting, SETTINGS } from '../../kernel/check/settings.js';
import { CONFIG_FILE, type ParseYaml, readConfigDocument } from '../../database/config/config-document.js';

export interface ConfigFile {
  /** By field of the configuration. Not checked yet. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The key that set a field, for error messages. */
  readonly keys: ReadonlyMap<string, string>;
}

/** A field of the configuration, its key in the file, and a conversion where they differ. */
type Entry = readonly [field: string, key: string, translate?: (value: unknown, key: string) => unknown];

/** If two keys set one field, the first wins. */
const ENTRIES: readonly Entry[] = [
  ['name', 'name'],
  ['systemDatabaseUrl', 'system_database_url'],
  ['systemDatabaseSchemaName', 'system_database_schema_name'],
  ['systemDatabaseSchemaName', 'dbos_system_schema'],
  ['databaseUrl', 'database_url'],
  ['systemDatabasePoolSize', 'database.sys_db_pool_size'],
  ['systemDatabasePoolTimeoutMs', 'database.db_engine_kwargs.pool_timeout', secondsToMs],
  ['connectionPerOperation', 'database.db_engine_kwargs.poolclass', (value) => value === 'NullPool' || undefined],
  ['logLevel', 'telemetry.logs.logLevel'],
  ['addContextMetadata', 'telemetry.logs.addContextMetadata'],
  ['logger', 'telemetry.logs.silent', loggerIfSilent],
  ['otlpLogsEndpoints', 'telemetry.OTLPExporter.logsEndpoint', asList],
  ['otlpTracesEndpoints', 'telemetry.OTLPExporter.tracesEndpoint', asList],
  // The file has no switch for export: naming an endpoint enables it.
  ['enableOTLP', 'telemetry.OTLPExporter.logsEndpoint', trueIfAny],
  ['enableOTLP', 'telemetry.OTLPExporter.tracesEndpoint', trueIfAny],
  ['useListenNotify', 'use_listen_notify'],
  ['adminPort', 'runtimeConfig.admin_port'],
  ['runAdminServer', 'runtimeConfig.runAdminServer'],
  ['adminHost', 'runtimeConfig.admin_host'],
  ['adminToken', 'runtimeConfig.admin_token'],
  ['adminReadOnlyToken', 'runtimeConfig.admin_read_only_token'],
  ['adminOpen', 'runtimeConfig.admin_open'],
];

/** Undefined if the folder has no dbos-config.yaml. */
export function readConfigFile(
  folder: string,
  environment: NodeJS.ProcessEnv,
  parseYaml: ParseYaml,
): ConfigFile | undefined {
  const document = readConfigDocument(folder, environment, parseYaml);
  if (document === undefined) return undefined;
  const values: Record<string, unknown> = {};
  const keys = new Map<string, string>();
  for (const [field, key, translate] of ENTRIES) {
    const found = document.find(key);
    const value = translate === undefined || found === undefined ? found : translate(found, key);
    if (value === undefined || keys.has(field)) continue;
    values[field] = value;
    keys.set(field, `${CONFIG_FILE}: ${key}`);
  }
  values['name'] ??= document.name;
  return { values, keys };
}

/** One value or several as a list, without those whose environment variable is not set. */
function asList(value: unknown): unknown[] | undefined {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  const present = list.filter((item) => item != null && item !== '');
  return present.length > 0 ? present : undefined;
}

function trueIfAny(value: unknown): true | undefined {
  return asList(value) && true;
}

function loggerIfSilent(value: unknown, key: string): unknown {
  checkSetting(SETTINGS.flag, `${CONFIG_FILE}: ${key}`, value);
  return value ? silentLogger : undefined;
}

function secondsToMs(value: unknown): unknown {
  return typeof value === 'number' ? value * 1000 : value;
}
