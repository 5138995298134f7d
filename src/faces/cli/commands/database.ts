// Commands that create, migrate, print and drop the system tables, and run configured shell commands.
import { locateDatabase } from '../../../kernel/base/url.js';
import type { Database } from '../../../database/database.js';
import { type ExecutorRecord, listExecutors } from '../../../features/liveness/executors.sql.js';
import { grantAccess, migrate } from '../../../database/migrations/migrate.js';
import { printGrants, printMigrations } from '../../../database/migrations/print.js';
import { dropSystemTables } from '../../../database/migrations/reset.js';
import { databaseSource, readVersions, type Versions } from '../../../database/migrations/versions.js';
import { isAffectedAllowed } from '../../../database/sqlite/wal-reset-bug.js';
import { openDatabase } from '../../../run/writer/store.js';
import { command, confirm, JSON_FLAG, type Output, progressOn, type CommandContext, YES_FLAG } from '../command.js';
import { DATABASE, type DatabaseTarget, findDatabase, loggerOf, refuseMissingFile } from '../connection.js';
import { CommandFailure, wrongUsage } from '../failure.js';
import { flag, text } from '../option.js';
import { configuredCommands, runInShell } from '../shell.js';
import { counted } from '../table.js';
import { adopt, ADOPT_OPTIONS, adoptionText, checkAdoptOptions } from '../../../features/version/adopt.cli.js';

const DEFAULT_SCHEMA = 'dbos';
const APP_ROLE = text('Grant this role the rights an application needs (Postgres)', {
  short: 'r',
  placeholder: 'ROLE',
});

/** Opens the database without checking its version. `isCreating` creates a missing one. */
export async function withDatabase<T>(
  context: CommandContext,
  { url, schema, isCreating = false }: DatabaseTarget & { readonly isCreating?: boolean },
  body: (database: Database) => Promise<T>,
): Promise<T> {
  const { clock } = context;
  const options = {
    url,
    schema,
    clock,
    logger: loggerOf(context),
    runMigrations: isCreating,
    allowAffectedSqlite: isAffectedAllowed(context.environment),
    readsBesideOthers: true,
    applicationName: 'everstep_cli',
  };
  const { database } = await openDatabase(options);
  try {
    return await body(database);
  } finally {
    await database.close();
  }
}

export function readTableVersions(database: Database, { schema = DEFAULT_SCHEMA }: DatabaseTarget): Promise<Versions> {
  return readVersions(databaseSource(database, schema));
}

async function migrateAt(
  context: CommandContext,
  target: DatabaseTarget,
  appRole: string | undefined,
): Promise<Output & { readonly json: object }> {
  if (appRole !== undefined && locateDatabase(target.url)?.kind === 'sqlite') {
    throw wrongUsage('SQLite has no roles. Leave out --app-role.');
  }
  const { from, to } = await withDatabase(context, { ...target, isCreating: true }, async (database) => {
    const before = await readTableVersions(database, target);
    const progress = progressOn(context);
    try {
      await migrate(database, {
        schema: target.schema,
        logger: loggerOf(context),
        clock: context.clock,
        onProgress: (share) => progress.show(`${share.done} of ${share.total} migrations applied`, share),
      });
    } finally {
      progress.done();
    }
    if (appRole !== undefined) await grantAccess(database, { schema: target.schema, role: appRole });
    return { from: before, to: await readTableVersions(database, target) };
  });
  const isMigrated = from.some((version, index) => version !== to[index]);
  return {
    json: { database: target.shown, isMigrated, from: toJSON(from), to: toJSON(to) },
    text: () =>
      isMigrated
        ? `Migrated system database ${target.shown} from version ${from[0]} to ${to[0]}.`
        : `System database ${target.shown} is at version ${to[0]}; nothing to do.`,
  };
}

function toJSON([shared, everstep]: Versions): Readonly<Record<string, number>> {
  return { shared, everstep };
}

const migrateCommand = command({
  name: 'migrate',
  about: 'Create the system database, or migrate it to this release',
  details:
    'Runs the commands under database.migrate in dbos-config.yaml first. Does nothing to a current database, so you can ' +
    'run it on every deploy. With --adopt it also shows which workflows DBOS has left running, or waiting for versions ' +
    'that no executor has, and takes them over if you declare with --gone that its processes have ended.',
  options: { appRole: APP_ROLE, ...ADOPT_OPTIONS, ...DATABASE, ...JSON_FLAG },
  examples: [
    ['everstep migrate', 'use DBOS_SYSTEM_DATABASE_URL or dbos-config.yaml'],
    ['everstep migrate -s sqlite:///shop.sqlite', 'a SQLite file'],
    [
      'everstep migrate -s postgresql://owner@db/shop --app-role shop',
      'migrate as the owner, for an application with fewer rights',
    ],
    ['everstep migrate --adopt', 'show what DBOS has left in flight, by executor and version'],
    ['everstep migrate --adopt --gone', 'its processes have ended: take everything over'],
    ['everstep migrate --release --to-version 1f3a --gone', 'the way back: leave everything to DBOS'],
  ],
  async run(context, { options }) {
    checkAdoptOptions(options);
    const target = findDatabase(context, options);
    for (const line of configuredCommands(context, 'database.migrate')) {
      context.terminal.printStderr(`$ ${line}\n`);
      const code = await runInShell(context, line);
      context.signal.throwIfAborted();
      if (code !== 0) throw new CommandFailure(`"${line}" ended with exit code ${code}. Nothing was migrated.`);
    }
    const migrated = await migrateAt(context, target, options.appRole);
    if (!options.adopt && !options.release) return migrated;
    const adoption = await adopt(context, options);
    return {
      json: { ...migrated.json, adoption },
      text: (rendering) => `${migrated.text(rendering)}\n${adoptionText(rendering, adoption)}`,
    };
  },
});

const schemaCommand = command({
  name: 'schema',
  about: 'Create or migrate the system tables, or print the SQL to do so',
  details: 'Printing needs no connection. The SQL is for Postgres unless the URL is a SQLite URL.',
  parameter: { name: 'URL', takes: 'optional', about: 'System database; defaults as for other commands' },
  options: {
    printMigrations: text('Print the SQL of all migrations, or of those from number N', { placeholder: 'all|N' }),
    printUserRole: flag('Print the SQL that grants the role its rights'),
    appRole: APP_ROLE,
    schema: text('Schema of the system tables', { short: 's', placeholder: 'NAME' }),
    sysDbUrl: text('Same as the argument', { placeholder: 'URL' }),
    ...JSON_FLAG,
  },
  examples: [
    ['everstep schema postgresql://owner@db/shop -s dbos -r shop', 'migrate and grant a role its rights'],
    ['everstep schema --print-migrations all | psql --set ON_ERROR_STOP=1 shop', 'migrate by hand'],
    ['everstep schema --print-migrations 120', 'only what is new since version 119'],
    ['everstep schema --print-user-role -r shop', 'only the grants'],
  ],
  async run(context, { options, args }) {
    const { schema, appRole, printUserRole, printMigrations: from } = options;
    const sysDbUrl = args[0] ?? options.sysDbUrl;
    if (from === undefined && !printUserRole) {
      return migrateAt(context, findDatabase(context, { sysDbUrl, schema }), appRole);
    }
    if (printUserRole && appRole === undefined) throw wrongUsage('--print-user-role needs --app-role ROLE.');
    const dialect = sysDbUrl !== undefined && locateDatabase(sysDbUrl)?.kind === 'sqlite' ? 'sqlite' : 'postgres';
    const role = printUserRole ? appRole : undefined;
    const sql =
      from === undefined
        ? printGrants({ schema, role: role ?? '' })
        : printMigrations({ dialect, schema, from: firstNumber(from), role });
    return { json: { dialect, sql }, text: () => sql };
  },
});

function firstNumber(written: string): number {
  if (written.toLowerCase() === 'all') return 1;
  if (/^[1-9]\d*$/.test(written)) return Number(written);
  throw wrongUsage(`--print-migrations must be "all" or the number of a migration, but is "${written}".`);
}

const resetCommand = command({
  name: 'reset',
  about: 'Drop the system tables and all workflows in them',
  details: 'Application tables stay. Refused while executors use the database, unless you pass --force.',
  options: { force: flag('Reset even while executors use the database'), ...YES_FLAG, ...DATABASE, ...JSON_FLAG },
  examples: [
    ['everstep reset', 'asks first'],
    ['everstep reset --yes && everstep migrate', 'start from scratch'],
  ],
  async run(context, { options }) {
    const target = findDatabase(context, options);
    refuseMissingFile(target);
    return withDatabase(context, target, async (database) => {
      const [shared, everstep] = await readTableVersions(database, target);
      if (shared === 0 && everstep === 0) return answer(target, false);
      if (everstep > 0 && !options.force) refuseIfInUse(await listExecutors(database));
      await confirm(context, `Drop all system tables and workflows in ${target.shown}?`, options.yes);
      await dropSystemTables(database, { schema: target.schema });
      return answer(target, true);
    });
  },
});

function refuseIfInUse(executors: readonly ExecutorRecord[]): void {
  const live = executors.filter(({ isLeaseOver }) => !isLeaseOver);
  if (live.length === 0) return;
  const names = live.map(({ executorID, host, pid }) => `${executorID} (process ${pid} on ${host})`).join(', ');
  throw new CommandFailure(
    `${counted(live.length, 'executor')} may still use the database: ${names}. Stop them first, or give --force.`,
  );
}

function answer(target: DatabaseTarget, isReset: boolean): Output {
  return {
    json: { database: target.shown, isReset },
    text: () =>
      isReset
        ? `Dropped the system tables of ${target.shown}. Create them again: everstep migrate`
        : `No system tables in ${target.shown}; nothing to do.`,
  };
}

const startCommand = command({
  name: 'start',
  about: 'Run the commands under runtimeConfig.start in dbos-config.yaml',
  details: 'Runs them in order and stops at the first that fails. Forwards SIGTERM and SIGINT.',
  options: {},
  examples: [['everstep start', 'the entry point of a container']],
  async run(context) {
    const lines = configuredCommands(context, 'runtimeConfig.start');
    if (lines.length === 0) {
      throw new CommandFailure(
        'There is nothing to start: put commands under runtimeConfig.start of dbos-config.yaml.',
      );
    }
    for (const line of lines) {
      const exitCode = await runInShell(context, line);
      if (exitCode !== 0 || context.signal.aborted) return { json: null, text: () => '', exitCode };
    }
    return undefined;
  },
});

export const DATABASE_COMMANDS = [migrateCommand, schemaCommand, resetCommand, startCommand];
