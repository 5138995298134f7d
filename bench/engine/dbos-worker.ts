// A process that carries out one command with DBOS, whose file is the second argument.
import { pathToFileURL } from 'node:url';
import type { Command } from './commands.js';
import type { Library } from './library.js';
import { runTask } from './tasks.js';

const command = JSON.parse(process.argv[2] ?? '') as Command;
// Installed in bench/node_modules only, so the compiler cannot look for it.
const { DBOS } = (await import(pathToFileURL(process.argv[3] ?? '').href)) as { readonly DBOS: Library };

await runTask(DBOS, command);
