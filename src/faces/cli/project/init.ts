// The command that creates a project. It asks for what is missing if a person can answer.
import { resolve } from 'node:path';
import { command, type CommandContext, JSON_FLAG } from '../command.js';
import { wrongUsage } from '../failure.js';
import { choice } from '../option.js';
import { sanitize } from '../render-context.js';
import { DATABASES, generateProject, TEMPLATES } from './generate.js';
import { nodeSqlite } from '../../../database/sqlite/sqlite-handle.js';
import { hasWalResetBug } from '../../../database/sqlite/wal-reset-bug.js';

const POSTGRES_NOTE =
  '\nThe URLs of the Postgres server are in src/database.ts; DBOS_SYSTEM_DATABASE_URL and TEST_DATABASE_URL override them.\n';

/** As a shell takes it for one word. */
function quoted(path: string): string {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

async function choose<T extends string>(context: CommandContext, what: string, choices: readonly T[]): Promise<T> {
  const [first] = choices as readonly [T];
  if (!context.terminal.isInteractive) return first;
  const answer = await context.terminal.ask(`${what} (${choices.join(', ')}) [${first}]: `, context.signal);
  context.signal.throwIfAborted();
  if (answer === '') return first;
  const chosen = choices.find((name) => name === answer.toLowerCase());
  if (chosen === undefined) throw wrongUsage(`"${sanitize(answer)}" is none of ${choices.join(', ')}.`);
  return chosen;
}

const initCommand = command({
  name: 'init',
  about: 'Create a project',
  details:
    'Writes a typed project with a workflow and tests, and installs nothing. Asks for the template and the database on a ' +
    'terminal; otherwise they default to script and sqlite. The folder must be new or empty.',
  parameter: { name: 'FOLDER', takes: 'optional', about: 'Where to write it; defaults to the current directory' },
  options: {
    template: choice(`What the project is: ${TEMPLATES.join(', ')}`, TEMPLATES, { short: 't', placeholder: 'NAME' }),
    database: choice(`Where workflows are stored: ${DATABASES.join(', ')}`, DATABASES, {
      short: 'd',
      placeholder: 'NAME',
    }),
    ...JSON_FLAG,
  },
  examples: [
    ['everstep init my-app', 'asks for the rest'],
    ['everstep init shop --template hono --database postgres', 'a server with Hono, on Postgres'],
  ],
  async run(context, { options, args: [given = '.'] }) {
    const template = options.template ?? (await choose(context, 'Template', TEMPLATES));
    const database = options.database ?? (await choose(context, 'Database', DATABASES));
    const folder = resolve(context.folder, given);
    const builtIn = nodeSqlite();
    const needsSqliteLibrary = builtIn === undefined || hasWalResetBug(builtIn.version);
    const files = generateProject({ folder, template, database, needsSqliteLibrary });
    const isHere = folder === resolve(context.folder);
    const next = [...(isHere ? [] : [`cd ${quoted(given)}`]), 'npm install', 'npm test', 'npm run dev'];
    return {
      json: { folder, template, database, files, next },
      text: () =>
        `Created a project in ${sanitize(folder)} (${template}, ${database}). Next:\n\n` +
        `${next.map((line) => `  ${sanitize(line)}`).join('\n')}\n${database === 'postgres' ? POSTGRES_NOTE : ''}`,
    };
  },
});

export const PROJECT_COMMANDS = [initCommand];
