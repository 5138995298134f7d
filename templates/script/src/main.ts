import { DBOS } from 'everstep';
import { systemDatabaseUrl } from './database.ts';
import { order } from './workflows.ts';

DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl });
await DBOS.launch();

const handle = await DBOS.startWorkflow(order)(process.argv[2] ?? 'a lamp');
console.log(await handle.getResult());

await DBOS.shutdown();
