// An engine alone in its process, on a database with parked workflows: says how much memory it has. Argument: the URL.
import { silentLogger } from '../../src/kernel/base/log.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import { answer } from '../engine/commands.js';

/** Long enough for each of its services to have looked at the database. */
const SETTLE_MS = 10_000;

const DBOS = createDBOS();
const systemDatabaseUrl = process.argv[2];
DBOS.setConfig({ name: 'bench', applicationVersion: 'v1', systemDatabaseUrl, logger: silentLogger });
DBOS.registerWorkflow(async () => DBOS.sleep(1), { name: 'sleeper' });
DBOS.registerWorkflow(async () => DBOS.recv('t', 1), { name: 'receiver' });
const before = process.memoryUsage().rss;
await DBOS.launch();
await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
const { rss, heapUsed } = process.memoryUsage();
answer({ before, rss, heapUsed });
await DBOS.shutdown();
