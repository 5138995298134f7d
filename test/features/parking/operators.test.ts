// What users see of a parked workflow and do to it is what they see and do while it waits in memory.
import { expect, test } from 'vitest';
import type { DBOSInstance, ExportedWorkflow, WaitingFor, WorkflowStatus } from '../../../src/index.js';
import { adoptWorkflows } from '../../../src/features/version/adoption.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { createScene, HOUR, isParked, type ParkingScene, untilParked } from './parking-scene.js';

type Mode = 'in memory' | 'parked';
const MODES: readonly Mode[] = ['in memory', 'parked'];

interface Scene extends ParkingScene {
  readonly ran: string[];
}

/** The workflow "w" has run a step and waits for a message on queue "q", and "direct" without a queue. */
async function setup(dialect: TestDialect, mode: Mode): Promise<Scene> {
  const scene = await createScene(dialect, { parkAfterMs: mode === 'parked' ? 10_000 : 0 });
  const { clock, DBOS } = scene;
  const ran: string[] = [];
  const approve = DBOS.registerWorkflow(
    async (name: string) => {
      await DBOS.runStep(async () => Promise.resolve(ran.push(name)), { name: 'ask' });
      return DBOS.recv<string>('approval', 24 * 3600);
    },
    { name: 'approve' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q');
  await DBOS.startWorkflow(approve, { workflowID: 'w', queueName: 'q', enqueueOptions: { deduplicationID: 'd' } })('w');
  await DBOS.startWorkflow(approve, { workflowID: 'direct' })('direct');
  for (const id of ['w', 'direct']) {
    await until(async () => (await DBOS.listWorkflowSteps(id))?.at(-1)?.name === 'DBOS.sleep');
  }
  const begunAt = clock.now();
  if (mode === 'parked') {
    await untilParked(scene, 'w', 10_000);
    await until(() => isParked(DBOS, 'direct'));
  }
  clock.advance(begunAt + 20_000 - clock.now());
  return { ...scene, ran };
}

/** Times of the attempt differ, and what only a parked workflow has. */
function seen(workflow: WorkflowStatus | null | undefined): Partial<WorkflowStatus> | null {
  if (!workflow) return null;
  const { updatedAt: _, dequeuedAt: __, waitingFor: ___, createdAt: ____, completedAt, ...rest } = workflow;
  return { ...rest, completedAt: completedAt && 1 };
}

async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return `${(error as { code?: string }).code}: ${(error as Error).message}`;
  }
}

function untilPending(DBOS: DBOSInstance, workflowID: string): Promise<void> {
  return until(async () => (await DBOS.getWorkflowStatus(workflowID))?.status === 'PENDING');
}

/** What is seen of both workflows, and in lists and counts. */
async function viewOf({ DBOS }: Scene): Promise<Record<string, unknown>> {
  const ids = async (list: Promise<WorkflowStatus[]>) => (await list).map(({ workflowID }) => workflowID).sort();
  const stats = await DBOS.getQueueStats();
  return {
    workflows: [seen(await DBOS.getWorkflowStatus('w')), seen(await DBOS.getWorkflowStatus('direct'))],
    listed: (await DBOS.listWorkflows({})).map(seen),
    pending: await ids(DBOS.listWorkflows({ status: 'PENDING', limit: 10 })),
    delayed: await ids(DBOS.listWorkflows({ status: ['DELAYED', 'ENQUEUED'] })),
    queued: await ids(DBOS.listQueuedWorkflows({})),
    internal: await ids(DBOS.listWorkflows({ queueName: '_dbos_internal_queue' })),
    counts: [await DBOS.countWorkflows({ status: 'PENDING' }), await DBOS.countWorkflows({ status: 'DELAYED' })],
    groups: await DBOS.getWorkflowAggregates({ groupByStatus: true, groupByQueueName: true, selectCount: true }),
    stats: stats.map(({ running, parked, ...rest }) => ({ ...rest, started: running + parked })),
    timeline: (await DBOS.explainWorkflow('w')).status,
  };
}

async function viewOfQueue(DBOS: DBOSInstance): Promise<unknown> {
  const [stats] = await DBOS.getQueueStats({ queueName: 'q' });
  return [seen(await DBOS.getWorkflowStatus('w')), stats && stats.running + stats.parked];
}

/** Each verb, with what it returns. */
const verbs: Record<string, (scene: Scene) => Promise<unknown>> = {
  nothing: () => Promise.resolve(),
  setWorkflowDelay: ({ DBOS }) => DBOS.setWorkflowDelay('w', 7),
  setWorkflowPriority: ({ DBOS }) => DBOS.setWorkflowPriority('w', 3),
  setWorkflowAttributes: ({ DBOS }) => DBOS.setWorkflowAttributes('w', { a: 1 }),
  cancelWorkflow: ({ DBOS }) => DBOS.cancelWorkflow('w'),
  'cancel and resume': async ({ DBOS }) => {
    await DBOS.cancelWorkflow('w');
    await DBOS.resumeWorkflow('w', { queueName: 'q' });
    await untilPending(DBOS, 'w');
  },
  resumeWorkflow: async ({ DBOS }) => {
    await DBOS.resumeWorkflow('w', { queueName: 'q' });
    await untilPending(DBOS, 'w');
  },
  deleteWorkflow: ({ DBOS }) => DBOS.deleteWorkflow('w'),
  rewindWorkflow: ({ DBOS }) => outcomeOf(() => DBOS.rewindWorkflow('w')),
  forkWorkflow: async ({ DBOS }) => {
    const fork = await DBOS.forkWorkflow('w', 1, { newWorkflowID: 'fork' });
    await untilPending(DBOS, 'fork');
    await DBOS.send('fork', 'forked', 'approval');
    return fork.getResult();
  },
  'a second start': ({ DBOS }) =>
    outcomeOf(() =>
      DBOS.enqueueWorkflowWithOptions({ workflowName: 'approve', workflowID: 'w', queueName: 'q' }, 'w').then(
        ({ workflowID }) => workflowID,
      ),
    ),
  'a start with its deduplication ID': ({ DBOS }) =>
    outcomeOf(() =>
      DBOS.enqueueWorkflowWithOptions({ workflowName: 'approve', queueName: 'q', deduplicationID: 'd' }, 'w'),
    ).then((refusal) => String(refusal).split(':')[0]),
  cancelWorkflows: ({ DBOS }) => DBOS.cancelWorkflows(['w', 'direct']),
  resumeWorkflows: async ({ DBOS }) => {
    const resumed = await DBOS.resumeWorkflows(['w', 'direct'], { queueName: 'q' });
    await untilPending(DBOS, 'w');
    await untilPending(DBOS, 'direct');
    return resumed.map(({ workflowID }) => workflowID);
  },
  deleteWorkflows: ({ DBOS }) => DBOS.deleteWorkflows(['w', 'direct']),
  pauseQueue: async ({ DBOS }) => {
    const paused = await DBOS.pauseQueue('q');
    const view = await viewOfQueue(DBOS);
    return { paused, view, resumed: await DBOS.resumeQueue('q') };
  },
  deleteQueue: async ({ DBOS }) => {
    await DBOS.deleteQueue('q');
    const view = await viewOfQueue(DBOS);
    await DBOS.registerQueue('q');
    return view;
  },
  garbageCollect: ({ DBOS }) => DBOS.garbageCollect({ cutoffEpochTimestampMs: Number.MAX_SAFE_INTEGER }).then(() => 0),
  globalTimeout: ({ DBOS, clock }) => DBOS.globalTimeout(clock.now()).then(() => 0),
  'export and import': async ({ DBOS }) => {
    const exported: ExportedWorkflow[] = [];
    for await (const one of DBOS.exportWorkflows({ workflowIDs: ['w'] })) exported.push(one);
    const { status, queue_name, delay_until_epoch_ms } = exported[0]?.workflow_status ?? {};
    await DBOS.deleteWorkflow('w');
    await DBOS.importWorkflows(exported, { activeWorkflows: 'enqueue' });
    await untilPending(DBOS, 'w');
    return [status, queue_name, delay_until_epoch_ms];
  },
  'release to DBOS': async ({ DBOS }) =>
    adoptWorkflows(engineOf(DBOS).runtime, { leftBy: 'everstep', toVersion: 'dbos', applicationVersions: ['v1'] }),
};

forEachDialect((dialect) => {
  test.each(Object.keys(verbs))('is the same in memory and parked: %s', async (verb) => {
    const results: unknown[] = [];
    for (const mode of MODES) {
      const scene = await setup(dialect, mode);
      const returned = await verbs[verb]?.(scene);
      const view = await viewOf(scene);
      const { DBOS, ran } = scene;
      if ((await DBOS.getWorkflowStatus('w'))?.status === 'PENDING') {
        await DBOS.send('w', 'yes', 'approval');
        expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('yes');
      }
      results.push({ returned, view, ran: ran.toSorted(), end: seen(await DBOS.getWorkflowStatus('w')) });
    }

    expect(results[1]).toEqual(results[0]);
  });

  const waits: Record<
    string,
    { wait: (DBOS: DBOSInstance) => Promise<unknown>; waitingFor: (now: number) => WaitingFor[] }
  > = {
    sleep: { wait: (DBOS) => DBOS.sleep(HOUR), waitingFor: (now) => [{ kind: 'sleep', until: now + HOUR }] },
    message: {
      wait: (DBOS) => DBOS.recv('approval', 3600),
      waitingFor: (now) => [{ kind: 'message', topic: 'approval', until: now + HOUR }],
    },
    'message without a topic or a limit': {
      wait: (DBOS) => DBOS.recv(undefined, Infinity),
      waitingFor: () => [{ kind: 'message', topic: null }],
    },
    event: {
      wait: (DBOS) => DBOS.getEvent('other', 'price', 3600),
      waitingFor: (now) => [{ kind: 'event', workflowID: 'other', key: 'price', until: now + HOUR }],
    },
    workflow: {
      wait: (DBOS) => DBOS.retrieveWorkflow('other').getResult(),
      waitingFor: () => [{ kind: 'workflow', workflowID: 'other' }],
    },
    'a message or a time': {
      wait: (DBOS) => DBOS.race([DBOS.recv('approval', Infinity), DBOS.sleep(HOUR)]),
      waitingFor: (now) => [{ kind: 'message', topic: 'approval', until: now + HOUR }],
    },
    'a retry': {
      wait: (DBOS) =>
        DBOS.runStep(() => Promise.reject(new Error('busy')), {
          ...{ name: 'flaky', retriesAllowed: true, intervalSeconds: 3600, maxAttempts: 3 },
        }),
      waitingFor: (now) => [{ kind: 'retry', stepID: 0, failedAttempts: 1, until: now + HOUR }],
    },
  };

  test.each(Object.keys(waits))('a parked workflow says what it waits for: %s', async (kind) => {
    const scene = await createScene(dialect);
    const { clock, DBOS } = scene;
    const { wait, waitingFor } = waits[kind]!;
    const waiter = DBOS.registerWorkflow(() => wait(DBOS), { name: 'waiter' });
    const other = DBOS.registerWorkflow(() => DBOS.runStep(() => new Promise(() => {})), { name: 'other' });
    await DBOS.launch();
    await DBOS.startWorkflow(other, { workflowID: 'other' })();
    const begunAt = clock.now();
    await DBOS.startWorkflow(waiter, { workflowID: 'w' })();
    await untilParked(scene, 'w', 10_000);

    const [listed] = await DBOS.listWorkflows({ workflowIDs: ['w'] });

    expect(listed?.waitingFor).toEqual(waitingFor(begunAt));
    expect((await DBOS.explainWorkflow('w')).details['waitsFor']).toEqual(waitingFor(begunAt));
    expect((await DBOS.getWorkflowStatus('other'))?.waitingFor).toBeUndefined();
  });

  test('a workflow that was parked continues when its paused queue is resumed', async () => {
    const { DBOS } = await setup(dialect, 'parked');
    await DBOS.pauseQueue('q');

    await DBOS.send('w', 'yes', 'approval');

    const woken = await DBOS.getWorkflowStatus('w');
    expect(woken).toMatchObject({ status: 'ENQUEUED', queueName: 'q', delayUntilEpochMS: undefined });
    expect(woken?.waitingFor).toBeUndefined();
    expect((await DBOS.explainWorkflow('w')).reason).toBe('paused');
    await DBOS.resumeQueue('q');
    expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('yes');
  });

  test('a workflow that was woken shows no delay', async () => {
    const scene = await setup(dialect, 'parked');
    const { DBOS } = scene;

    await DBOS.send('w', 'yes', 'approval');
    await DBOS.retrieveWorkflow('w').getResult();

    const { delayUntilEpochMS, waitingFor } = (await DBOS.getWorkflowStatus('w'))!;
    expect([delayUntilEpochMS, waitingFor]).toEqual([undefined, undefined]);
  });
});
