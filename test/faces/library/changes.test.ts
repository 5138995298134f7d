// Verbs say what they changed: of DBOS, of a client, and in workflow code, where the answer is part of the record.
import { describe, expect, test } from 'vitest';
import type { DBOSClient, DBOSInstance } from '../../../src/index.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { connect } from '../client/scene.js';
import { createGenerations, newHalt } from '../../run/succession.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';

/** An engine that runs `root` with two children, has ended `done`, and has two workflows in the paused queue `q`. */
async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect);
  const child = DBOS.registerWorkflow(async () => DBOS.recv('never', 1000), { name: 'child' });
  const parent = DBOS.registerWorkflow(
    async () => {
      for (const workflowID of ['child-1', 'child-2']) await DBOS.startWorkflow(child, { workflowID })();
      await DBOS.setEvent('ready', true);
      await DBOS.recv('never', 1000);
    },
    { name: 'parent' },
  );
  const quick = DBOS.registerWorkflow(async () => 'done', { name: 'quick' });
  const tick = DBOS.registerWorkflow(async (_: Date) => {}, { name: 'tick' });
  await DBOS.launch();
  await DBOS.registerQueue('q');
  await DBOS.pauseQueue('q');
  await DBOS.withNextWorkflowID('done', () => quick());
  await DBOS.startWorkflow(parent, { workflowID: 'root' })();
  await DBOS.getEvent('root', 'ready');
  for (const workflowID of ['waiting', 'spare']) await DBOS.startWorkflow(quick, { workflowID, queueName: 'q' })();
  await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 1 1 *' });
  return { DBOS, url };
}

const ACTORS = {
  DBOS: async (DBOS: DBOSInstance): Promise<DBOSInstance | DBOSClient> => DBOS,
  'a client': async (_: DBOSInstance, url: string): Promise<DBOSInstance | DBOSClient> => connect(url),
};

describe('what a verb has changed', () => {
  forEachDialect((dialect) => {
    describe.each(Object.entries(ACTORS))('by %s', (_, actorOf) => {
      test('is a list of IDs where it can be several workflows', async () => {
        const { DBOS, url } = await setup(dialect);
        const actor = await actorOf(DBOS, url);

        expect(await actor.cancelWorkflow('waiting')).toEqual(['waiting']);
        expect(await actor.cancelWorkflow('waiting')).toEqual([]);
        expect(await actor.cancelWorkflows(['done', 'nobody', 'spare'])).toEqual(['spare']);
        const cancelled = await actor.cancelWorkflow('root', { cancelChildren: true });
        expect(cancelled.toSorted()).toEqual(['child-1', 'child-2', 'root']);
        const deleted = await actor.deleteWorkflow('root', true);
        expect(deleted.toSorted()).toEqual(['child-1', 'child-2', 'root']);
        expect(await actor.deleteWorkflow('root', true)).toEqual([]);
        expect(await actor.deleteWorkflows(['nobody', 'done'])).toEqual(['done']);
      });

      test('is the handles of all workflows where they are resumed', async () => {
        const { DBOS, url } = await setup(dialect);
        const actor = await actorOf(DBOS, url);

        const handles = await actor.resumeWorkflows(['done', 'child-1'], { queueName: 'q' });

        expect(handles.map(({ workflowID }) => workflowID)).toEqual(['done', 'child-1']);
        expect((await DBOS.getWorkflowStatus('done'))?.status).toBe('SUCCESS');
        // A running one was taken from its run.
        expect((await DBOS.getWorkflowStatus('child-1'))?.status).toBe('ENQUEUED');
      });

      test('is true or false where it is one thing', async () => {
        const { DBOS, url } = await setup(dialect);
        const actor = await actorOf(DBOS, url);
        const twice = async (act: () => Promise<boolean>): Promise<boolean[]> => [await act(), await act()];

        expect(await twice(() => actor.resumeQueue('other'))).toEqual([false, false]);
        expect(await twice(() => actor.pauseQueue('other'))).toEqual([true, false]);
        expect(await twice(() => actor.resumeQueue('other'))).toEqual([true, false]);
        expect(await twice(() => actor.deleteQueue('q'))).toEqual([true, false]);
        expect(await twice(() => actor.resumeSchedule('s'))).toEqual([false, false]);
        expect(await twice(() => actor.pauseSchedule('s'))).toEqual([true, false]);
        expect(await twice(() => actor.resumeSchedule('s'))).toEqual([true, false]);
        expect(await twice(() => actor.deleteSchedule('s'))).toEqual([true, false]);
        expect(await actor.pauseSchedule('s')).toBe(false);
        expect(await actor.setWorkflowDelay('waiting', 1000)).toBe(true);
        expect(await actor.setWorkflowDelay('child-1', 1000)).toBe(false);
        expect(await actor.setWorkflowPriority('waiting', 3)).toBe(true);
        expect(await actor.setWorkflowPriority('child-1', 3)).toBe(true);
        expect(await actor.setWorkflowPriority('done', 3)).toBe(false);
        expect(await actor.setWorkflowPriority('nobody', 3)).toBe(false);
      });
    });

    describe('in workflow code', () => {
      /** A workflow that uses the verbs, up to a halt in the first process; and the same one in a second process. */
      async function setupGenerations() {
        const { first, second } = await createGenerations(dialect);
        const halt = newHalt();
        const answers: unknown[] = [];
        for (const DBOS of [first, second]) {
          DBOS.registerWorkflow(async () => 'done', { name: 'quick' });
          DBOS.registerWorkflow(
            async () => {
              answers.push([
                await DBOS.cancelWorkflow('a'),
                await DBOS.setWorkflowPriority('b', 2),
                await DBOS.setWorkflowDelay('b', 1000),
                await DBOS.deleteWorkflows(['b', 'nobody']),
                await DBOS.pauseSchedule('nothing'),
                (await DBOS.resumeWorkflow('a', { queueName: 'q' })).workflowID,
              ]);
              if (DBOS === first) await halt.here();
            },
            { name: 'manager' },
          );
        }
        await first.launch();
        await first.registerQueue('q');
        await first.pauseQueue('q');
        for (const workflowID of ['a', 'b']) {
          await first.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'quick', workflowID });
        }
        await first.enqueueWorkflowWithOptions({
          queueName: '_dbos_internal_queue',
          workflowName: 'manager',
          workflowID: 'm',
        });
        await halt.reached;
        const recover = async (): Promise<void> => {
          await first.shutdown();
          await second.launch();
          await second.retrieveWorkflow('m').getResult();
        };
        return { first, second, answers, recover };
      }

      test('is recorded, and the same after a recovery', async () => {
        const { second, answers, recover } = await setupGenerations();

        await recover();

        const answer = [['a'], true, true, ['b'], false, 'a'];
        expect(answers).toEqual([answer, answer]);
        const steps = await second.listWorkflowSteps('m');
        expect(steps?.map(({ name, output }) => [name, output])).toEqual([
          ['DBOS.cancelWorkflow', ['a']],
          ['DBOS.setWorkflowPriority', true],
          ['DBOS.setWorkflowDelay', true],
          ['DBOS.deleteWorkflow', ['b']],
          ['DBOS.pauseSchedule', false],
          ['DBOS.resumeWorkflow', null],
        ]);
      });

      test('is nothing in a replay of records that hold none, as DBOS writes them', async () => {
        const { first, answers, recover } = await setupGenerations();
        const { database } = engineOf(first).runtime;
        const [resumed] = await database.read(
          sql`SELECT o.output FROM ${table('operation_outputs')} AS o WHERE o.workflow_uuid = 'm' AND o.function_id = 5`,
        );
        await database.run(sql`
          UPDATE ${table('operation_outputs')}
          SET output = ${resumed?.['output'] as string}
          WHERE workflow_uuid = 'm'`);

        await recover();

        expect(answers[1]).toEqual([[], false, false, [], false, 'a']);
      });
    });
  });
});
