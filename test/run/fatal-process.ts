// A process with a workflow whose code ends it. Prints what it has logged, and how the workflow ended if the process lives.
import { writeSync } from 'node:fs';
import { silentLogger } from '../../src/kernel/base/log.js';
import { createDBOS } from '../../src/faces/library/dbos.js';

const [url, scenario] = process.argv.slice(-2);

async function main(): Promise<void> {
  const DBOS = createDBOS();
  const log = (entry: unknown): void => void writeSync(1, `${String(entry)}\n`);
  DBOS.setConfig({ name: 'test', systemDatabaseUrl: url, logger: { ...silentLogger, error: log } });
  const strays = {
    rejection: () => void Promise.reject(new Error('stray')),
    exception: () =>
      void setTimeout(() => {
        throw new Error('stray');
      }, 1),
  };
  const stray = strays[scenario as 'rejection'];
  const careless = DBOS.registerWorkflow(
    async () => {
      await DBOS.runStep(() => Promise.resolve(1), { name: 'before' });
      stray();
      await DBOS.runStep(() => new Promise((resolve) => setTimeout(resolve, 60_000)), { name: 'work' });
    },
    { name: 'careless' },
  );
  const careful = DBOS.registerWorkflow(() => DBOS.sleep(60_000), { name: 'careful' });
  await DBOS.launch();
  await DBOS.startWorkflow(careful, { workflowID: 'beside' })();
  const handle = await DBOS.startWorkflow(careless, { workflowID: 'w' })();
  const outcome = await handle.getResult().catch((error: unknown) => (error as { code?: unknown }).code);
  log(`w: ${String(outcome)}, beside: ${(await DBOS.getWorkflowStatus('beside'))?.status}`);
  await DBOS.shutdown();
}

void main();
