// Orders of events around queues that lose a wake-up, a place or a connection when they are not thought of.
import { expect, onTestFinished, test, vi } from 'vitest';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { ConfiguredInstance, type DBOSInstance } from '../../src/index.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { patientClock } from '../rig/patient-clock.js';
import { startProxy } from '../rig/proxy.js';
import { countByStatus } from './invariants.js';
import { describeCommit } from './kill-points.js';
import { until } from './processes.js';
import { idsOf } from './setup.js';

/** A lost wake-up is not made up for. */
const UNPOLLED = { clock: patientClock };

async function untilEnded(DBOS: DBOSInstance, workflowID: string): Promise<void> {
  const isEnded = async (): Promise<boolean> => (await DBOS.getWorkflowStatus(workflowID))?.status === 'SUCCESS';
  await until(`"${workflowID}" has ended`, isEnded);
}

/** A class whose workflow runs on an instance. */
function defineMachine(DBOS: DBOSInstance) {
  class Machine extends ConfiguredInstance {
    async brew(): Promise<string> {
      return this.name;
    }
  }
  const ctorOrProto = Machine.prototype;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  Machine.prototype.brew = DBOS.registerWorkflow(Machine.prototype.brew, { ctorOrProto });
  return Machine;
}

forEachDialect((dialect) => {
  test('a workflow whose instance is missing here does not keep those behind it from running', async () => {
    const { DBOS } = await createEngine(dialect, { applicationVersion: 'v1' }, UNPOLLED);
    defineMachine(DBOS);
    const quick = DBOS.registerWorkflow(async () => 'ran', { name: 'quick' });
    await DBOS.launch();
    await DBOS.registerQueue('q', { workerConcurrency: 1 });
    const missing = { queueName: 'q', workflowName: 'brew', workflowClassName: 'Machine', workflowConfigName: 'x' };

    await DBOS.enqueueWorkflowWithOptions({ ...missing, appVersion: 'v1' });
    const behind = await DBOS.startWorkflow(quick, { queueName: 'q' })();

    await untilEnded(DBOS, behind.workflowID);
  });
});

forEachDialect((dialect) => {
  test('many bulk starts of workflows that exist do not wait for each other for ever', async () => {
    const { DBOS } = await createEngine(dialect, { systemDatabasePoolSize: 4 }, UNPOLLED);
    const quick = DBOS.registerWorkflow(async (id: string) => id, { name: 'quick' });
    await DBOS.launch();
    await DBOS.registerQueue('q');
    const starts = idsOf('w', 5).map((workflowID) => ({ workflowID, args: [workflowID] as [string] }));
    await DBOS.startWorkflows(quick, starts, { queueName: 'q' });

    let done = 0;
    const again = Array.from({ length: 30 }, async () => {
      await DBOS.startWorkflows(quick, starts, { queueName: 'q' });
      done += 1;
    });
    await until('all have been started again', () => done === again.length);

    await Promise.all(again);
  });
});

onlyOn('postgres', (dialect) => {
  test('a workflow that was locked by somebody at the moment of the claim is not left waiting', async () => {
    const { DBOS, url } = await createEngine(dialect, {}, UNPOLLED);
    const quick = DBOS.registerWorkflow(async (id: string) => id, { name: 'quick' });
    await DBOS.launch();
    await DBOS.registerQueue('q', { globalConcurrency: 5 });
    const database = await dialect.open(url);
    const spy = vi.spyOn(PostgresDatabase.prototype, 'commit');
    onTestFinished(() => spy.mockRestore());
    await DBOS.pauseQueue('q');
    const handle = await DBOS.startWorkflow(quick, { queueName: 'q' })('locked');

    await database.transaction(async (tx) => {
      // As setWorkflowPriority does, or a message to it.
      await tx.run(sql`
        UPDATE ${table('workflow_status')} SET priority = 3 WHERE workflow_uuid = ${handle.workflowID}`);
      await DBOS.resumeQueue('q');
      const next = await DBOS.startWorkflow(quick, { queueName: 'q' })('next');
      await untilEnded(DBOS, next.workflowID);
      // When all is silent, the claims have passed the locked one.
      let [calls, since] = [0, 0];
      await until('all is silent', () => {
        if (spy.mock.calls.length !== calls) [calls, since] = [spy.mock.calls.length, Date.now()];
        return Date.now() - since > 300;
      });
    });

    await untilEnded(DBOS, handle.workflowID);
  });

  test('delayed workflows become due although the answer to making them ready is lost', async () => {
    const url = await dialect.createURL();
    const proxy = await startProxy(url);
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: proxy.url }, UNPOLLED);
    const quick = DBOS.registerWorkflow(async (id: string) => id, { name: 'quick' });
    const { run } = PostgresDatabase.prototype as { run: typeof PostgresDatabase.prototype.run };
    const spy = vi.spyOn(PostgresDatabase.prototype, 'run');
    onTestFinished(() => spy.mockRestore());
    let losses = 0;
    spy.mockImplementation(function (this: PostgresDatabase, statement) {
      if (describeCommit(this, [statement]).includes('due') && losses++ === 0) proxy.loseNextAnswer();
      return run.call(this, statement);
    });
    await DBOS.launch();
    await DBOS.registerQueue('q');

    const enqueueOptions = { delaySeconds: 0.2 };
    const handle = await DBOS.startWorkflow(quick, { queueName: 'q', enqueueOptions })('late');

    // Not through the proxy, where it would take the fault upon itself.
    const database = await dialect.open(url);
    await until(`"${handle.workflowID}" has ended`, async () => (await countByStatus(database)).get('SUCCESS') === 1);
    expect(losses).toBeGreaterThan(0);
  });
});
