// A process with one engine that works on a queue until its input closes. Argument: the URL. Prints a line when it is ready.
import { createDBOS } from '../../src/faces/library/dbos.js';

const [systemDatabaseUrl = '', executorID = ''] = process.argv.slice(2);
const DBOS = createDBOS();
DBOS.setConfig({ name: 'bench', systemDatabaseUrl, executorID, applicationVersion: '1', logLevel: 'error' });
DBOS.registerWorkflow(
  async () => {
    for (let n = 0; n < 3; n += 1) await DBOS.runStep(() => Promise.resolve(n), { name: 'step' });
  },
  { name: 'work' },
);
await DBOS.launch();
process.stdout.write('ready\n');
process.stdin.resume().once('end', () => void DBOS.shutdown());
