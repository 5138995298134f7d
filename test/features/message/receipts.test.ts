import { describe, expect, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { failureOf } from '../../run/succession.js';

async function setup(dialect: TestDialect) {
  // No renewal of a lease is among the commits.
  const { DBOS } = await createEngine(dialect, { leaseSeconds: 3600 });
  const send = (messages: unknown[]) =>
    DBOS.sendBulk(messages.map((message) => ({ destinationID: 'r', message, topic: 't' })));
  /** Calls `before` ahead of each commit of the writer from now on. */
  const onCommit = (before: () => Promise<void> | void) => {
    const { database } = engineOf(DBOS).runtime.store;
    const commit = database.commit.bind(database);
    vi.spyOn(database, 'commit').mockImplementation(async (...args) => {
      await before();
      return commit(...args);
    });
  };
  return { DBOS, send, onCommit, recv: () => DBOS.recv<number>('t', 20) };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe('receipts', () => {
  forEachDialect((dialect) => {
    test('a receipt shares its commit with what the workflow does next', async () => {
      const { DBOS, send, onCommit, recv } = await setup(dialect);
      const echo = DBOS.registerWorkflow(async () => DBOS.send('other', await recv()), { name: 'echo' });
      const other = DBOS.registerWorkflow(() => DBOS.recv('never', 20), { name: 'other' });
      await DBOS.launch();
      await DBOS.startWorkflow(other, { workflowID: 'other' })();
      const handle = await DBOS.startWorkflow(echo, { workflowID: 'r' })();
      for (const workflowID of ['other', 'r']) {
        await until(async () => (await DBOS.listWorkflowSteps(workflowID))!.length === 1);
      }
      let commits = 0;
      onCommit(() => void (commits += 1));

      await send([1]);
      await handle.getResult();

      // The receipt and the message, then the outcome.
      expect(commits).toBe(2);
    });

    test('no message is received twice while its receipt is on the way', async () => {
      const { DBOS, send, onCommit, recv } = await setup(dialect);
      const receiver = DBOS.registerWorkflow(
        async () => [await recv(), await recv(), ...(await Promise.all([recv(), recv()])), await recv()],
        { name: 'receiver' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(receiver, { workflowID: 'r' })();
      onCommit(() => pause(20));

      await send([1, 2, 3, 4, 5]);
      const [first, second, third, fourth, fifth] = await handle.getResult();

      expect([first, second, fifth]).toEqual([1, 2, 5]);
      expect([third, fourth].sort()).toEqual([3, 4]);
    });

    test('a step begins when the receipt before it is durable', async () => {
      const { DBOS, send, onCommit, recv } = await setup(dialect);
      const events: string[] = [];
      const receiver = DBOS.registerWorkflow(
        async () => {
          await recv();
          events.push('received');
          await DBOS.runStep(async () => events.push('step'), { name: 'step' });
        },
        { name: 'receiver' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(receiver, { workflowID: 'r' })();
      await until(async () => (await DBOS.listWorkflowSteps('r'))!.length === 1);
      const held = deferred<void>();
      onCommit(() => held.promise);

      await send([1]);
      await until(async () => events.length > 0);
      await pause(50);
      expect(events).toEqual(['received']);
      held.resolve();

      await handle.getResult();
      expect(events).toEqual(['received', 'step']);
    });

    test('a workflow whose message was removed before its receipt ends with an error', async () => {
      const { DBOS, send, onCommit, recv } = await setup(dialect);
      const receiver = DBOS.registerWorkflow(
        async () => {
          await recv();
          await DBOS.runStep(async () => {}, { name: 'step' });
        },
        { name: 'receiver' },
      );
      await DBOS.launch();
      const { database } = engineOf(DBOS).runtime.store;
      const handle = await DBOS.startWorkflow(receiver, { workflowID: 'r' })();
      await until(async () => (await DBOS.listWorkflowSteps('r'))!.length === 1);
      onCommit(async () => void (await database.run(sql`DELETE FROM ${table('notifications')}`)));

      await send([1]);

      expect(await failureOf(handle.getResult())).toMatchObject({
        message: expect.stringContaining('no longer in the database'),
      });
    });
  });
});
