// A process that carries out one command about messages with DBOS, whose file is the second argument.
import { pathToFileURL } from 'node:url';
import type { MessagingCommand } from './commands.js';
import type { MessagingLibrary } from './library.js';
import { runMessagingTask } from './tasks.js';

// Installed in bench/node_modules only, so the compiler cannot look for it.
const { DBOS } = (await import(pathToFileURL(process.argv[3] ?? '').href)) as { readonly DBOS: MessagingLibrary };

await runMessagingTask(DBOS, JSON.parse(process.argv[2] ?? '') as MessagingCommand);
