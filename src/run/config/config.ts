// The configuration: what users can set, and how it is validated and completed from the environment, dbos-config.yaml
// and the defaults. Only this file and the command line read the environment.
import { timed } from '../../kernel/check/duration.js';
import { type DurationText, inMs, inSeconds } from '../../kernel/base/duration.js';
import type pg from 'pg';
import { consoleLogger, type DLogger, type LogLevel, textLogger } from '../../kernel/base/log.js';
import { locateDatabase } from '../../kernel/base/url.js';
import type { Archive } from '../../features/retention/archive-target.js';
import type { DBOSSerializer } from '../../kernel/codec/serializer.js';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import { HISTORY_LEVELS, type HistoryLevel } from '../../features/history/event.js';
import { type RetentionConfig, retentionConfig } from '../../features/retention/policy.js';
import { CALL_TIMEOUT_MS, checkSetting, SETTINGS } from '../../kernel/check/settings.js';
import {
  type Check,
  checkThat,
  fieldNames,
  INT_MAX,
  number,
  objectWith,
  oneOf,
  optional,
  record,
} from '../../kernel/check/validation.js';
import { checkSchemaName } from '../../database/migrations/schema-name.js';
import { isAffectedAllowed } from '../../database/sqlite/wal-reset-bug.js';
import type { StoreOptions } from '../writer/store.js';
import { chooseSystemURL, postgresVariables } from '../../database/config/system-url.js';
import { resolveAdmin } from './config-admin.js';
import { resolveVersion } from './version-source.js';
import type { ParseYaml } from '../../database/config/config-document.js';
import { type ConfigFile, readConfigFile } from './config-file.js';

/** The naming scheme of span attributes. */
export type OtelAttributeFormat = 'legacy' | 'semconv';

/** What to take over from DBOS at launch. */
export interface AdoptOptions {
  /** Declares that the processes have ended. Without it, the launch only logs what they left. */
  gone?: boolean;
  /** Only what these executors ran or would have run. Default: all. */
  executorIDs?: string[];
  /** Only workflows of these versions. Default: all. */
  applicationVersions?: string[];
}

/** The argument of `DBOS.setConfig()`. Only `name` is required. */
export interface DBOSConfig {
  /** The application. Its name scopes workflows, queues and schedules where several share a system database. */
  name?: string;
  /** The system database, on Postgres or SQLite. Default: see "Which system database" in the reference. */
  systemDatabaseUrl?: string;
  /** The application's own database. Without `systemDatabaseUrl`, the URL of the system database is derived from it. */
  applicationDatabaseUrl?: string;
  /** Older name of `applicationDatabaseUrl`. */
  databaseUrl?: string;
  /** The size of the connection pool. Default: 20, and 10 behind a pooler in session mode. */
  systemDatabasePoolSize?: number;
  /** A pool of your own, which Everstep never ends. `systemDatabaseUrl` must point to the same database. */
  systemDatabasePool?: pg.Pool;
  /** The schema of the system tables on Postgres. Default: `dbos`. */
  systemDatabaseSchemaName?: string;
  /** Accepted for compatibility; has no effect. */
  systemDatabasePollingConcurrency?: number;
  /** Ends Postgres sessions that are idle in a transaction for this long; 0 or less disables it. Default: 60000. */
  systemDatabaseIdleTransactionTimeoutMs?: number | DurationText;
  /** How long an operation waits for a connection. Default: `connect_timeout` of the URL, or 10000. */
  systemDatabasePoolTimeoutMs?: number | DurationText;
  /** How long a statement waits for any sign of the server before its connection is suspected to be dead. Default: 10000, or a third of the lease if that is shorter. */
  systemDatabaseSilenceTimeoutMs?: number | DurationText;
  /** Whether the URL points to a pooler in transaction mode, such as PgBouncer. Default: found out. */
  transactionPooler?: boolean;
  /** Opens a connection per operation instead of keeping a pool. Default: false. */
  connectionPerOperation?: boolean;
  /**
   * Lets several processes use one SQLite file although the version of SQLite can corrupt it then. Default:
   * EVERSTEP_ALLOW_AFFECTED_SQLITE, or false.
   */
  allowAffectedSqlite?: boolean;
  /** Migrates the system database at launch; false only checks its version. Default: true. */
  runMigrations?: boolean;
  /** Wakes waiters in other processes with LISTEN and NOTIFY; false leaves them to polling. Default: true. */
  useListenNotify?: boolean;
  /** How long notifications are batched before they are sent. Default: 10. */
  notificationCoalesceMs?: number | DurationText;
  /** The timeout of listing and other introspection queries; 0 or less disables it. Default: 30000. */
  observabilityQueryTimeoutMs?: number | DurationText;
  /**
   * The version of the application's code; `git` for the checked-out commit, `package` for the version in package.json.
   * Default: computed from the workflows, as they were compiled.
   */
  applicationVersion?: string;
  /** Identifies this process among those of the application. Default: `local`. */
  executorID?: string;
  /** How long this process may fail to renew its lease before peers recover its workflows. Default: 30. */
  leaseSeconds?: number | DurationText;
  /** When an application moves from DBOS: logs at launch what DBOS has left in flight, and takes it over with `gone: true`. */
  adopt?: AdoptOptions;
  /** Allows `DBOS.patch()`. Default: false. */
  enablePatching?: boolean;
  /** How much of what happens to workflows is kept: `off`, `changes` or `full`. Default: `changes`. */
  history?: HistoryLevel;
  /** Serializes stored values. Default: superjson. */
  serializer?: DBOSSerializer;
  /**
   * What happens to values that lose something when they are stored. `warn` refuses what would not come back, such as
   * functions and streams, and warns of class instances, which become plain objects. `error` refuses both, `ignore` accepts
   * both. Default: `warn`.
   */
  lostValues?: 'error' | 'warn' | 'ignore';
  /** Refuses arguments, results, messages, events and stream values of more bytes. Default: no limit. */
  maxPayloadBytes?: number;
  /** The queues that this process serves, by name or object. Default: all. */
  listenQueues?: (string | { name: string })[];
  /** How many queues are claimed from at once. Default: 3. */
  maxConcurrentQueueDispatches?: number;
  /** How many workflows from queues this process runs at once. Default: 1000. */
  maxConcurrentWorkflows?: number;
  /** How long a wait has to be for a workflow to leave memory meanwhile; 0: none does. Default: 10000. */
  parkAfterMs?: number | DurationText;
  /** How often schedules are reloaded. Default: 30000. */
  schedulerPollingIntervalMs?: number | DurationText;
  /**
   * Shuts down when no workflow has run in this process, and none was waited for, for this long: a script then ends by itself.
   * Delayed workflows and schedules do not keep it up. Default: stays up until `shutdown`.
   */
  shutdownAfterIdleMs?: number | DurationText;
  /**
   * How long a shutdown takes at most, the wait for running workflows included. What has not stopped by then is left behind.
   * Default: 25000, or 10000 more than the workflows get if that is longer.
   */
  shutdownTimeoutMs?: number | DurationText;
  /**
   * How long a call from outside of workflows, such as a start, waits for a system database that cannot be used, before it
   * fails. Workflows wait until it can. Default: 30000.
   */
  callTimeoutMs?: number | DurationText;
  /** The lowest level logged to the console: debug, info, warn or error. Default: `info`. */
  logLevel?: string;
  /** Replaces the console logger. */
  logger?: DLogger;
  /** Accepted for compatibility; has no effect yet. */
  addContextMetadata?: boolean;
  /** As `tracingEnabled`. Everstep exports nothing itself: the application's provider does. */
  enableOTLP?: boolean;
  /** Makes spans of workflows, steps and transactions with `@opentelemetry/api`. Default: as `enableOTLP`. */
  tracingEnabled?: boolean;
  /** Accepted for compatibility; has no effect. */
  otlpTracesEndpoints?: string[];
  /** Accepted for compatibility; has no effect. */
  otlpLogsEndpoints?: string[];
  /** How attributes of spans are named: as always, or as OpenTelemetry suggests. Default: `legacy`. */
  otelAttributeFormat?: OtelAttributeFormat;
  /** How long workflows are kept after they have ended. Default: for good. */
  retention?: RetentionConfig;
  /** Where workflows are archived before retention deletes them, such as `fileArchive(folder)`. */
  archive?: Archive;
  /** Starts the admin HTTP server. Default: false. */
  runAdminServer?: boolean;
  /** The port of the admin server; 0 for any free one. Default: 3001. */
  adminPort?: number;
  /** The address that the admin server listens on. Default: `127.0.0.1`, which only this machine can reach. */
  adminHost?: string;
  /** The bearer token that clients of the admin server must send. */
  adminToken?: string;
  /** A second token for clients of the admin server that may look but not change anything. */
  adminReadOnlyToken?: string;
  /** Lets the admin server run without a token, on loopback only. Default: false. */
  adminOpen?: boolean;
}

/** The configuration as the engine uses it: validated, with all defaults applied. */
export interface EngineConfig {
  readonly name: string;
  /** Why the system database is the one that it is, for the log. */
  readonly databaseReason: string;
  /** Empty if DBOS__APPID is not set. */
  readonly applicationID: string;
  /** Undefined: computed from the workflows. */
  readonly applicationVersion: string | undefined;
  readonly executorID: string;
  /** A configured executor ID belongs to one process at a time, so a former process with it is dead. */
  readonly isExecutorIDExplicit: boolean;
  readonly leaseSeconds: number;
  readonly adopt: AdoptOptions | undefined;
  readonly enablePatching: boolean;
  readonly history: HistoryLevel;
  /** Undefined: superjson. */
  readonly serializer: DBOSSerializer | undefined;
  readonly lostValues: 'error' | 'warn' | 'ignore';
  /** Whether to warn of classes of errors that are not registered: in development. */
  readonly warnsOfErrors: boolean;
  /** Undefined: no limit. */
  readonly maxPayloadBytes: number | undefined;
  /** Undefined: all queues. */
  readonly listenQueues: readonly string[] | undefined;
  readonly maxConcurrentQueueDispatches: number;
  readonly maxConcurrentWorkflows: number;
  /** 0: never. */
  readonly parkAfterMs: number;
  readonly schedulerPollingIntervalMs: number;
  /** Undefined: until `shutdown`. */
  readonly shutdownAfterIdleMs: number | undefined;
  /** Undefined: by default. */
  readonly shutdownTimeoutMs: number | undefined;
  readonly callTimeoutMs: number;
  /** Infinity: no limit. */
  readonly systemDatabasePollingConcurrency: number;
  /** 0: no timeout. */
  readonly observabilityQueryTimeoutMs: number;
  readonly logger: DLogger;
  readonly logLevel: LogLevel;
  readonly addContextMetadata: boolean;
  readonly enableOTLP: boolean;
  readonly tracingEnabled: boolean;
  readonly otlpTracesEndpoints: readonly string[];
  readonly otlpLogsEndpoints: readonly string[];
  readonly otelAttributeFormat: OtelAttributeFormat;
  readonly retention: RetentionConfig | undefined;
  readonly archive: Archive | undefined;
  readonly runAdminServer: boolean;
  readonly adminPort: number;
  readonly adminHost: string;
  /** Undefined: none is needed, or there is no server. */
  readonly adminToken: string | undefined;
  readonly adminReadOnlyToken: string | undefined;
  readonly adminOpen: boolean;
  /** The options to open the system database with. Only tests add clocks. */
  readonly store: Omit<StoreOptions, 'clock' | 'now'>;
}

/** Where dbos-config.yaml is looked for, and what reads it. */
export interface ConfigFolder {
  readonly folder?: string;
  readonly parseYaml?: ParseYaml;
}

/** What is known of a process before its launch. The version may be computed then; until then it is empty. */
export function configuredIdentity(
  { applicationVersion, executorID }: DBOSConfig = {},
  environment: NodeJS.ProcessEnv = process.env,
): { readonly applicationVersion: string; readonly executorID: string } {
  return {
    applicationVersion:
      resolveVersion(applicationVersion, process.cwd()) ?? (environment['DBOS__APPVERSION']?.trim() || ''),
    executorID: executorID ?? (environment['DBOS__VMID']?.trim() || 'local'),
  };
}

/** `resolveConfig` for a launch. The YAML parser is loaded only if there is no configuration in code. */
export async function loadConfig(config: DBOSConfig | undefined): Promise<EngineConfig> {
  if (config !== undefined) return resolveConfig(config);
  const { parseYaml } = await import('../../database/config/yaml.js');
  return resolveConfig(undefined, process.env, { parseYaml });
}

/**
 * Validates and completes a configuration. Values come from `config`, then the environment, then the defaults. Without
 * `config`, dbos-config.yaml in the folder is read, and the environment overrides it.
 */
export function resolveConfig(
  config: DBOSConfig | undefined,
  environment: NodeJS.ProcessEnv = process.env,
  { folder = process.cwd(), parseYaml }: ConfigFolder = {},
): EngineConfig {
  const file = config === undefined && parseYaml ? readConfigFile(folder, environment, parseYaml) : undefined;
  if (config === undefined && file === undefined) {
    throw new DBOSInitializationError(
      'No DBOS configuration was provided. Call DBOS.setConfig({ name: ... }) before DBOS.launch(), ' +
        `or put a dbos-config.yaml into "${folder}".`,
    );
  }
  const given = checkConfig(config ?? file?.values, file);
  const variable: Variable = (name) => environment[name]?.trim() || undefined;
  const executorID = given.executorID ?? variable('DBOS__VMID');
  const patchingVersion = given.enablePatching ? 'PATCHING_ENABLED' : undefined;
  const logLevel = (given.logLevel?.toLowerCase() ?? 'info') as LogLevel;
  const logger = given.logger ? textLogger(given.logger) : consoleLogger(logLevel);
  if (given.enableOTLP) {
    logger.warn(
      'Everstep makes spans but does not export them, nor logs: register a tracer provider of OpenTelemetry, which does.',
    );
  }
  const poolSize = given.systemDatabasePoolSize ?? 20;
  const leaseSeconds = inSeconds(given.leaseSeconds) ?? 30;
  const pollingMax =
    given.systemDatabasePollingConcurrency ??
    Math.max(1, Math.floor((given.systemDatabasePool?.options?.max ?? poolSize) / 2));
  const systemDatabase = systemDatabaseURL(given, variable, { isFromFile: file !== undefined });
  return {
    name: given.name,
    databaseReason: systemDatabase.reason,
    applicationID: variable('DBOS__APPID') ?? '',
    applicationVersion:
      resolveVersion(given.applicationVersion, folder) ?? variable('DBOS__APPVERSION') ?? patchingVersion,
    executorID: executorID ?? 'local',
    isExecutorIDExplicit: executorID !== undefined,
    leaseSeconds,
    adopt: given.adopt,
    enablePatching: given.enablePatching ?? false,
    history: given.history ?? 'changes',
    serializer: given.serializer,
    lostValues: given.lostValues ?? 'warn',
    warnsOfErrors: variable('NODE_ENV') !== 'production',
    maxPayloadBytes: given.maxPayloadBytes,
    listenQueues: given.listenQueues?.map((queue) => (typeof queue === 'string' ? queue : queue.name)),
    maxConcurrentQueueDispatches: given.maxConcurrentQueueDispatches ?? 3,
    maxConcurrentWorkflows: given.maxConcurrentWorkflows ?? 1000,
    parkAfterMs: inMs(given.parkAfterMs) ?? 10_000,
    schedulerPollingIntervalMs: inMs(given.schedulerPollingIntervalMs) ?? 30_000,
    shutdownAfterIdleMs: inMs(given.shutdownAfterIdleMs),
    shutdownTimeoutMs: inMs(given.shutdownTimeoutMs),
    callTimeoutMs: inMs(given.callTimeoutMs) ?? CALL_TIMEOUT_MS,
    systemDatabasePollingConcurrency: pollingMax > 0 ? pollingMax : Infinity,
    observabilityQueryTimeoutMs: wholeTimeoutMs(inMs(given.observabilityQueryTimeoutMs) ?? 30_000),
    logger,
    logLevel,
    addContextMetadata: given.addContextMetadata ?? false,
    enableOTLP: given.enableOTLP ?? false,
    tracingEnabled: given.tracingEnabled ?? given.enableOTLP ?? false,
    otlpTracesEndpoints: given.otlpTracesEndpoints ?? [],
    otlpLogsEndpoints: given.otlpLogsEndpoints ?? [],
    otelAttributeFormat: given.otelAttributeFormat ?? 'legacy',
    retention: given.retention,
    archive: given.archive,
    ...resolveAdmin(given, variable, { isFromFile: file !== undefined, logger }),
    store: {
      url: systemDatabase.url,
      logger,
      applicationName: `everstep_${given.name}`,
      schema: given.systemDatabaseSchemaName ?? 'dbos',
      poolSize: given.systemDatabasePoolSize,
      pool: given.systemDatabasePool ?? (given.connectionPerOperation ? 'none' : undefined),
      isTransactionPooler: given.transactionPooler,
      poolTimeoutMs: inMs(given.systemDatabasePoolTimeoutMs),
      // A heartbeat on a silent connection must be repeated before the lease ends.
      silenceMs: inMs(given.systemDatabaseSilenceTimeoutMs) ?? Math.min(10_000, (leaseSeconds * 1000) / 3),
      idleTransactionTimeoutMs: wholeTimeoutMs(inMs(given.systemDatabaseIdleTransactionTimeoutMs) ?? 60_000),
      allowAffectedSqlite: given.allowAffectedSqlite ?? isAffectedAllowed(environment),
      runMigrations: given.runMigrations ?? true,
      useListenNotify: given.useListenNotify ?? true,
      notificationCoalesceMs: inMs(given.notificationCoalesceMs) ?? 10,
    },
  };
}

export type Variable = (name: string) => string | undefined;
export type CheckedConfig = DBOSConfig & { readonly name: string };

/** Postgres accepts whole milliseconds only; 0 means no timeout. */
function wholeTimeoutMs(timeoutMs: number): number {
  return Math.max(0, Math.ceil(timeoutMs));
}

/** An explicit URL, wherever it is set, wins over one derived from the application's database. */
function systemDatabaseURL(
  given: CheckedConfig,
  variable: Variable,
  { isFromFile }: { readonly isFromFile: boolean },
): { readonly url: string; readonly reason: string } {
  const choose = (own: string | undefined, name: string): string | undefined =>
    isFromFile ? (variable(name) ?? own) : (own ?? variable(name));
  const systemURL = choose(given.systemDatabaseUrl, 'DBOS_SYSTEM_DATABASE_URL');
  const applicationURL = choose(given.applicationDatabaseUrl ?? given.databaseUrl, 'DBOS_DATABASE_URL');
  const url = chooseSystemURL({ systemURL, applicationURL, name: given.name, variable });
  if (locateDatabase(url)?.kind === 'sqlite' && given.systemDatabasePool !== undefined) {
    throw new DBOSInitializationError(
      'systemDatabasePool needs the Postgres URL of its database in systemDatabaseUrl as well: ' +
        'notifications are received on a connection outside the pool.',
    );
  }
  const variables = postgresVariables(variable);
  const reason =
    systemURL !== undefined
      ? 'its URL is configured'
      : applicationURL !== undefined
        ? 'derived from the application database'
        : variables.length > 0
          ? `no URL is set, but ${variables.join(', ')}`
          : 'no URL is set';
  return { url, reason };
}

const LOG_LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'] satisfies LogLevel[];
const { text, flag, names, count, intervalMs, timeoutMs, endpoints } = SETTINGS;
const CHECKS: Readonly<Record<keyof DBOSConfig, Check<unknown>>> = {
  ...each(text, 'name', 'systemDatabaseUrl', 'applicationDatabaseUrl', 'databaseUrl'),
  ...each(text, 'applicationVersion', 'executorID', 'adminHost', 'adminToken', 'adminReadOnlyToken'),
  ...each(flag, 'transactionPooler', 'connectionPerOperation', 'allowAffectedSqlite', 'runMigrations'),
  ...each(flag, 'useListenNotify', 'enablePatching'),
  ...each(flag, 'addContextMetadata', 'enableOTLP', 'tracingEnabled', 'runAdminServer', 'adminOpen'),
  ...each(count, 'systemDatabasePoolSize', 'maxConcurrentQueueDispatches', 'maxConcurrentWorkflows'),
  ...each(intervalMs, 'notificationCoalesceMs', 'schedulerPollingIntervalMs'),
  ...each(intervalMs, 'shutdownAfterIdleMs', 'shutdownTimeoutMs', 'callTimeoutMs'),
  ...each(intervalMs, 'systemDatabasePoolTimeoutMs', 'systemDatabaseSilenceTimeoutMs'),
  ...each(timeoutMs, 'systemDatabaseIdleTransactionTimeoutMs', 'observabilityQueryTimeoutMs'),
  ...each(endpoints, 'otlpTracesEndpoints', 'otlpLogsEndpoints'),
  systemDatabasePool: SETTINGS.pool,
  systemDatabaseSchemaName: text,
  systemDatabasePollingConcurrency: SETTINGS.limit,
  adopt: record({
    gone: optional(flag),
    executorIDs: optional(names),
    applicationVersions: optional(names),
  }),
  parkAfterMs: timed(number({ min: 0, max: INT_MAX })),
  leaseSeconds: timed(number({ min: 1, max: 86_400 }), inSeconds),
  serializer: SETTINGS.serializer,
  lostValues: SETTINGS.lostValues,
  maxPayloadBytes: count,
  logger: SETTINGS.logger,
  logLevel: checkThat(
    `one of ${LOG_LEVELS.join(', ')}`,
    (level) => typeof level === 'string' && LOG_LEVELS.includes(level.toLowerCase()),
    { type: 'string' },
  ),
  otelAttributeFormat: oneOf(['legacy', 'semconv']),
  history: oneOf([...HISTORY_LEVELS]),
  listenQueues: SETTINGS.queues,
  adminPort: SETTINGS.port,
  retention: retentionConfig,
  archive: objectWith('write', 'read'),
};

function each<Field extends keyof DBOSConfig>(
  check: Check<unknown>,
  ...fields: Field[]
): Record<Field, Check<unknown>> {
  return Object.fromEntries(fields.map((field) => [field, check])) as Record<Field, Check<unknown>>;
}

/** The names of the options. Configurations of DBOS may have others, such as those of older versions. */
const fieldsCheck = fieldNames(CHECKS);

/** Throws for what a launch would refuse, as far as the configuration itself tells. */
export function checkConfig(values: unknown, file?: ConfigFile): CheckedConfig {
  checkSetting(objectWith(), 'DBOSConfig', values);
  // The loop below checks the type of each field.
  const config = values as DBOSConfig;
  for (const [field, check] of Object.entries(CHECKS)) {
    const value = config[field as keyof DBOSConfig];
    if (value !== undefined) checkSetting(check, file?.keys.get(field) ?? field, value);
  }
  if (!file) fieldsCheck.read(config, 'DBOSConfig');
  if (config.systemDatabaseSchemaName !== undefined) checkSchemaName(config.systemDatabaseSchemaName);
  if (config.name === undefined) {
    throw new DBOSInitializationError(
      'No application name was provided. Set name in DBOS.setConfig(), or in dbos-config.yaml if you use one.',
    );
  }
  if (config.systemDatabasePool !== undefined && config.connectionPerOperation) {
    throw new DBOSInitializationError('systemDatabasePool and connectionPerOperation exclude each other. Remove one.');
  }
  return config as CheckedConfig;
}
