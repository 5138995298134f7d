// A process that carries out one command with the outbox.
import type { OutboxCommand } from './commands.js';
import { runTask } from './tasks.js';

await runTask(JSON.parse(process.argv[2] ?? '') as OutboxCommand);
// Clients of brokers leave timers behind.
process.exit();
