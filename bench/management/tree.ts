// A tree of ten thousand workflows that is cancelled, resumed and deleted as a whole.
import { internals } from '../../src/kernel/base/internals.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { deleteWorkflows, cancelWorkflows, resumeWorkflows } from '../../src/features/lifecycle/lifecycle.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import { insertWorkflows } from '../../src/run/rows/workflows.js';
import { newWorkflow } from '../../test/rig/records.js';
import type { Databases } from '../engine/databases.js';
import { fillTable } from '../queues/claim-rows.js';
import { median, type Measurement, printTable, timed } from '../report.js';
import { timeStatements } from './statements.js';

const SIZE = 10_000;
const CHILDREN = 10;
const OTHERS = 100_000;
const ROUNDS = 5;

export async function benchTree(databases: Databases): Promise<void> {
  await measure(await databases.postgres());
  await measure(databases.sqlite());
}

async function measure(url: string): Promise<void> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logger: silentLogger });
  await DBOS.launch();
  const engine = DBOS[internals].operator;
  const { database, times } = timeStatements(engine.database);
  const operator = {
    database,
    codec: engine.codec,
    clock: engine.clock,
    databaseClock: engine.databaseClock,
    logger: engine.logger,
    applicationName: engine.applicationName,
    watchers: engine.watchers,
    bus: engine.bus,
    retrying: <T>(operation: () => Promise<T>): Promise<T> => engine.retrying(operation),
  };
  await fillTable(database, { from: 0, completed: OTHERS, waiting: 0 });
  const tree = Array.from({ length: SIZE }, (_, index) => {
    const parentWorkflowID = index === 0 ? null : `tree-${Math.floor((index - 1) / CHILDREN)}`;
    const place = { status: 'ENQUEUED', owner: null, queueName: 'unserved' } as const;
    return newWorkflow({ workflowID: `tree-${index}`, parentWorkflowID, ...place });
  });
  const workflowIDs = tree.map(({ workflowID }) => workflowID);

  const place = { queueName: 'unserved' };
  const acts = {
    'cancel with children': () => cancelWorkflows(operator, ['tree-0'], { cancelChildren: true }),
    'resume by their IDs': () => resumeWorkflows(operator, workflowIDs, place),
    'cancel by their IDs': () => cancelWorkflows(operator, workflowIDs),
    'delete with children': () => deleteWorkflows(operator, ['tree-0'], { deleteChildren: true }),
  };
  const lines: Measurement[] = [];
  for (const [label, act] of Object.entries(acts)) {
    const whole: number[] = [];
    const longest: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await database.run(insertWorkflows(tree));
      if (label.startsWith('cancel')) await resumeWorkflows(operator, workflowIDs, place);
      else await cancelWorkflows(operator, workflowIDs);
      times.length = 0;
      whole.push(await timed(act));
      longest.push(Math.max(...times));
    }
    const inDatabase = `longest statement ${Math.round(median(longest))} ms`;
    lines.push({ label, value: `${Math.round(median(whole))} ms`, ratio: `${inDatabase}, median of ${ROUNDS}` });
  }
  await DBOS.shutdown();
  const size = SIZE.toLocaleString('en');
  printTable(`a tree of ${size} workflows on ${database.dialect.name}, among ${OTHERS.toLocaleString('en')}`, lines);
}
