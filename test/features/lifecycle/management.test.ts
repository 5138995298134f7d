// Deleting, forking, rewinding and resuming while workflows run, here and in other engines, and from workflow code.
import { describe, expect, test } from 'vitest';
import type { DBOSInstance, ExportedWorkflow } from '../../../src/index.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { connect } from '../../faces/client/scene.js';
import { createGenerations, failureOf, type Halt, newHalt } from '../../run/succession.js';

const gone = { code: 'NON_EXISTENT_WORKFLOW', dbosErrorCode: 16 };

/** What the engines of a test share: where their workflows halt, and what steps were executed. */
interface Stage {
  readonly halts: Map<string, Halt>;
  readonly calls: string[];
}

/** A workflow that halts after its first step, once for each ID that has a halt, and a parent that waits for one. */
function registerSteps(DBOS: DBOSInstance, { halts, calls }: Stage) {
  const takeStep = async (name: string): Promise<string> => {
    await DBOS.runStep(async () => calls.push(`${DBOS.workflowID} ${name}`), { name });
    return name;
  };
  const workflow = DBOS.registerWorkflow(
    async (input: string) => {
      const first = await takeStep('first');
      const halt = halts.get(DBOS.workflowID ?? '');
      halts.delete(DBOS.workflowID ?? '');
      await halt?.here();
      await DBOS.setEvent('progress', 'half');
      return [input, first, await takeStep('second')];
    },
    { name: 'workflow' },
  );
  const parent = DBOS.registerWorkflow(
    async () => {
      const child = await DBOS.startWorkflow(workflow, { workflowID: 'child' })('of parent');
      return child.getResult();
    },
    { name: 'parent' },
  );
  return { workflow, parent };
}

/** Two launched engines on one database. */
async function setup(dialect: TestDialect) {
  const { first: DBOS, second: other, url } = await createGenerations(dialect);
  const stage: Stage = { halts: new Map(), calls: [] };
  const { workflow, parent } = registerSteps(DBOS, stage);
  registerSteps(other, stage);
  await DBOS.launch();
  await other.launch();
  const haltFor = (workflowID: string): Halt => {
    const halt = newHalt();
    stage.halts.set(workflowID, halt);
    return halt;
  };
  const steps = async (workflowID: string) =>
    ((await DBOS.listWorkflowSteps(workflowID)) ?? []).map(({ name }) => name);
  return { DBOS, other, url, workflow, parent, calls: stage.calls, haltFor, steps };
}

const DONE = ['x', 'first', 'second'];

forEachDialect((dialect) => {
  describe('deleting a workflow that runs', () => {
    test('ends its run at the next operation, from here and from another engine', async () => {
      const { DBOS, other, workflow, calls, haltFor } = await setup(dialect);
      for (const [workflowID, deleting] of [
        ['a', DBOS],
        ['b', other],
      ] as const) {
        const halt = haltFor(workflowID);
        const handle = await DBOS.startWorkflow(workflow, { workflowID })('x');
        await halt.reached;

        await deleting.deleteWorkflow(workflowID);

        await expect(handle.getResult()).rejects.toMatchObject(gone);
        halt.release();
        expect(await DBOS.getWorkflowStatus(workflowID)).toBeNull();
        expect(await DBOS.listWorkflowSteps(workflowID)).toBeUndefined();
      }
      const again = await DBOS.startWorkflow(workflow, { workflowID: 'a' })('y');
      expect(await again.getResult()).toEqual(['y', 'first', 'second']);
      expect(calls).toEqual(['a first', 'b first', 'a first', 'a second']);
    });

    test('frees its place in the queue', async () => {
      const { DBOS, other, workflow, haltFor } = await setup(dialect);
      await DBOS.registerQueue('narrow', { globalConcurrency: 1 });
      const halts = new Map(['a', 'b', 'c'].map((workflowID) => [workflowID, haltFor(workflowID)]));
      for (const workflowID of halts.keys()) {
        await DBOS.startWorkflow(workflow, { workflowID, queueName: 'narrow' })('x');
      }

      await halts.get('a')?.reached;
      await other.deleteWorkflow('a');
      await halts.get('b')?.reached;
      await DBOS.deleteWorkflow('b');
      await halts.get('c')?.reached;

      for (const halt of halts.values()) halt.release();
      expect(await DBOS.retrieveWorkflow('c').getResult()).toEqual(DONE);
    });

    test('with its children ends both', async () => {
      const { DBOS, other, parent, calls, haltFor } = await setup(dialect);
      const halt = haltFor('child');
      const handle = await DBOS.startWorkflow(parent, { workflowID: 'parent' })();
      await halt.reached;

      await other.deleteWorkflows(['parent'], true);

      await expect(handle.getResult()).rejects.toMatchObject(gone);
      halt.release();
      expect(await DBOS.getWorkflowStatus('child')).toBeNull();
      expect(await DBOS.getWorkflowStatus('parent')).toBeNull();
      expect(calls).toEqual(['child first']);
    });

    test('fails the handles of other processes, and ends waits for several', async () => {
      const { DBOS, url, workflow } = await setup(dialect);
      const client = await connect(url);
      const waiting = await client.enqueue({ workflowName: 'workflow', queueName: 'nowhere' });
      const retrieved = DBOS.retrieveWorkflow(waiting.workflowID);
      const enqueued = await DBOS.startWorkflow(workflow, { queueName: 'nowhere' })('x');
      const ended = await DBOS.startWorkflow(workflow)('y');
      await ended.getResult();
      const failures = [waiting.getResult(), retrieved.getResult(), client.getResult(waiting.workflowID)].map(
        failureOf,
      );
      // They have looked when a later look of the same process has found something.
      for (const one of [client, DBOS]) await one.getResult(ended.workflowID);

      await DBOS.deleteWorkflows([waiting.workflowID, enqueued.workflowID]);

      expect(await Promise.all(failures)).toMatchObject([gone, gone, gone]);
      await expect(enqueued.getResult()).rejects.toMatchObject(gone);
      expect((await DBOS.waitFirst([DBOS.retrieveWorkflow('never'), enqueued])).workflowID).toBe(enqueued.workflowID);
      expect(await client.waitAll([waiting])).toEqual([waiting]);
    });

    test('fails its parent, also after a recovery', async () => {
      const { first, second, url } = await createGenerations(dialect);
      const stage: Stage = { halts: new Map([['child', newHalt()]]), calls: [] };
      const { parent } = registerSteps(first, stage);
      registerSteps(second, stage);
      const reached = stage.halts.get('child')?.reached;
      await first.launch();
      await first.startWorkflow(parent, { workflowID: 'parent' })();
      await reached;
      await first.shutdown();

      const client = await connect(url);
      await client.deleteWorkflow('child');
      await second.launch();

      await expect(second.retrieveWorkflow('parent').getResult()).rejects.toMatchObject(gone);
    });

    test('is told from importing its parent first', async () => {
      const { DBOS, parent, haltFor } = await setup(dialect);
      const halt = haltFor('child');
      await DBOS.startWorkflow(parent, { workflowID: 'parent' })();
      await halt.reached;
      const exported: ExportedWorkflow[] = [];
      for await (const one of DBOS.exportWorkflows()) exported.push(one);
      halt.release();
      const { DBOS: there } = await createEngine(dialect, { applicationVersion: 'v1' });
      registerSteps(there, { halts: new Map(), calls: [] });
      await there.launch();

      // Both may have been created in the same millisecond, which does not tell their order.
      const isOfParent = (one: ExportedWorkflow): boolean => one.workflow_status.workflow_uuid === 'parent';
      await there.importWorkflows(exported.filter(isOfParent), { activeWorkflows: 'enqueue' });
      await until(async () => (await there.getWorkflowStatus('parent'))?.status === 'PENDING');
      await there.importWorkflows(
        exported.filter((one) => !isOfParent(one)),
        { activeWorkflows: 'enqueue' },
      );

      expect(await there.retrieveWorkflow('parent').getResult()).toEqual(['of parent', 'first', 'second']);
    });

    test('by itself ends it', async () => {
      const { DBOS } = await createEngine(dialect);
      const suicidal = DBOS.registerWorkflow(() => DBOS.deleteWorkflow(DBOS.workflowID ?? ''), { name: 'suicidal' });
      await DBOS.launch();

      await expect(DBOS.withNextWorkflowID('w', () => suicidal())).rejects.toMatchObject(gone);

      expect(await DBOS.getWorkflowStatus('w')).toBeNull();
    });
  });

  describe('forking', () => {
    test('a workflow that runs leaves it running', async () => {
      const { DBOS, other, workflow, calls, haltFor, steps } = await setup(dialect);
      const halt = haltFor('w');
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })('x');
      await halt.reached;
      await until(async () => (await steps('w'))?.length === 1);

      const fork = await other.withNextWorkflowID('fork', () => other.forkWorkflow('w', 1));
      const named = await other.forkWorkflow('w', 0, { newWorkflowID: 'named' });

      expect(await fork.getResult()).toEqual(DONE);
      expect(await named.getResult()).toEqual(DONE);
      expect((await DBOS.getWorkflowStatus('w'))?.status).toBe('PENDING');
      halt.release();
      expect(await handle.getResult()).toEqual(DONE);
      expect(calls.toSorted()).toEqual(['w first', 'w second', 'fork second', 'named first', 'named second'].sort());
      expect(await steps('fork')).toEqual(['first', 'DBOS.setEvent', 'second']);
      expect(await DBOS.getWorkflowStatus('fork')).toMatchObject({ forkedFrom: 'w', applicationVersion: 'v1' });
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ wasForkedFrom: true });
    });

    test('from a failure runs what has failed with the code of this process', async () => {
      const { DBOS: first, url } = await createEngine(dialect, { applicationVersion: 'v1' });
      const config = { systemDatabaseUrl: url, applicationVersion: 'v2' };
      const { DBOS: second } = await createEngine(dialect, config);
      const register = (DBOS: DBOSInstance, isFixed: boolean) =>
        DBOS.registerWorkflow(
          async (n: number) => {
            const before = await DBOS.runStep(async () => n, { name: 'before' });
            return DBOS.runStep(() => (isFixed ? Promise.resolve(before + 1) : Promise.reject(new Error('broken'))), {
              name: 'work',
            });
          },
          { name: 'work' },
        );
      const broken = register(first, false);
      register(second, true);
      await first.launch();
      for (const n of [1, 2]) await failureOf(first.withNextWorkflowID(`w${n}`, () => broken(n)));
      await second.launch();

      const forks = await second.forkFromFailure<number>(['w1', 'w2'], { fromLastFailure: true });

      expect(await Promise.all(forks.map((fork) => fork.getResult()))).toEqual([2, 3]);
      const [fork] = forks;
      expect(await fork?.getStatus()).toMatchObject({ applicationVersion: 'v2', forkedFrom: 'w1' });
    });
  });

  describe('rewinding', () => {
    test('lets a workflow that has ended run again from a step', async () => {
      const { DBOS, other, workflow, calls, steps } = await setup(dialect);
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })('x');
      await handle.getResult();

      const rewound = await other.rewindWorkflow('w', { startStep: 1 });

      expect(await rewound.getResult()).toEqual(DONE);
      expect(calls).toEqual(['w first', 'w second', 'w second']);
      expect(await steps('w')).toEqual(['first', 'DBOS.setEvent', 'second']);
      expect(await DBOS.getEvent('w', 'progress', 0)).toBe('half');
      expect(await DBOS.getResult('w')).toEqual(DONE);
    });

    test('of a workflow that runs is refused, and of two at once one is', async () => {
      const { DBOS, other, workflow, calls, haltFor } = await setup(dialect);
      const halt = haltFor('w');
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })('x');
      await halt.reached;
      await expect(other.rewindWorkflow('w')).rejects.toThrow('is PENDING');
      halt.release();
      await handle.getResult();
      const second = haltFor('w');

      const ends = await Promise.allSettled([DBOS.rewindWorkflow('w'), other.rewindWorkflow('w')]);
      second.release();

      expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(await DBOS.getResult('w')).toEqual(DONE);
      expect(calls).toEqual(['w first', 'w second', 'w first', 'w second']);
    });
  });

  test('resuming a cancelled workflow from two engines at once lets it end once', async () => {
    const { DBOS, other, workflow, calls, haltFor, steps } = await setup(dialect);
    const halt = haltFor('w');
    await DBOS.startWorkflow(workflow, { workflowID: 'w' })('x');
    await halt.reached;
    await until(async () => (await steps('w'))?.length === 1);
    await other.cancelWorkflow('w');
    halt.release();

    const handles = await Promise.all([DBOS.resumeWorkflow('w'), other.resumeWorkflow('w'), DBOS.resumeWorkflow('w')]);

    for (const handle of handles) expect(await handle.getResult()).toEqual(DONE);
    expect(calls.filter((call) => call === 'w first')).toHaveLength(1);
    expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS', output: DONE });
  });

  describe('in workflow code', () => {
    test('the verbs are recorded under their names, and repeated without harm when a record was lost', async () => {
      const { DBOS } = await createEngine(dialect);
      const runs: string[] = [];
      const target = DBOS.registerWorkflow(async () => runs.push(DBOS.workflowID ?? ''), { name: 'target' });
      const halts = [newHalt(), newHalt()];
      const halt = (): Halt | undefined => halts.find((one) => !reached.has(one));
      const reached = new Set<Halt>();
      const manager = DBOS.registerWorkflow(
        async () => {
          const fork = await DBOS.forkWorkflow('t', 0);
          const forks = await DBOS.forkWorkflows(['t', 't'].map((workflowID) => ({ workflowID, startStep: 0 })));
          const failed = await DBOS.forkFromFailure(['t'], { fromStep: 0 });
          await DBOS.waitAll([fork, ...forks, ...failed]);
          await (await DBOS.rewindWorkflow('t')).getResult();
          await DBOS.deleteWorkflow('spare');
          const here = halt();
          if (here) reached.add(here);
          await here?.here();
          return [fork, ...forks, ...failed].map(({ workflowID }) => workflowID);
        },
        { name: 'manager' },
      );
      await DBOS.launch();
      for (const workflowID of ['t', 'spare']) await DBOS.withNextWorkflowID(workflowID, () => target());
      await DBOS.startWorkflow(manager, { workflowID: 'm' })();
      await halts[0]?.reached;

      // As if the process had died before any of the records was written.
      const { database } = engineOf(DBOS).runtime;
      await DBOS.cancelWorkflow('m');
      halts[0]?.release();
      await database.run(sql`DELETE FROM ${table('operation_outputs')} WHERE workflow_uuid = 'm'`);
      const resumed = await DBOS.resumeWorkflow('m');
      await halts[1]?.reached;
      halts[1]?.release();

      expect(await resumed.getResult()).toEqual(['m-0', 'm-1-0', 'm-1-1', 'm-2-0']);
      expect(runs.toSorted()).toEqual(['m-0', 'm-1-0', 'm-1-1', 'm-2-0', 'spare', 't', 't']);
      expect((await DBOS.listWorkflowSteps('m'))?.map(({ name }) => name)).toEqual([
        'DBOS.forkWorkflow',
        'DBOS.forkWorkflow',
        'DBOS.forkFromFailure',
        'DBOS.waitAll',
        'DBOS.rewindWorkflow',
        'DBOS.getResult',
        'DBOS.deleteWorkflow',
      ]);
    });

    test('collecting garbage, timing out and renaming are recorded too', async () => {
      const { DBOS } = await createEngine(dialect);
      const janitor = DBOS.registerWorkflow(
        async () => [
          await DBOS.garbageCollect({ cutoffEpochTimestampMs: Date.now() + 60_000 }),
          await DBOS.globalTimeout(1),
          await DBOS.renameApplication('nobody', 'test'),
        ],
        { name: 'janitor' },
      );
      const quick = DBOS.registerWorkflow(async () => {}, { name: 'quick' });
      await DBOS.launch();
      await quick();

      const results = await DBOS.withNextWorkflowID('w', () => janitor());

      const none = { queues: 0, schedules: 0, versions: 0, workflows: 0, steps: 0 };
      expect(results).toEqual([{ workflows: 1, orphans: 0 }, 0, none]);
      const steps = (await DBOS.listWorkflowSteps('w'))?.map(({ name }) => name);
      expect(steps).toEqual(['DBOS.garbageCollect', 'DBOS.globalTimeout', 'DBOS.renameApplication']);
    });
  });
});
