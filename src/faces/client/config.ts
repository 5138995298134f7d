// A client's configuration, checked before connecting.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import type pg from 'pg';
import type { Clock } from '../../kernel/base/clock.js';
import { consoleLogger, type DLogger } from '../../kernel/base/log.js';
import { newID } from '../../kernel/base/ids.js';
import { locateDatabase } from '../../kernel/base/url.js';
import { Codec } from '../../kernel/codec/codec.js';
import { KnownErrors } from '../../kernel/codec/error-classes.js';
import type { DBOSSerializer } from '../../kernel/codec/serializer.js';
import type { Archive } from '../../features/retention/archive-target.js';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import { CALL_TIMEOUT_MS, checkSetting, SETTINGS } from '../../kernel/check/settings.js';
import { type Check, fieldNames, objectWith } from '../../kernel/check/validation.js';
import { checkSchemaName } from '../../database/migrations/schema-name.js';
import type { ClientOperatorOptions } from './client-operator.js';

export interface DBOSClientConfig {
  /** postgresql://… or sqlite:///path/app.sqlite, the system database of the application. */
  readonly systemDatabaseUrl: string;
  /** Your own pool, which the client does not end. `systemDatabaseUrl` must point to the same database. */
  readonly systemDatabasePool?: pg.Pool;
  /** The schema of the system tables on Postgres. Default: `dbos`. */
  readonly systemDatabaseSchemaName?: string;
  /** Connections in the pool. Default: 10. */
  readonly systemDatabasePoolSize?: number;
  /** Ignored; accepted for compatibility. All waits share their queries. */
  readonly systemDatabasePollingConcurrency?: number;
  /** Ends a Postgres session that has been idle in a transaction for this long; 0 or less for never. Default: 60000. */
  readonly systemDatabaseIdleTransactionTimeoutMs?: number | DurationText;
  /** How long an operation waits for a connection. Default: `connect_timeout` of the URL, or 10000. */
  readonly systemDatabasePoolTimeoutMs?: number | DurationText;
  /** How long a statement waits for any sign of the server before its connection is suspected to be dead. Default: 10000. */
  readonly systemDatabaseSilenceTimeoutMs?: number | DurationText;
  /** Time limit of listing and other introspection queries; 0 or less for none. Default: 30000. */
  readonly observabilityQueryTimeoutMs?: number | DurationText;
  /** How long a call waits for a database that cannot be used, before it fails. Waits for results go on. Default: 30000. */
  readonly callTimeoutMs?: number | DurationText;
  /** False disables listening and notifying; waits then poll. Default: true. */
  readonly useListenNotify?: boolean;
  /** As in the configuration of the application. Default: false; beside another process, the client only reads. */
  readonly allowAffectedSqlite?: boolean;
  /** The URL points to a pooler in transaction mode, such as PgBouncer. Default: false. */
  readonly transactionPooler?: boolean;
  /** Must be the same as the application's. Default: superjson. */
  readonly serializer?: DBOSSerializer;
  /** As in the configuration of the application. Default: `warn`. */
  readonly lostValues?: 'error' | 'warn' | 'ignore';
  /** As in the configuration of the application. Default: no limit. */
  readonly maxPayloadBytes?: number;
  /** Replaces the console. */
  readonly logger?: DLogger;
  /** Where the application archives workflows. */
  readonly archive?: Archive;
  /** The application that the client acts for. Without one it sees all applications. */
  readonly applicationName?: string;
}

/** Settings for tests. */
export interface ClientTestSettings {
  readonly clock?: Clock;
}

const { text, flag, count, intervalMs, timeoutMs, limit, pool, serializer, logger } = SETTINGS;
const CHECKS: Readonly<Record<keyof DBOSClientConfig, Check<unknown>>> = {
  systemDatabaseUrl: text,
  systemDatabasePool: pool,
  systemDatabaseSchemaName: text,
  systemDatabasePoolSize: count,
  systemDatabasePollingConcurrency: limit,
  systemDatabaseIdleTransactionTimeoutMs: timeoutMs,
  systemDatabasePoolTimeoutMs: intervalMs,
  systemDatabaseSilenceTimeoutMs: intervalMs,
  observabilityQueryTimeoutMs: timeoutMs,
  callTimeoutMs: intervalMs,
  useListenNotify: flag,
  allowAffectedSqlite: flag,
  transactionPooler: flag,
  serializer,
  lostValues: SETTINGS.lostValues,
  maxPayloadBytes: count,
  logger,
  applicationName: text,
  archive: objectWith('write', 'read'),
};

const fieldsCheck = fieldNames(CHECKS);

/** Checks a configuration and fills in the defaults. */
export function resolveClientConfig(config: DBOSClientConfig): ClientOperatorOptions {
  check(config);
  const { lostValues = 'warn', maxPayloadBytes } = config;
  const clientLogger = config.logger ?? consoleLogger('info');
  return {
    codec: new Codec(config.serializer, {
      knownErrors: new KnownErrors(newID()),
      lostValues,
      maxPayloadBytes,
      warn: (message) => clientLogger.warn(message),
    }),
    applicationName: config.applicationName ?? null,
    queryTimeoutMs: inMs(config.observabilityQueryTimeoutMs),
    archive: config.archive,
    store: {
      url: config.systemDatabaseUrl,
      pool: config.systemDatabasePool,
      schema: config.systemDatabaseSchemaName,
      poolSize: config.systemDatabasePoolSize ?? 10,
      poolTimeoutMs: inMs(config.systemDatabasePoolTimeoutMs),
      silenceMs: inMs(config.systemDatabaseSilenceTimeoutMs),
      callTimeoutMs: inMs(config.callTimeoutMs) ?? CALL_TIMEOUT_MS,
      idleTransactionTimeoutMs: Math.max(0, Math.ceil(inMs(config.systemDatabaseIdleTransactionTimeoutMs) ?? 60_000)),
      useListenNotify: config.useListenNotify ?? true,
      allowAffectedSqlite: config.allowAffectedSqlite,
      isTransactionPooler: config.transactionPooler,
      applicationName: 'everstep_client',
      logger: clientLogger,
    },
  };
}

function check(config: DBOSClientConfig): void {
  checkSetting(objectWith(), 'The configuration of a client', config);
  for (const [field, setting] of Object.entries(CHECKS)) {
    const value = config[field as keyof DBOSClientConfig];
    if (value !== undefined) checkSetting(setting, field, value);
  }
  fieldsCheck.read(config, 'DBOSClientConfig');
  if (config.systemDatabaseSchemaName !== undefined) checkSchemaName(config.systemDatabaseSchemaName);
  if (config.systemDatabaseUrl === undefined) {
    throw new DBOSInitializationError('DBOSClient.create needs a systemDatabaseUrl.');
  }
  if (config.systemDatabasePool !== undefined && locateDatabase(config.systemDatabaseUrl)?.kind === 'sqlite') {
    throw new DBOSInitializationError(
      'systemDatabasePool needs the Postgres URL of its database in systemDatabaseUrl as well: ' +
        'notifications are received on a connection outside the pool.',
    );
  }
}
