// Races and crashes of those who enqueue: deduplication, debouncing, bulk starts and delays over several processes.
import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { linesOf } from './journal.js';
import { TRANSACTION } from './kill-points.js';
import { excessesOf } from './queue-checker.js';
import { enqueueJobs, expectJobsDone, type QueueScene, setQueueScene, untilAllDone } from './queue-scene.js';
import { idsOf, type Scene } from './setup.js';

const RACERS = 10;
const QUEUE = 'q';
const HOUR_MS = 3_600_000;
/** The workflows that handles were given of, since this line of the journal on. */
function handlesOf(scene: Scene, since = 0): string[] {
  return linesOf(scene.journal.read().slice(since), 'handle').map(({ workflowID }) => workflowID);
}

async function race(scene: QueueScene, policy: 'reject' | 'return-existing', deduplicationID: string): Promise<void> {
  const jobs = idsOf('', 3).map(() => ({ lengthMs: 0, deduplicationID }));
  await Promise.all(scene.workers.map((worker) => worker.perform({ do: 'enqueue', queueName: QUEUE, jobs, policy })));
}

forEachDialect((dialect) => {
  test('of many processes that use one deduplication ID at once, one starts a workflow', async () => {
    const scene = await setQueueScene(dialect, RACERS);
    const { DBOS } = scene.operator;
    await DBOS.registerQueue(QUEUE, { globalConcurrency: 5 });
    // Nothing may end in between: a key is free again when its workflow has ended.
    await DBOS.pauseQueue(QUEUE);

    await race(scene, 'reject', 'key');
    const [winner, ...others] = handlesOf(scene);
    expect(others).toEqual([]);
    const refused = linesOf(scene.journal.read(), 'refused');
    expect(refused.map(({ reason }) => reason)).toEqual(Array(3 * RACERS - 1).fill('DBOSQueueDuplicatedError'));

    const { length: since } = scene.journal.read();
    await race(scene, 'return-existing', 'key');
    expect(handlesOf(scene, since)).toEqual(Array(3 * RACERS).fill(winner));
    expect((await scene.tables()).workflows.size).toBe(1);

    await DBOS.resumeQueue(QUEUE);
    await untilAllDone(scene, 1);
    await DBOS.pauseQueue(QUEUE);
    await race(scene, 'return-existing', 'key');
    expect((await scene.tables()).workflows.size).toBe(2);

    await DBOS.resumeQueue(QUEUE);
    await untilAllDone(scene, 2);
    await expectJobsDone(scene, QUEUE);
  });

  test('deduplication that races with the end of its holder starts no two at once and loses no call', async () => {
    const scene = await setQueueScene(dialect, 4);
    await scene.operator.DBOS.registerQueue(QUEUE, { workerConcurrency: 5 });

    for (let round = 0; round < 6; round += 1) await race(scene, 'return-existing', 'key');
    const handles = handlesOf(scene);
    await untilAllDone(scene, new Set(handles).size);

    expect(handles).toHaveLength(6 * 3 * 4);
    const jobs = await expectJobsDone(scene, QUEUE);
    // Not by the time of the call: it may have been on its way to the database when the one before it ended.
    expect(excessesOf(jobs, { globalConcurrency: 1 })).toEqual([]);
  });

  test('calls of one debounce key from several processes become one workflow with the input of a last call', async () => {
    const scene = await setQueueScene(dialect, 4, { neverPolls: true });
    const { DBOS } = scene.operator;
    const lengthsOf = (index: number) => Array.from({ length: 8 }, (_, call) => 10 * index + call);

    await Promise.all(
      scene.workers.map((worker, index) =>
        worker.perform({ do: 'debounce', key: 'key', periodMs: HOUR_MS, lengths: lengthsOf(index) }),
      ),
    );
    const [workflowID = '', ...others] = new Set(handlesOf(scene));
    expect(others).toEqual([]);
    await DBOS.setWorkflowDelay(workflowID, { delaySeconds: 0.1 });
    await untilAllDone(scene, 1);

    const { input } = (await DBOS.getWorkflowStatus(workflowID)) ?? {};
    const lasts = scene.workers.map((_, index) => [lengthsOf(index).at(-1)]);
    expect(lasts).toContainEqual(input);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(1);
  });

  test('a debounced call is never lost to a workflow that has just begun', async () => {
    const scene = await setQueueScene(dialect, 4);
    const lengths = Array.from({ length: 25 }, () => 0);

    // The period is so short that workflows begin while calls come in.
    await Promise.all(
      scene.workers.map((worker) => worker.perform({ do: 'debounce', key: 'key', periodMs: 5, lengths })),
    );
    const workflowIDs = new Set(handlesOf(scene));
    await untilAllDone(scene, workflowIDs.size);

    const { workflows } = await scene.tables();
    expect([...workflows.keys()].sort()).toEqual([...workflowIDs].sort());
    expect(handlesOf(scene)).toHaveLength(4 * lengths.length);
  });

  test.each(['before', 'sent', 'after'] as const)(
    'a bulk start whose process is killed has happened as a whole or not at all: %s',
    async (moment) => {
      const scene = await setQueueScene(dialect, 1);
      await scene.operator.DBOS.registerQueue(QUEUE, { globalConcurrency: 50 });
      const [doomed] = await scene.launch(1, { killPoint: { label: TRANSACTION, number: 1, moment } });

      // Several statements in one transaction.
      const jobs = idsOf('job', 210).map((workflowID) => ({ workflowID, lengthMs: 0 }));
      doomed?.send({ do: 'enqueueAll', queueName: QUEUE, jobs });
      const exit = await doomed?.exited;
      const { workflows } = await scene.tables();
      await untilAllDone(scene, workflows.size);

      expect(exit, doomed?.log()).toMatchObject({ signal: 'SIGKILL' });
      expect(workflows.size).toBe(moment === 'after' ? jobs.length : 0);
      expect((await expectJobsDone(scene, QUEUE)).length).toBe(workflows.size);
    },
  );

  test('delayed workflows of a process that is killed become due in time', async () => {
    const scene = await setQueueScene(dialect, 2, { neverPolls: true });
    await scene.operator.DBOS.registerQueue(QUEUE, { globalConcurrency: 5 });
    const [doomed] = await scene.launch(1);
    const jobs = idsOf('job', 5).map((workflowID) => ({ workflowID, lengthMs: 0, delaySeconds: 1 }));

    await doomed?.perform({ do: 'enqueue', queueName: QUEUE, jobs });
    await doomed?.kill();
    await untilAllDone(scene, jobs.length);

    const { workflows } = await scene.tables();
    for (const { startedAt, delayUntil, workflowID } of workflows.values()) {
      expect(startedAt, `when "${workflowID}" was started`).toBeGreaterThanOrEqual(delayUntil ?? Infinity);
    }
    await expectJobsDone(scene, QUEUE);
  });

  test('a delay that is moved forth and back by another process is kept', async () => {
    const scene = await setQueueScene(dialect, 2, { neverPolls: true });
    const { DBOS } = scene.operator;
    await DBOS.registerQueue(QUEUE, { globalConcurrency: 5 });
    const workflowIDs = idsOf('job', 6);
    await enqueueJobs(
      scene,
      QUEUE,
      workflowIDs.map((workflowID) => ({ workflowID, lengthMs: 0, delaySeconds: 600 })),
    );

    for (let round = 0; round < 5; round += 1) {
      const delaySeconds = round % 2 === 0 ? 0.2 : 600;
      await Promise.all(
        workflowIDs.map((workflowID) => DBOS.setWorkflowDelay(workflowID, { delaySeconds }).catch(() => {})),
      );
    }
    await untilAllDone(scene, workflowIDs.length);

    for (const { startedAt, delayUntil, workflowID } of (await scene.tables()).workflows.values()) {
      expect(startedAt, `when "${workflowID}" was started`).toBeGreaterThanOrEqual(delayUntil ?? Infinity);
    }
    await expectJobsDone(scene, QUEUE);
  });
});
