// A process that carries out one command about messages with Everstep.
import { createDBOS } from '../../src/faces/library/dbos.js';
import type { MessagingCommand } from './commands.js';
import { runMessagingTask } from './tasks.js';

await runMessagingTask(createDBOS(), JSON.parse(process.argv[2] ?? '') as MessagingCommand);
