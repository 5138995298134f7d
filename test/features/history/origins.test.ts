// Workflows that no run of this process started, and messages that none sent: their rows tell their events.
import { describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient } from '../../../src/index.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { enqueuePrepared, prepareEnqueuedWorkflow } from '../../../src/run/prepared.js';
import type { HistoryLevel } from '../../../src/features/history/event.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';

async function setup(dialect: TestDialect, history: HistoryLevel) {
  const { DBOS, url } = await createEngine(dialect, { history, executorID: 'one' });
  const greet = DBOS.registerWorkflow(async (..._args: unknown[]) => undefined, { name: 'greet' });
  const listen = DBOS.registerWorkflow(async () => DBOS.recv('news', 3600), { name: 'listen', parkAfterMs: 0 });
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const client = await DBOSClient.create({ systemDatabaseUrl: url });
  onTestFinished(() => client.destroy());
  const typesOf = async (workflowID: string): Promise<string[]> => {
    await DBOS.retrieveWorkflow(workflowID).getResult();
    const types = [];
    for await (const { type } of DBOS.getHistory(workflowID)) types.push(type);
    return types;
  };
  return { DBOS, client, greet, listen, typesOf };
}

/** As an event receiver starts it. */
async function receive(DBOS: DBOSInstance, greet: () => Promise<unknown>): Promise<void> {
  const engine = engineOf(DBOS);
  const registration = engine.runtime.registry.workflowOf(greet, 'greet');
  const prepared = await prepareEnqueuedWorkflow(engine, registration, [], { workflowID: 'receiver', queueName: 'q' });
  await enqueuePrepared(engine, [prepared]);
}

const RAN = ['WorkflowStarted', 'AttemptStarted', 'WorkflowCompleted'];

forEachDialect((dialect) => {
  describe.each(['changes', 'full'] as const)('with level %s', (level) => {
    test('workflows started together, by a client, a schedule or a receiver have their events', async () => {
      const { DBOS, client, greet, typesOf } = await setup(dialect, level);

      await DBOS.startWorkflows(greet, [{ args: [], workflowID: 'bulk' }], { queueName: 'q' });
      await client.enqueue({ workflowName: 'greet', queueName: 'q', workflowID: 'client' });
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: greet, schedule: '0 0 1 1 *' });
      const scheduled = await DBOS.triggerSchedule('s');
      await receive(DBOS, greet);

      for (const workflowID of ['bulk', 'client', scheduled.workflowID, 'receiver']) {
        expect(await typesOf(workflowID), workflowID).toEqual(RAN);
      }
    });

    test('messages from outside are events of their receiver', async () => {
      const { DBOS, client, listen, typesOf } = await setup(dialect, level);
      await DBOS.startWorkflow(listen, { workflowID: 'w' })();
      await DBOS.startWorkflow(listen, { workflowID: 'v' })();

      await client.send('w', 'hello', 'news');
      await DBOS.send('v', 'hello', 'news');

      expect(await typesOf('w')).toContain('SignalReceived');
      expect(await typesOf('v')).toContain('SignalReceived');
    });
  });
});
