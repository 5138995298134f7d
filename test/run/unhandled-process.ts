// A process with a workflow that is cancelled while it holds a promise that it does not await yet.
import { silentLogger } from '../../src/kernel/base/log.js';
import { createDBOS } from '../../src/faces/library/dbos.js';

const [url, scenario] = process.argv.slice(-2);

async function main(): Promise<void> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'test', systemDatabaseUrl: url, logger: silentLogger });
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  let reach = (): void => {};
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const workflow = DBOS.registerWorkflow(
    async () => {
      const both = Promise.all([DBOS.sleep(60_000), DBOS.recv('topic', 60)]);
      await DBOS.runStep(
        () => {
          reach();
          return released;
        },
        { name: 'work' },
      );
      await both;
    },
    { name: 'workflow' },
  );
  await DBOS.launch();
  const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
  const ended = handle.getResult().catch(() => {});
  await reached;
  await DBOS.cancelWorkflow('w');
  await new Promise((resolve) => setTimeout(resolve, 50));
  release();
  await ended;
  if (scenario === 'foreign') {
    void Promise.reject(new Error('mine'));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  console.log('alive');
  await DBOS.shutdown();
}

void main();
