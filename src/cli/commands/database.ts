// Commands that create, migrate, print and drop the system tables.
import { locateDatabase } from '../../base/url.js';
import type { Database } from '../../store/database.js';
import { type ExecutorRecord, listExecutors } from '../../store/liveness/executors.js';
import { grantAccess, migrate } from '../../store/migrations/migrate.js';
import { printGrants, printMigrations } from '../../store/migrations/print.js';
import { dropSystemTables } from '../../store/migrations/reset.js';
import { databaseSource, readVersions, type Versions } from '../../store/migrations/versions.js';
import { openDatabase } from '../../store/store.js';
import { command, confirm, JSON_FLAG, type Output, type Scene, YES_FLAG } from '../command.js';
import { DATABASE, type DatabaseTarget, findDatabase, loggerOf, refuseMissingFile } from '../connection.js';
import { CommandFailure, wrongUsage } from '../failure.js';
import { flag, text } from '../option.js';
import { configuredCommands, runInShell } from '../shell.js';
import { counted } from '../table.js';

const DEFAULT_SCHEMA = 'dbos';
const APP_ROLE = text('Give this role what an application needs, on Postgres', { short: 'r', placeholder: 'ROLE' });

/** Opens the database without a look at its version. With `isCreating` a missing one is created. */
export async function withDatabase<T>(
  scene: Scene,
  { url, schema, isCreating = false }: DatabaseTarget & { readonly isCreating?: boolean },
  body: (database: Database) => Promise<T>,
): Promise<T> {
  const { clock } = scene;
  const options = {
    url,
    schema,
    clock,
    logger: loggerOf(scene),
    runMigrations: isCreating,
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

async function migrateAt(scene: Scene, target: DatabaseTarget, appRole: string | undefined): Promise<Output> {
  if (appRole !== undefined && locateDatabase(target.url)?.kind === 'sqlite') {
    throw wrongUsage('SQLite has no roles. Leave out --app-role.');
  }
  const { from, to } = await withDatabase(scene, { ...target, isCreating: true }, async (database) => {
    const before = await readTableVersions(database, target);
    await migrate(database, { schema: target.schema, logger: loggerOf(scene), clock: scene.clock });
    if (appRole !== undefined) await grantAccess(database, { schema: target.schema, role: appRole });
    return { from: before, to: await readTableVersions(database, target) };
  });
  const isMigrated = from.some((version, index) => version !== to[index]);
  return {
    json: { database: target.shown, isMigrated, from: toJSON(from), to: toJSON(to) },
    text: () =>
      isMigrated
        ? `The system database ${target.shown} was migrated from version ${from[0]} to ${to[0]}.`
        : `The system database ${target.shown} is at version ${to[0]}: nothing to do.`,
  };
}

function toJSON([shared, everstep]: Versions): Readonly<Record<string, number>> {
  return { shared, everstep };
}

const migrateCommand = command({
  name: 'migrate',
  about: 'Create the system database, or bring it to the version of this release',
  details:
    'Commands under database.migrate of dbos-config.yaml are run first. A database that is current is left alone, so ' +
    'it can be run at every deploy.',
  options: { appRole: APP_ROLE, ...DATABASE, ...JSON_FLAG },
  examples: [
    ['everstep migrate', 'with the database of dbos-config.yaml or DBOS_SYSTEM_DATABASE_URL'],
    ['everstep migrate -s sqlite:///shop.sqlite', 'a file'],
    [
      'everstep migrate -s postgresql://owner@db/shop --app-role shop',
      'as the owner, for an application with fewer rights',
    ],
  ],
  async run(scene, { options }) {
    const target = findDatabase(scene, options);
    for (const line of configuredCommands(scene, 'database.migrate')) {
      scene.terminal.tell(`$ ${line}\n`);
      const code = await runInShell(scene, line);
      scene.signal.throwIfAborted();
      if (code !== 0) throw new CommandFailure(`"${line}" ended with exit code ${code}. Nothing was migrated.`);
    }
    return migrateAt(scene, target, options.appRole);
  },
});

const schemaCommand = command({
  name: 'schema',
  about: 'Create or migrate the system tables, or print the SQL that does',
  details: 'To print nothing is connected to. The SQL is for Postgres unless the URL is one of SQLite.',
  parameter: { name: 'URL', takes: 'optional', about: 'The system database; else as for other commands' },
  options: {
    printMigrations: text('Print the SQL of all migrations, or from a number on', { placeholder: 'all|N' }),
    printUserRole: flag('Print the SQL that gives the role its rights'),
    appRole: APP_ROLE,
    schema: text('The schema of the system tables', { short: 's', placeholder: 'NAME' }),
    sysDbUrl: text('The same as the argument', { placeholder: 'URL' }),
    ...JSON_FLAG,
  },
  examples: [
    ['everstep schema postgresql://owner@db/shop -s dbos -r shop', 'migrate, and give a role its rights'],
    ['everstep schema --print-migrations all | psql --set ON_ERROR_STOP=1 shop', 'run them by hand'],
    ['everstep schema --print-migrations 120', 'what is new since version 119'],
    ['everstep schema --print-user-role -r shop', 'only the rights'],
  ],
  async run(scene, { options, args }) {
    const { schema, appRole, printUserRole, printMigrations: from } = options;
    const sysDbUrl = args[0] ?? options.sysDbUrl;
    if (from === undefined && !printUserRole) {
      return migrateAt(scene, findDatabase(scene, { sysDbUrl, schema }), appRole);
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
  about: 'Drop the system tables with all workflows in them',
  details: 'Tables of the application stay. Refused while processes use the database, unless forced.',
  options: { force: flag('Also while processes use the database'), ...YES_FLAG, ...DATABASE, ...JSON_FLAG },
  examples: [
    ['everstep reset', 'asks before it does anything'],
    ['everstep reset --yes && everstep migrate', 'start afresh'],
  ],
  async run(scene, { options }) {
    const target = findDatabase(scene, options);
    refuseMissingFile(target);
    return withDatabase(scene, target, async (database) => {
      const [shared, everstep] = await readTableVersions(database, target);
      if (shared === 0 && everstep === 0) return answer(target, false);
      if (everstep > 0 && !options.force) refuseUsed(await listExecutors(database));
      await confirm(scene, `Drop all system tables and workflows in ${target.shown}?`, options.yes);
      await dropSystemTables(database, { schema: target.schema });
      return answer(target, true);
    });
  },
});

function refuseUsed(executors: readonly ExecutorRecord[]): void {
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
        ? `The system tables of ${target.shown} are gone. Create them anew: everstep migrate`
        : `There are no system tables in ${target.shown}: nothing to do.`,
  };
}

const startCommand = command({
  name: 'start',
  about: 'Run the commands under runtimeConfig.start of dbos-config.yaml',
  details: 'One after the other, until one fails. SIGTERM and SIGINT are passed on to it.',
  options: {},
  examples: [['everstep start', 'what a container runs']],
  async run(scene) {
    const lines = configuredCommands(scene, 'runtimeConfig.start');
    if (lines.length === 0) {
      throw new CommandFailure(
        'There is nothing to start: put commands under runtimeConfig.start of dbos-config.yaml.',
      );
    }
    for (const line of lines) {
      const exitCode = await runInShell(scene, line);
      if (exitCode !== 0 || scene.signal.aborted) return { json: null, text: () => '', exitCode };
    }
    return undefined;
  },
});

export const DATABASE_COMMANDS = [migrateCommand, schemaCommand, resetCommand, startCommand];
