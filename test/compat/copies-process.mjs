// A process that has loaded the package four times: in both formats, under its own name and under an alias. It is copied
// into a project and run there.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import * as imported from 'everstep';
import * as importedByAlias from '@dbos-inc/dbos-sdk';
import { BetterSqlite3DataSource as ImportedDataSource } from 'everstep/datasource/better-sqlite3';

const require = createRequire(import.meta.url);
const required = require('everstep');
const requiredByAlias = require('@dbos-inc/dbos-sdk');
const { BetterSqlite3DataSource: RequiredDataSource } = require('@dbos-inc/dbos-sdk/datasource/better-sqlite3');
const { WorkflowRoutes } = require('everstep/receiver/http');

const [systemDatabase, dataSourceFile] = process.argv.slice(2);
const { DBOS, Error: Errors } = imported;

// There are four packages and one `DBOS`.
const copies = [imported, required, importedByAlias, requiredByAlias];
assert.equal(new Set(copies.map((copy) => copy.createDBOS)).size, 4);
assert.equal(new Set(copies.map((copy) => copy.DBOS)).size, 1);

// Errors.
class OfUser extends Errors.DBOSWorkflowCancelledError {}
for (const copy of copies) {
  const error = new copy.Error.DBOSWorkflowCancelledError('w');
  assert(error instanceof Errors.DBOSWorkflowCancelledError && error instanceof Errors.DBOSError);
  assert(!(error instanceof Errors.DBOSNotRegisteredError) && !(error instanceof OfUser));
  assert(new OfUser('w') instanceof copy.Error.DBOSWorkflowCancelledError);
  assert(new copy.PortableWorkflowError('m', 'n') instanceof imported.PortableWorkflowError);
  assert(!(new Error('m') instanceof copy.Error.DBOSError) && !(new Error('m') instanceof copy.PortableWorkflowError));
}

// Functions, instances, queues and data sources that different copies define.
const source = new RequiredDataSource('source', dataSourceFile);
const shared = new ImportedDataSource('shared', systemDatabase);
const queue = new required.WorkflowQueue('queue');

class Greeter extends requiredByAlias.ConfiguredInstance {}
assert.equal(new Greeter('one').name, 'one');
assert.throws(() => new Greeter('one'), Errors.DBOSConflictingRegistrationError);

const main = required.DBOS.registerWorkflow(
  async (handle) => {
    const step = await importedByAlias.DBOS.runStep(async () => requiredByAlias.DBOS.stepID, { name: 'step' });
    const [{ one }] = await source.runTransaction(async () => source.client.prepare('SELECT 1 AS one').all(), {
      name: 'transaction',
    });
    const two = await shared.runTransaction(async () => shared.client.prepare('SELECT 2 AS two').get().two, {
      name: 'shared transaction',
    });
    return { workflowID: imported.DBOS.workflowID, step, one, two, other: await handle.getResult() };
  },
  { name: 'main' },
);

const waiting = DBOS.registerWorkflow(() => requiredByAlias.DBOS.sleepms(60_000), { name: 'waiting' });

const other = required.createDBOS();
const inOther = other.registerWorkflow(async () => 'of another instance', { name: 'inOther' });

other.setConfig({
  name: 'copies',
  systemDatabaseUrl: `sqlite:${systemDatabase}`,
  logLevel: 'error',
  executorID: 'other',
});
DBOS.setConfig({
  name: 'copies',
  systemDatabaseUrl: `sqlite:${systemDatabase}`,
  logLevel: 'error',
  executorID: 'main',
});
await other.launch();
await required.DBOS.launch();
try {
  const handle = await other.startWorkflow(inOther, { workflowID: 'in-other' })();
  const started = await importedByAlias.DBOS.startWorkflow(main, { workflowID: 'main', queueName: queue.name })(handle);
  const result = await started.getResult();
  const steps = (await DBOS.listWorkflowSteps('main')).map(({ name }) => name);
  assert.deepEqual(result, { workflowID: 'main', step: 0, one: 1, two: 2, other: 'of another instance' });
  assert.deepEqual(steps, ['step', 'transaction', 'shared transaction', 'DBOS.getResult']);

  // A receiver uses the `DBOS` of another copy, and knows its errors.
  const header = () => 'application/json';
  const request = { method: 'POST', path: '/main', header, query: () => undefined, body: async () => Buffer.from('?') };
  assert.equal((await new WorkflowRoutes().start('/main', main).answer(request)).status, 400);

  // Why the runs of two copies were stopped is known to one listener.
  const endless = await DBOS.startWorkflow(waiting, { workflowID: 'endless' })();
  await DBOS.cancelWorkflow(endless.workflowID);
  await assert.rejects(endless.getResult(), required.Error.DBOSError);
  assert.equal(process.listenerCount('unhandledRejection'), 1);
} finally {
  await DBOS.shutdown();
  await other.shutdown();
}
console.log('shared');
