// A process with workflows that do not await an operation which fails. Prints what it has logged and how they ended.
import { silentLogger } from '../../src/kernel/base/log.js';
import { createDBOS } from '../../src/faces/library/dbos.js';

const [url, scenario] = process.argv.slice(-2);

async function main(): Promise<void> {
  const DBOS = createDBOS();
  const logged: string[] = [];
  const log = (entry: unknown): void => void logged.push(String(entry).split('\n')[0] ?? '');
  DBOS.setConfig({ name: 'test', systemDatabaseUrl: url, logger: { ...silentLogger, warn: log, error: log } });
  const fail = () => DBOS.runStep(() => Promise.reject(new Error('no funds')), { name: 'charge' });
  const failLate = () =>
    DBOS.runStep(() => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 20)), { name: 'late' });
  const inFunction = async (body: () => Promise<unknown>): Promise<void> => void (await body());
  const workflows = {
    running: DBOS.registerWorkflow(
      async () => {
        void fail();
        await DBOS.sleep(60_000);
      },
      { name: 'running' },
    ),
    wrapped: DBOS.registerWorkflow(
      async () => {
        void inFunction(fail);
        await DBOS.sleep(60_000);
      },
      { name: 'wrapped' },
    ),
    ended: DBOS.registerWorkflow(
      async () => {
        void inFunction(failLate);
        return 'done';
      },
      { name: 'ended' },
    ),
    // The caller does not await the workflow: that is up to the application.
    outside: DBOS.registerWorkflow(fail, { name: 'outside' }),
  };
  await DBOS.launch();
  if (scenario === 'outside') {
    void workflows.outside();
    // The failure ends the process.
    await new Promise((resolve) => setTimeout(resolve, 3_600_000));
  }
  const handle = await DBOS.startWorkflow(workflows[scenario as 'running'], { workflowID: 'w' })();
  const outcome = await handle.getResult().catch((error: unknown) => (error as { code?: unknown }).code);
  const isLate = (): boolean => scenario === 'ended' && logged.length < 2;
  do await new Promise((resolve) => setTimeout(resolve, 100));
  while (isLate());
  await DBOS.shutdown();
  console.log(JSON.stringify({ outcome, logged }));
}

void main();
