import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { computeApplicationVersion } from '../../../src/run/config/application-version.js';
import { type DBOSConfig, type EngineConfig, resolveConfig } from '../../../src/run/config/config.js';
import { parseYaml } from '../../../src/database/config/yaml.js';
import {
  DBOSConfigKeyTypeError,
  DBOSInitializationError,
  InvalidDatabaseURLError,
  InvalidSchemaNameError,
} from '../../../src/kernel/errors/errors.js';

const POSTGRES_URL = 'postgresql://user:s3cret@db.example:5433/app';

/** A configuration with one value that its type does not allow. */
function misconfigured(field: string, value: unknown): DBOSConfig {
  return { name: 'app', [field]: value };
}

function thrownBy(body: () => unknown): Error {
  try {
    body();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}

/** A folder with the given files, as the current directory of an application. */
function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** What a dbos-config.yaml of these lines resolves to. */
function resolveFile(lines: string, environment: NodeJS.ProcessEnv = {}): EngineConfig {
  return resolveConfig(undefined, environment, { folder: folderWith({ 'dbos-config.yaml': lines }), parseYaml });
}

/** Another value than the default for every field that needs no pool. The compiler insists on all of them. */
const COMPLETE: Required<Omit<DBOSConfig, 'systemDatabasePool'>> = {
  name: 'shop',
  systemDatabaseUrl: POSTGRES_URL,
  applicationDatabaseUrl: 'postgresql://user@host/a',
  databaseUrl: 'postgresql://user@host/b',
  systemDatabasePoolSize: 7,
  systemDatabaseSchemaName: 'durable',
  systemDatabasePollingConcurrency: 2,
  systemDatabaseIdleTransactionTimeoutMs: 1_500,
  systemDatabasePoolTimeoutMs: 4_000,
  systemDatabaseSilenceTimeoutMs: 3_000,
  transactionPooler: true,
  connectionPerOperation: true,
  allowAffectedSqlite: true,
  runMigrations: false,
  useListenNotify: false,
  notificationCoalesceMs: 25,
  observabilityQueryTimeoutMs: 2_500,
  applicationVersion: 'v1',
  executorID: 'worker-1',
  leaseSeconds: 10,
  adopt: { gone: true },
  enablePatching: true,
  history: 'full',
  serializer: { name: () => 'own', stringify: String, parse: (text) => text },
  lostValues: 'error',
  maxPayloadBytes: 1_000_000,
  listenQueues: ['mail', { name: 'reports' }],
  maxConcurrentQueueDispatches: 5,
  maxConcurrentWorkflows: 50,
  parkAfterMs: 60_000,
  schedulerPollingIntervalMs: 5_000,
  shutdownAfterIdleMs: 2_000,
  shutdownTimeoutMs: 12_000,
  callTimeoutMs: 5_000,
  logLevel: 'DEBUG',
  logger: silentLogger,
  addContextMetadata: true,
  enableOTLP: true,
  tracingEnabled: false,
  otlpTracesEndpoints: ['http://collector/v1/traces'],
  otlpLogsEndpoints: ['https://collector/v1/logs'],
  otelAttributeFormat: 'semconv',
  retention: { completed: '30 days' },
  archive: { write: async () => {}, read: async () => undefined },
  runAdminServer: true,
  adminPort: 0,
  adminHost: '0.0.0.0',
  adminToken: 'secret',
  adminReadOnlyToken: 'for looking',
  adminOpen: true,
};

describe('a configuration', () => {
  test('of nothing but a name gets all defaults', () => {
    const { logger, ...config } = resolveConfig({ name: 'app' }, {});

    expect(config).toEqual({
      name: 'app',
      databaseReason: 'no URL is set',
      applicationID: '',
      applicationVersion: undefined,
      executorID: 'local',
      isExecutorIDExplicit: false,
      leaseSeconds: 30,
      enablePatching: false,
      history: 'changes',
      serializer: undefined,
      lostValues: 'warn',
      maxPayloadBytes: undefined,
      listenQueues: undefined,
      maxConcurrentQueueDispatches: 3,
      maxConcurrentWorkflows: 1000,
      parkAfterMs: 10_000,
      schedulerPollingIntervalMs: 30_000,
      shutdownAfterIdleMs: undefined,
      shutdownTimeoutMs: undefined,
      callTimeoutMs: 30_000,
      systemDatabasePollingConcurrency: 10,
      observabilityQueryTimeoutMs: 30_000,
      logLevel: 'info',
      addContextMetadata: false,
      enableOTLP: false,
      tracingEnabled: false,
      warnsOfErrors: true,
      otlpTracesEndpoints: [],
      otlpLogsEndpoints: [],
      otelAttributeFormat: 'legacy',
      retention: undefined,
      archive: undefined,
      runAdminServer: false,
      adminPort: 3001,
      adminHost: '127.0.0.1',
      adminToken: undefined,
      adminReadOnlyToken: undefined,
      adminOpen: false,
      store: {
        url: 'sqlite:///app.sqlite',
        logger,
        allowAffectedSqlite: false,
        applicationName: 'everstep_app',
        schema: 'dbos',
        poolSize: undefined,
        pool: undefined,
        isTransactionPooler: undefined,
        silenceMs: 10_000,
        idleTransactionTimeoutMs: 60_000,
        runMigrations: true,
        useListenNotify: true,
        notificationCoalesceMs: 10,
      },
    });
  });

  test('is taken over field by field', () => {
    expect(resolveConfig(COMPLETE, {})).toEqual({
      name: 'shop',
      databaseReason: 'its URL is configured',
      applicationID: '',
      applicationVersion: 'v1',
      executorID: 'worker-1',
      isExecutorIDExplicit: true,
      leaseSeconds: 10,
      adopt: { gone: true },
      enablePatching: true,
      history: 'full',
      serializer: COMPLETE.serializer,
      lostValues: 'error',
      maxPayloadBytes: 1_000_000,
      listenQueues: ['mail', 'reports'],
      maxConcurrentQueueDispatches: 5,
      maxConcurrentWorkflows: 50,
      parkAfterMs: 60_000,
      schedulerPollingIntervalMs: 5_000,
      shutdownAfterIdleMs: 2_000,
      shutdownTimeoutMs: 12_000,
      callTimeoutMs: 5_000,
      systemDatabasePollingConcurrency: 2,
      observabilityQueryTimeoutMs: 2_500,
      logger: silentLogger,
      logLevel: 'debug',
      addContextMetadata: true,
      enableOTLP: true,
      tracingEnabled: false,
      warnsOfErrors: true,
      otlpTracesEndpoints: ['http://collector/v1/traces'],
      otlpLogsEndpoints: ['https://collector/v1/logs'],
      otelAttributeFormat: 'semconv',
      retention: COMPLETE.retention,
      archive: COMPLETE.archive,
      runAdminServer: true,
      adminPort: 0,
      adminHost: '0.0.0.0',
      adminToken: 'secret',
      adminReadOnlyToken: 'for looking',
      // A token is asked for where there is one.
      adminOpen: false,
      store: {
        url: POSTGRES_URL,
        logger: silentLogger,
        applicationName: 'everstep_shop',
        schema: 'durable',
        poolSize: 7,
        pool: 'none',
        isTransactionPooler: true,
        allowAffectedSqlite: true,
        poolTimeoutMs: 4_000,
        silenceMs: 3_000,
        idleTransactionTimeoutMs: 1_500,
        runMigrations: false,
        useListenNotify: false,
        notificationCoalesceMs: 25,
      },
    });
  });

  test('may set a field to undefined and gets its default', () => {
    const config = resolveConfig({ name: 'app', adminPort: undefined, systemDatabaseUrl: undefined }, {});

    expect(config.adminPort).toBe(3001);
    expect(config.store.url).toBe('sqlite:///app.sqlite');
  });

  test('is described field by field in the reference', () => {
    const page = readFileSync(
      fileURLToPath(new URL('../../../docs/reference/configuration.md', import.meta.url)),
      'utf8',
    );

    const missing = [...Object.keys(COMPLETE), 'systemDatabasePool'].filter(
      (field) => !page.includes(`| \`${field}\` `),
    );

    expect(missing).toEqual([]);
  });

  test('traces when it exports, unless it says otherwise', () => {
    expect(resolveConfig({ name: 'app', enableOTLP: true }, {}).tracingEnabled).toBe(true);
    expect(resolveConfig({ name: 'app', tracingEnabled: true }, {}).enableOTLP).toBe(false);
  });

  test('takes the token of the admin server from the environment', () => {
    const environment = { EVERSTEP_ADMIN_TOKEN: 'from outside' };

    expect(resolveConfig({ name: 'app', runAdminServer: true }, environment).adminToken).toBe('from outside');
    expect(resolveConfig({ name: 'app', adminToken: 'own' }, environment).adminToken).toBe('own');
    expect(resolveFile('name: app\nruntimeConfig: { admin_token: own }', environment).adminToken).toBe('from outside');
  });

  test('takes the read-only token of the admin server from the environment', () => {
    const environment = { EVERSTEP_ADMIN_READ_ONLY_TOKEN: 'from outside' };

    expect(resolveConfig({ name: 'app' }, environment).adminReadOnlyToken).toBe('from outside');
    expect(resolveConfig({ name: 'app', adminReadOnlyToken: 'own' }, environment).adminReadOnlyToken).toBe('own');
  });

  test('refuses a read-only token that allows changes', () => {
    const config = { name: 'app', adminToken: 'same', adminReadOnlyToken: 'same' };

    expect(() => resolveConfig(config, {})).toThrow(/adminReadOnlyToken must differ from adminToken/);
  });

  test('does not open an admin server that has a read-only token', () => {
    const given = { name: 'app', runAdminServer: true, adminOpen: true, adminReadOnlyToken: 'looking' };
    const config = resolveConfig({ ...given, logger: silentLogger }, {});

    expect(config).toMatchObject({ adminOpen: false, adminToken: expect.any(String) });
  });

  test.each([{}, { adminOpen: true }])('refuses an admin server that anybody could use: %j', (given) => {
    const config = { name: 'app', runAdminServer: true, adminHost: '0.0.0.0', ...given };

    expect(() => resolveConfig(config, {})).toThrow(/needs a token/);
  });

  test('makes and logs a token for an admin server on loopback that has none', () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };

    const { adminToken, adminOpen } = resolveConfig({ name: 'app', runAdminServer: true, logger }, {});

    expect(adminOpen).toBe(false);
    expect(adminToken).toMatch(/^[0-9a-f-]{36}$/);
    expect(warnings).toEqual([expect.stringContaining(adminToken ?? '-')]);
    expect(resolveConfig({ name: 'app' }, {}).adminToken).toBeUndefined();
  });

  test.each(['127.0.0.1', '::1', 'localhost'])('may open the admin server on %s', (adminHost) => {
    const config = resolveConfig({ name: 'app', runAdminServer: true, adminOpen: true, adminHost }, {});

    expect(config).toMatchObject({ adminOpen: true, adminToken: undefined });
  });

  test('listens to no queue at all if its list is empty', () => {
    expect(resolveConfig({ name: 'app', listenQueues: [] }, {}).listenQueues).toEqual([]);
  });

  test.each([0, -1])('turns limits and timeouts off with %d', (off) => {
    const config = resolveConfig(
      {
        name: 'app',
        systemDatabasePollingConcurrency: off,
        observabilityQueryTimeoutMs: off,
        systemDatabaseIdleTransactionTimeoutMs: off,
      },
      {},
    );

    expect(config.systemDatabasePollingConcurrency).toBe(Infinity);
    expect(config.observabilityQueryTimeoutMs).toBe(0);
    expect(config.store.idleTransactionTimeoutMs).toBe(0);
  });

  test('does not turn a timeout off by rounding it', () => {
    expect(resolveConfig({ name: 'app', observabilityQueryTimeoutMs: 0.4 }, {}).observabilityQueryTimeoutMs).toBe(1);
  });

  test.each([
    [1, 1],
    [5, 2],
  ])('with a pool of %d polls with %d reads at once', (systemDatabasePoolSize, expected) => {
    const config = resolveConfig({ name: 'app', systemDatabasePoolSize }, {});

    expect(config.systemDatabasePollingConcurrency).toBe(expected);
  });

  test('logs to the console from its level upwards', () => {
    const info = vi.spyOn(console, 'info').mockReturnValue();
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    onTestFinished(() => void vi.restoreAllMocks());
    const { logger } = resolveConfig({ name: 'app', logLevel: 'warn' }, {});

    logger.info('quiet');
    logger.warn('loud');

    expect(info).not.toHaveBeenCalled();
    expect(warn).toHaveBeenCalledOnce();
  });
});

describe('a wrong value', () => {
  test.each([
    ['name', 7, 'string'],
    ['systemDatabaseUrl', 7, 'string'],
    ['systemDatabasePoolSize', '20', 'number'],
    ['systemDatabasePool', 'pool', 'object'],
    ['systemDatabaseSchemaName', 7, 'string'],
    ['serializer', () => 'x', 'object'],
    ['logger', null, 'object'],
    ['logLevel', 3, 'string'],
    ['listenQueues', 'mail', 'array'],
    ['otlpTracesEndpoints', 'http://collector', 'array'],
    ['runMigrations', 'no', 'boolean'],
    ['enableOTLP', 1, 'boolean'],
    ['adminPort', null, 'number'],
  ])('of another type is refused: %s = %j', (field, value, expected) => {
    const error = thrownBy(() => resolveConfig(misconfigured(field, value), {}));

    expect(error).toBeInstanceOf(DBOSConfigKeyTypeError);
    expect(error.message).toContain(`"${field}" should be of type ${expected}`);
  });

  test.each([
    ['name', '', 'name must not be empty.'],
    ['name', ' ', 'name must not be empty.'],
    ['executorID', '', 'executorID must not be empty.'],
    ['applicationVersion', '', 'applicationVersion must not be empty.'],
    ['systemDatabaseUrl', '', 'systemDatabaseUrl must not be empty.'],
    ['systemDatabaseSchemaName', '', 'systemDatabaseSchemaName must not be empty.'],
    ['systemDatabasePoolSize', 0, 'systemDatabasePoolSize must be a positive integer, but is 0.'],
    ['systemDatabasePoolSize', 1.5, 'systemDatabasePoolSize must be a positive integer, but is 1.5.'],
    ['systemDatabasePoolSize', NaN, 'systemDatabasePoolSize must be a positive integer, but is NaN.'],
    ['systemDatabasePollingConcurrency', 0.5, 'systemDatabasePollingConcurrency must be an integer, but is 0.5.'],
    ['systemDatabasePollingConcurrency', Infinity, 'must be an integer, but is Infinity.'],
    ['maxConcurrentQueueDispatches', 0, 'maxConcurrentQueueDispatches must be a positive integer'],
    ['maxConcurrentQueueDispatches', -3, 'maxConcurrentQueueDispatches must be a positive integer'],
    ['maxConcurrentWorkflows', Infinity, 'maxConcurrentWorkflows must be a positive integer'],
    ['notificationCoalesceMs', 0, 'notificationCoalesceMs must be a number from 1 to 2147483647'],
    ['notificationCoalesceMs', Infinity, 'notificationCoalesceMs must be a number from 1 to 2147483647'],
    ['schedulerPollingIntervalMs', -1, 'schedulerPollingIntervalMs must be a number from 1 to 2147483647'],
    ['observabilityQueryTimeoutMs', NaN, 'observabilityQueryTimeoutMs must be a number of at most 2147483647'],
    ['observabilityQueryTimeoutMs', 2_147_483_648, 'at most 2147483647, but is 2147483648.'],
    ['systemDatabaseIdleTransactionTimeoutMs', -Infinity, 'must be a number of at most 2147483647'],
    ['leaseSeconds', 0, 'leaseSeconds must be a number from 1 to 86400, but is 0.'],
    ['leaseSeconds', 100_000, 'leaseSeconds must be a number from 1 to 86400, but is 100000.'],
    ['adminPort', -1, 'adminPort must be an integer from 0 to 65535, but is -1.'],
    ['adminPort', 65_536, 'adminPort must be an integer from 0 to 65535, but is 65536.'],
    ['logLevel', 'verbose', 'logLevel must be one of debug, info, warn, error.'],
    ['otelAttributeFormat', 'new', 'otelAttributeFormat must be one of legacy, semconv.'],
    ['listenQueues', ['mail', ''], 'listenQueues[1] must be a queue or its name.'],
    ['listenQueues', [null], 'listenQueues[0] must be a queue or its name.'],
    ['listenQueues', [{ name: 7 }], 'listenQueues[0] must be a queue or its name.'],
    ['otlpTracesEndpoints', ['localhost:4318'], 'otlpTracesEndpoints[0] must be an http:// or https:// URL.'],
    ['otlpLogsEndpoints', [7], 'otlpLogsEndpoints[0] must be an http:// or https:// URL, but is 7.'],
    ['systemDatabasePool', {}, 'systemDatabasePool must be an object with the methods connect, query.'],
    ['serializer', { name: () => 'x' }, 'serializer must be an object with the methods name, stringify, parse.'],
    ['logger', { info() {} }, 'logger must be an object with the methods debug, info, warn, error.'],
  ])('is refused: %s = %j', (field, value, message) => {
    const error = thrownBy(() => resolveConfig(misconfigured(field, value), {}));

    expect(error).toBeInstanceOf(DBOSInitializationError);
    expect(error.message).toContain(message);
  });

  test('of a schema that Postgres would shorten is refused', () => {
    expect(() => resolveConfig({ name: 'app', systemDatabaseSchemaName: 'x'.repeat(64) }, {})).toThrow(
      InvalidSchemaNameError,
    );
  });

  test('instead of a whole configuration is refused', () => {
    expect(() => resolveConfig('app' as DBOSConfig, {})).toThrow(DBOSConfigKeyTypeError);
    expect(() => resolveConfig(null as unknown as DBOSConfig, {})).toThrow(DBOSConfigKeyTypeError);
  });

  test('such as a missing name is refused with what to do', () => {
    expect(() => resolveConfig({ systemDatabaseUrl: POSTGRES_URL }, {})).toThrow(
      /^No application name was provided\. Set name in DBOS\.setConfig\(\)/,
    );
  });
});

describe('the URL of the system database', () => {
  test.each([
    ['my-app', 'sqlite:///my-app.sqlite'],
    ['My App 2.0', 'sqlite:///My App 2.0.sqlite'],
    ['@scope/app', 'sqlite:///_scope_app.sqlite'],
    ['what?', 'sqlite:///what_.sqlite'],
    [':memory:', 'sqlite:///_memory_.sqlite'],
  ])('of an application named "%s" is %s by default', (name, url) => {
    expect(resolveConfig({ name }, {}).store.url).toBe(url);
  });

  test.each<[NodeJS.ProcessEnv, string]>([
    [
      { PGHOST: 'db.example', PGUSER: 'us@er', PGPASSWORD: 's3/cret' },
      'postgresql://us%40er:s3%2Fcret@db.example:5432/my_app_dbos_sys',
    ],
    [{ PGPORT: '5433' }, 'postgresql://postgres@localhost:5433/my_app_dbos_sys'],
    [{ PGDATABASE: 'shop' }, 'postgresql://postgres@localhost:5432/my_app_dbos_sys'],
    [{ PGHOST: '/run/pg' }, 'postgresql://postgres@localhost:5432/my_app_dbos_sys?host=%2Frun%2Fpg'],
    [{ PGHOST: '::1' }, 'postgresql://postgres@[::1]:5432/my_app_dbos_sys'],
    [{ PGPASSWORD: 'x', PGHOST: ' ' }, 'sqlite:///My-App.sqlite'],
  ])('is on the server that %j names', (environment, url) => {
    expect(resolveConfig({ name: 'My-App' }, environment).store.url).toBe(url);
  });

  test.each([
    [POSTGRES_URL, 'postgresql://user:s3cret@db.example:5433/app_dbos_sys'],
    ['postgres://u@h/app?sslmode=require', 'postgres://u@h/app_dbos_sys?sslmode=require'],
    ['sqlite:///data/app.sqlite', 'sqlite:///data/app.sqlite'],
  ])('is derived from that of the application database: %s', (databaseUrl, expected) => {
    expect(resolveConfig({ name: 'app', databaseUrl }, {}).store.url).toBe(expected);
    expect(resolveConfig({ name: 'app', applicationDatabaseUrl: databaseUrl }, {}).store.url).toBe(expected);
    expect(resolveConfig({ name: 'app' }, { DBOS_DATABASE_URL: databaseUrl }).store.url).toBe(expected);
  });

  test.each<[string, DBOSConfig, NodeJS.ProcessEnv, string]>([
    [
      'the configuration comes first',
      { systemDatabaseUrl: 'sqlite:///a' },
      { DBOS_SYSTEM_DATABASE_URL: 'sqlite:///b' },
      'a',
    ],
    ['then the environment', {}, { DBOS_SYSTEM_DATABASE_URL: 'sqlite:///b', DBOS_DATABASE_URL: 'sqlite:///c' }, 'b'],
    [
      'an explicit one beats a derived one',
      { databaseUrl: 'sqlite:///c' },
      { DBOS_SYSTEM_DATABASE_URL: 'sqlite:///b' },
      'b',
    ],
    [
      'the application database of the configuration comes first',
      { databaseUrl: 'sqlite:///c' },
      { DBOS_DATABASE_URL: 'sqlite:///d' },
      'c',
    ],
    [
      'the newer name of a field comes first',
      { applicationDatabaseUrl: 'sqlite:///c', databaseUrl: 'sqlite:///d' },
      {},
      'c',
    ],
    ['an empty variable is as good as none', {}, { DBOS_SYSTEM_DATABASE_URL: ' ' }, 'app.sqlite'],
  ])('has an order: %s', (_, config, environment, expected) => {
    expect(resolveConfig({ name: 'app', ...config }, environment).store.url).toBe(`sqlite:///${expected}`);
  });

  test.each([
    'mysql://user:s3cret@host/db',
    'user:s3cret@host/db',
    'postgresql://user:my s3cret@host:99999/db',
    'postgresql://user:s3cret@host',
    'postgresql://:s3cret@host/db',
    `postgresql://user:s3cret@host/${'x'.repeat(64)}`,
    'app.sqlite',
  ])('is checked at once, and the error does not tell a password: %s', (url) => {
    const error = thrownBy(() => resolveConfig({ name: 'app', systemDatabaseUrl: url }, {}));
    const derived = thrownBy(() => resolveConfig({ name: 'app', databaseUrl: url }, {}));

    expect(error).toBeInstanceOf(InvalidDatabaseURLError);
    expect(derived).toBeInstanceOf(InvalidDatabaseURLError);
    expect(error.message + derived.message).toMatch(/^Invalid database URL: (?!.*s3cret)/);
  });

  test('is refused if the derived name would be too long, and accepted if it just fits', () => {
    const fitting = `postgresql://user@host/${'%C3%A4'.repeat(27)}`;

    expect(resolveConfig({ name: 'app', databaseUrl: fitting }, {}).store.url).toMatch(/_dbos_sys$/);
    expect(() => resolveConfig({ name: 'app', databaseUrl: `${fitting}a` }, {})).toThrow(
      /system database has 64 bytes/,
    );
  });
});

describe('a pool of the caller', () => {
  test('is handed on, and its size limits polling', () => {
    const systemDatabasePool = new pg.Pool({ max: 6 });

    const config = resolveConfig({ name: 'app', systemDatabaseUrl: POSTGRES_URL, systemDatabasePool }, {});

    expect(config.store.pool).toBe(systemDatabasePool);
    expect(config.systemDatabasePollingConcurrency).toBe(3);
  });

  test('is refused without a Postgres URL, and together with a connection for each operation', () => {
    const systemDatabasePool = new pg.Pool();
    const systemDatabaseUrl = POSTGRES_URL;

    expect(() => resolveConfig({ name: 'app', systemDatabasePool }, {})).toThrow(/needs the Postgres URL/);
    expect(() =>
      resolveConfig({ name: 'app', systemDatabaseUrl, systemDatabasePool, connectionPerOperation: true }, {}),
    ).toThrow(/exclude each other/);
  });
});

describe('the identity of a process', () => {
  test('comes from the environment when the configuration has none', () => {
    const config = resolveConfig({ name: 'app' }, { DBOS__VMID: 'vm-7', DBOS__APPID: 'id-7', DBOS__APPVERSION: 'v7' });

    expect(config).toMatchObject({ executorID: 'vm-7', isExecutorIDExplicit: true });
    expect(config).toMatchObject({ applicationID: 'id-7', applicationVersion: 'v7' });
  });

  test('is looked for in the environment of the process', () => {
    vi.stubEnv('DBOS__VMID', 'vm-8');
    onTestFinished(() => void vi.unstubAllEnvs());

    expect(resolveConfig({ name: 'app' }).executorID).toBe('vm-8');
  });

  test('comes from the configuration first', () => {
    const config = resolveConfig(
      { name: 'app', executorID: 'own', applicationVersion: 'v1' },
      { DBOS__VMID: 'vm-7', DBOS__APPVERSION: 'v7' },
    );

    expect(config).toMatchObject({ executorID: 'own', isExecutorIDExplicit: true, applicationVersion: 'v1' });
  });

  test('is not explicit when a variable is empty', () => {
    const config = resolveConfig({ name: 'app' }, { DBOS__VMID: '', DBOS__APPVERSION: '' });

    expect(config).toMatchObject({ executorID: 'local', isExecutorIDExplicit: false, applicationVersion: undefined });
  });

  test('has one version for all code when patching is enabled, unless a version is given', () => {
    const version = (config: DBOSConfig, environment: NodeJS.ProcessEnv = {}): string | undefined =>
      resolveConfig({ name: 'app', enablePatching: true, ...config }, environment).applicationVersion;

    expect(version({})).toBe('PATCHING_ENABLED');
    expect(version({ applicationVersion: 'v1' })).toBe('v1');
    expect(version({}, { DBOS__APPVERSION: 'v7' })).toBe('v7');
  });
});

describe('dbos-config.yaml', () => {
  test('is used when no configuration is given', () => {
    const config = resolveFile(
      `
name: shop
language: node
system_database_url: postgresql://user:\${PASSWORD}@host/shop_dbos_sys
system_database_schema_name: durable
use_listen_notify: false
database:
  migrate: [npm run migrate]
  sys_db_pool_size: 30
telemetry:
  logs: { logLevel: error, addContextMetadata: true, silent: true }
  OTLPExporter:
    logsEndpoint: http://collector/v1/logs
    tracesEndpoint: [http://collector/v1/traces, http://other/v1/traces]
runtimeConfig:
  start: [node dist/main.js]
  admin_port: \${PORT}
  runAdminServer: true
  admin_host: 0.0.0.0
  admin_token: s3cret
  admin_read_only_token: looking
  admin_open: false
env: { UNUSED: '1' }
`,
      { PASSWORD: 'pass', PORT: '4000' },
    );

    expect(config).toMatchObject({
      name: 'shop',
      logger: silentLogger,
      logLevel: 'error',
      addContextMetadata: true,
      enableOTLP: true,
      otlpLogsEndpoints: ['http://collector/v1/logs'],
      otlpTracesEndpoints: ['http://collector/v1/traces', 'http://other/v1/traces'],
      adminPort: 4000,
      runAdminServer: true,
      adminHost: '0.0.0.0',
      adminToken: 's3cret',
      adminReadOnlyToken: 'looking',
      adminOpen: false,
      store: {
        url: 'postgresql://user:pass@host/shop_dbos_sys',
        schema: 'durable',
        poolSize: 30,
        useListenNotify: false,
      },
    });
  });

  test('may use the names of other languages', () => {
    const { store } = resolveFile(`
name: shop
dbos_system_schema: durable
database_url: postgresql://user@host/shop
database: { db_engine_kwargs: { poolclass: NullPool, pool_timeout: 60 } }
telemetry: { logs: { silent: false } }
`);

    expect(store).toMatchObject({ schema: 'durable', url: 'postgresql://user@host/shop_dbos_sys', pool: 'none' });
    expect(store.poolTimeoutMs).toBe(60_000);
    expect(store.logger).not.toBe(silentLogger);
  });

  test('is not read when a configuration is given', () => {
    const folder = folderWith({ 'dbos-config.yaml': 'name: shop\nsystem_database_schema_name: durable' });

    expect(resolveConfig({ name: 'app' }, {}, { folder: folder, parseYaml }).store.schema).toBe('dbos');
  });

  test('gives way to the environment', () => {
    const lines = 'name: shop\nsystem_database_url: sqlite:///file.sqlite\ndatabase_url: sqlite:///derived.sqlite';

    expect(resolveFile(lines, { DBOS_SYSTEM_DATABASE_URL: 'sqlite:///b.sqlite' }).store.url).toBe('sqlite:///b.sqlite');
    expect(resolveFile(lines, { DBOS_DATABASE_URL: 'sqlite:///c.sqlite' }).store.url).toBe('sqlite:///file.sqlite');
    expect(resolveFile(lines).store.url).toBe('sqlite:///file.sqlite');
  });

  test.each([
    'secret\nadminToken: injected',
    'x\nruntimeConfig:\n  admin_open: true\n#',
    '"quoted" and \'single\'',
    '{ a: b }',
    '*alias',
    '# comment',
    'a: b',
    '- item',
    '!!js/function x',
    '${OTHER}',
  ])('takes a variable for a value, whatever it holds: %j', (password) => {
    for (const value of ['${PASSWORD}', '"${PASSWORD}"', "'${PASSWORD}'"]) {
      const config = resolveFile(
        `name: shop\nruntimeConfig: { admin_token: ${value}, runAdminServer: true, admin_port: \${PORT} }`,
        { PASSWORD: password, PORT: '4000', OTHER: 'other' },
      );

      expect(config).toMatchObject({ adminToken: password, adminOpen: false, adminPort: 4000 });
    }
  });

  test.each(['${URL}', '"${URL}"', "'${URL}'", '""', ''])(
    'with a value that is empty or not set gets the default: %s',
    (value) => {
      const config = resolveFile(
        `name: shop\nsystem_database_url: ${value}\ntelemetry: { OTLPExporter: { tracesEndpoint: ["\${URL}"] } }`,
      );

      expect(config.store.url).toBe('sqlite:///shop.sqlite');
      expect(config).toMatchObject({ otlpTracesEndpoints: [], enableOTLP: false });
    },
  );

  test.each(['', 'telemetry:\nruntimeConfig: {}', 'name: ""'])(
    'without a name takes that of package.json: %j',
    (lines) => {
      const folder = folderWith({ 'dbos-config.yaml': lines, 'package.json': '{"name":"@scope/packaged"}' });

      expect(resolveConfig(undefined, {}, { folder: folder, parseYaml }).name).toBe('@scope/packaged');
    },
  );

  test.each<[string, Record<string, string>]>([
    ['is missing', {}],
    ['has no name', { 'package.json': '{}' }],
    ['is empty', { 'package.json': 'null' }],
  ])('without a name is refused when package.json %s', (_, files) => {
    const folder = folderWith({ 'dbos-config.yaml': 'language: node', ...files });

    expect(() => resolveConfig(undefined, {}, { folder: folder, parseYaml })).toThrow(
      /^No application name was provided/,
    );
  });

  test('is asked for when there is neither it nor a configuration', () => {
    const folder = folderWith({ 'package.json': '{"name":"packaged"}' });

    const error = thrownBy(() => resolveConfig(undefined, {}, { folder: folder, parseYaml }));

    expect(error).toBeInstanceOf(DBOSInitializationError);
    expect(error.message).toMatch(/^No DBOS configuration was provided\. Call DBOS\.setConfig/);
    expect(error.message).toContain(folder);
  });

  test('is looked for in the current directory', () => {
    const folder = folderWith({ 'dbos-config.yaml': 'name: here' });
    vi.spyOn(process, 'cwd').mockReturnValue(folder);
    onTestFinished(() => void vi.restoreAllMocks());

    expect(resolveConfig(undefined, {}, { parseYaml }).name).toBe('here');
  });

  test.each([
    ['a: b: s3cret', /error in line 1 \(BLOCK_AS_IMPLICIT_KEY\)/],
    ['name: x\nname: s3cret', /error in line 2 \(DUPLICATE_KEY\)/],
    ['url: "s3cret""', /error in line 1/],
    ['url: *s3cret', /alias/],
    ['- s3cret', /not a mapping/],
    ['s3cret', /not a mapping/],
    ['name: x\nlanguage: s3cret', /another language/],
    ['name: x\ntelemetry: s3cret', /"dbos-config.yaml: telemetry" should be of type mapping, but is string/],
    ['name: x\ntelemetry: { logs: { silent: s3cret } }', /"dbos-config.yaml: telemetry.logs.silent" .* boolean/],
    ['name: x\nruntimeConfig: { admin_port: s3cret }', /"dbos-config.yaml: runtimeConfig.admin_port" .* number/],
    ['name: x\ndatabase: { sys_db_pool_size: -1 }', /dbos-config.yaml: database.sys_db_pool_size must be .* -1/],
    ['name: x\nsystem_database_url: s3cret', /Invalid database URL/],
  ])('is refused without quoting from it: %j', (lines, message) => {
    const error = thrownBy(() => resolveFile(lines));

    expect(error.message).toMatch(message);
    expect(`${error.message} ${String(error.cause)}`).not.toContain('s3cret');
  });

  test('is refused when it cannot be read, and so is a broken package.json', () => {
    const unreadable = folderWith({});
    mkdirSync(join(unreadable, 'dbos-config.yaml'));
    const broken = folderWith({ 'dbos-config.yaml': '', 'package.json': '{' });

    expect(() => resolveConfig(undefined, {}, { folder: unreadable, parseYaml })).toThrow(
      /Cannot read .*dbos-config\.yaml/,
    );
    expect(() => resolveConfig(undefined, {}, { folder: broken, parseYaml })).toThrow(
      /package\.json is not valid JSON/,
    );
  });
});

describe('the computed application version', () => {
  const SOURCES = ['async function a() {}', 'async function b() {}'];

  test('is the MD5 of the sorted sources, the version of the library and the name of the application', () => {
    // printf '%s' 'async function a() {}async function b() {}1.2.3shop' | md5sum
    expect(computeApplicationVersion(SOURCES, 'shop', '1.2.3')).toBe('866d0c5f81906ce13a1ad8f55ba70f79');
  });

  test('does not depend on the order of registration, and leaves the list as it is', () => {
    const reversed = SOURCES.toReversed();

    expect(computeApplicationVersion(reversed, 'shop', '1')).toBe(computeApplicationVersion(SOURCES, 'shop', '1'));
    expect(reversed).toEqual(SOURCES.toReversed());
  });

  test('changes with a source, the name and the library', () => {
    const versions = [
      computeApplicationVersion(SOURCES, 'shop', '1'),
      computeApplicationVersion([...SOURCES, 'async () => {}'], 'shop', '1'),
      computeApplicationVersion(SOURCES, 'store', '1'),
      computeApplicationVersion(SOURCES, 'shop', '2'),
      computeApplicationVersion([], 'shop', '1'),
    ];

    expect(new Set(versions).size).toBe(versions.length);
  });

  test.each(['', ' ', String(Math.max), String(SOURCES.map.bind(SOURCES))])(
    'is unknown when a source is not to be had: %j',
    (source) => {
      expect(computeApplicationVersion([...SOURCES, source], 'shop', '1')).toBeUndefined();
    },
  );

  test('is known when a workflow only speaks of native code', () => {
    expect(computeApplicationVersion(["async () => '{ [native code] }'"], 'shop', '1')).toBeDefined();
  });
});

test('the reason for the choice of the system database is told', () => {
  const reason = (config: Partial<DBOSConfig>, environment: NodeJS.ProcessEnv): string =>
    resolveConfig({ name: 'app', ...config }, environment).databaseReason;

  expect(reason({}, {})).toBe('no URL is set');
  expect(reason({}, { PGHOST: 'db', PGUSER: 'u' })).toBe('no URL is set, but PGHOST, PGUSER');
  expect(reason({ databaseUrl: POSTGRES_URL }, { PGHOST: 'db' })).toBe('derived from the application database');
  expect(reason({ systemDatabaseUrl: 'sqlite:///x' }, { PGHOST: 'db' })).toBe('its URL is configured');
});
