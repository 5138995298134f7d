// A process that runs a workflow with a transaction until it is killed at the point that its first argument names.
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { type Adapter, type AdapterName, ADAPTERS } from './adapters.js';
import { armKillPoint, type KillPoint, registerKillable } from './killable.js';

export interface KillSettings {
  readonly adapter: AdapterName;
  readonly url: string;
  readonly systemURL: string;
  readonly killPoint: KillPoint;
  /** The folder of the test run. */
  readonly folder: string;
}

const settings = JSON.parse(process.argv[2] ?? '{}') as KillSettings;
const die = (): void => void process.kill(process.pid, 'SIGKILL');

async function main(): Promise<void> {
  const DBOS = createDBOS();
  DBOS.setConfig({
    name: 'test',
    applicationVersion: 'v1',
    executorID: 'one',
    systemDatabaseUrl: settings.systemURL,
  });
  const adapter: Adapter = ADAPTERS[settings.adapter];
  const engine = { DBOS, ...(await adapter.create(settings.url, DBOS, settings.folder)) };
  const workflow = registerKillable(engine, (point) => point === settings.killPoint && die());
  await DBOS.launch();
  armKillPoint(settings.killPoint, die);
  await DBOS.startWorkflow(workflow, { workflowID: 'w' })().then((handle) => handle.getResult());
}

void main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  },
);
