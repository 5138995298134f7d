// A tree of ten thousand workflows that is cancelled, resumed and deleted as a whole.
import { silentLogger } from '../../src/base/log.js';
import { deleteWorkflows, cancelWorkflows, resumeWorkflows } from '../../src/control/lifecycle.js';
import { createDBOS } from '../../src/facade/dbos.js';
import { insertWorkflows } from '../../src/store/workflows.js';
import { newWorkflow } from '../../test/rig/records.js';
import type { Databases } from '../engine/databases.js';
import { fillTable } from '../queues/claim-rows.js';
import { printTable, timed } from '../report.js';
import { timeStatements } from './statements.js';

const SIZE = 10_000;
const CHILDREN = 10;
const OTHERS = 100_000;

export async function benchTree(databases: Databases): Promise<void> {
  await measure(await databases.postgres());
  await measure(databases.sqlite());
}

async function measure(url: string): Promise<void> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logger: silentLogger });
  await DBOS.launch();
  const engine = DBOS.engineFor('the benchmark');
  const { database, times } = timeStatements(engine.database);
  const operator = {
    database,
    codec: engine.codec,
    clock: engine.clock,
    logger: engine.logger,
    applicationName: engine.applicationName,
    watches: engine.watches,
    news: engine.news,
    retrying: <T>(operation: () => Promise<T>): Promise<T> => engine.retrying(operation),
  };
  await fillTable(database, { from: 0, completed: OTHERS, waiting: 0 });
  const tree = Array.from({ length: SIZE }, (_, index) => {
    const parentWorkflowID = index === 0 ? null : `tree-${Math.floor((index - 1) / CHILDREN)}`;
    const place = { status: 'ENQUEUED', owner: null, queueName: 'unserved' } as const;
    return newWorkflow({ workflowID: `tree-${index}`, parentWorkflowID, ...place });
  });
  await database.run(insertWorkflows(tree));
  const workflowIDs = tree.map(({ workflowID }) => workflowID);

  const lines = [];
  const place = { queueName: 'unserved' };
  for (const [label, act] of [
    ['cancel with children', () => cancelWorkflows(operator, ['tree-0'], { cancelChildren: true })],
    ['resume by their IDs', () => resumeWorkflows(operator, workflowIDs, place)],
    ['cancel by their IDs', () => cancelWorkflows(operator, workflowIDs)],
    ['delete with children', () => deleteWorkflows(operator, ['tree-0'], { deleteChildren: true })],
  ] as const) {
    times.length = 0;
    const wholeMs = await timed(act);
    const longest = Math.max(...times);
    lines.push({
      label,
      value: `${Math.round(wholeMs)} ms`,
      ratio: `longest of ${times.length} in the database ${Math.round(longest)} ms`,
    });
  }
  await DBOS.shutdown();
  const size = SIZE.toLocaleString('en');
  printTable(`a tree of ${size} workflows on ${database.dialect.name}, among ${OTHERS.toLocaleString('en')}`, lines);
}
