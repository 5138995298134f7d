// A process with engines that have nothing to do until its input closes. Arguments: the URL, and how many engines. Prints a
// line when they are ready.
import { createDBOS, type DBOSInstance } from '../../src/faces/library/dbos.js';

const [systemDatabaseUrl = '', count = '1'] = process.argv.slice(2);
const engines: DBOSInstance[] = [];
for (let n = 0; n < Number(count); n += 1) {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl, applicationVersion: '1', logLevel: 'error' });
  DBOS.registerWorkflow(async () => {}, { name: 'work' });
  await DBOS.launch();
  engines.push(DBOS);
}
process.stdout.write('ready\n');
process.stdin.resume().once('end', () => void Promise.all(engines.map((DBOS) => DBOS.shutdown())));
