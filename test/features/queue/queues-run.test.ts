import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { WorkflowQueue } from '../../../src/faces/library/workflow-queue.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import type { WorkflowHandle } from '../../../src/operator/outcome.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { failureOf } from '../../run/succession.js';

/** A workflow that counts who runs, and ends when it is let go. */
function registerGate(DBOS: DBOSInstance, name = 'gated') {
  const gates = new Map<string, ReturnType<typeof deferred<void>>>();
  const started: string[] = [];
  const gateOf = (id: string) => {
    const gate = gates.get(id) ?? deferred<void>();
    gates.set(id, gate);
    return gate;
  };
  const arrivals: { count: number; resolve: () => void }[] = [];
  const workflow = DBOS.registerWorkflow(
    async (id: string) => {
      started.push(id);
      for (const arrival of arrivals) if (started.length >= arrival.count) arrival.resolve();
      await gateOf(id).promise;
      return id;
    },
    { name },
  );
  return {
    workflow,
    started,
    release: (...ids: string[]) => ids.forEach((id) => gateOf(id).resolve()),
    /** Resolves when so many have started. */
    startedCount(count: number): Promise<void> {
      if (started.length >= count) return Promise.resolve();
      const arrived = deferred<void>();
      arrivals.push({ count, resolve: () => arrived.resolve() });
      return arrived.promise;
    },
  };
}

async function resultsOf<R>(handles: readonly WorkflowHandle<R>[]): Promise<R[]> {
  return Promise.all(handles.map((handle) => handle.getResult()));
}

/** How many workflows of the queue run, and how many wait. */
async function countsOf(DBOS: DBOSInstance): Promise<[running: number, waiting: number]> {
  const [stats] = await DBOS.getQueueStats({ queueName: 'q' });
  return [stats?.running ?? 0, stats?.enqueued ?? 0];
}

describe('a queue', () => {
  forEachDialect((dialect) => {
    test('runs what is enqueued, at once and in order', async () => {
      const { DBOS } = await createEngine(dialect);
      const order: number[] = [];
      const workflow = DBOS.registerWorkflow(
        async (n: number) => {
          order.push(n);
          return n * 2;
        },
        { name: 'double' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 1 });

      const handles = [];
      for (let n = 0; n < 20; n += 1) {
        handles.push(await DBOS.startWorkflow(workflow, { queueName: 'q', workflowID: `w-${n}` })(n));
      }

      expect(await resultsOf(handles)).toEqual(Array.from({ length: 20 }, (_, n) => n * 2));
      expect(order).toEqual(Array.from({ length: 20 }, (_, n) => n));
    });

    test('takes lower priorities first, then the order of the calls', async () => {
      const { DBOS } = await createEngine(dialect);
      const gate = registerGate(DBOS);
      await DBOS.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 1 });
      const first = await DBOS.startWorkflow(gate.workflow, { queueName: 'q' })('first');
      await gate.startedCount(1);

      const handles = await DBOS.startWorkflows(
        gate.workflow,
        [5, 1, 3, 1].map((priority, n) => ({ args: [`p${priority}-${n}`], enqueueOptions: { priority } })),
        { queueName: 'q' },
      );
      gate.release('first', 'p1-1', 'p1-3', 'p3-2', 'p5-0');

      await resultsOf([first, ...handles]);
      expect(gate.started).toEqual(['first', 'p1-1', 'p1-3', 'p3-2', 'p5-0']);
    });

    test('never runs more than its global concurrency, and goes on when one ends', async () => {
      const { DBOS } = await createEngine(dialect);
      const gate = registerGate(DBOS);
      await DBOS.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 2 });

      const ids = ['a', 'b', 'c', 'd'];
      const handles = await DBOS.startWorkflows(
        gate.workflow,
        ids.map((id) => ({ args: [id] })),
        { queueName: 'q' },
      );
      await gate.startedCount(2);
      expect(await countsOf(DBOS)).toEqual([2, 2]);
      expect(gate.started).toEqual(['a', 'b']);

      gate.release('b');
      await gate.startedCount(3);
      expect(gate.started).toEqual(['a', 'b', 'c']);

      gate.release('a', 'c', 'd');
      expect(await resultsOf(handles)).toEqual(ids);
    });

    test('has a limit for each process', async () => {
      const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1' });
      const { DBOS: other } = await createEngine(dialect, { applicationVersion: 'v1', systemDatabaseUrl: url });
      const gates = [registerGate(DBOS), registerGate(other)] as const;
      await DBOS.launch();
      await DBOS.registerQueue('q', { workerConcurrency: 2 });
      await other.launch();

      const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
      const handles = await DBOS.startWorkflows(
        gates[0].workflow,
        ids.map((id) => ({ args: [id] })),
        { queueName: 'q' },
      );
      await Promise.all(gates.map((gate) => gate.startedCount(2)));
      expect(await countsOf(DBOS)).toEqual([4, 2]);
      expect(gates.map((gate) => gate.started.length)).toEqual([2, 2]);

      gates.forEach((gate) => gate.release(...ids));
      expect(await resultsOf(handles)).toEqual(ids);
    });

    test('starts no more in a period than its rate limit, and goes on when the period is over', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async (n: number) => n, { name: 'quick' });
      await DBOS.launch();
      await DBOS.registerQueue('q', { rateLimit: { limitPerPeriod: 3, periodSec: 0.4 } });

      const starts = Array.from({ length: 8 }, (_, n) => ({ args: [n] as [number] }));
      const handles = await DBOS.startWorkflows(workflow, starts, { queueName: 'q' });
      await resultsOf(handles);

      const times = await Promise.all(handles.map(async (handle) => (await handle.getStatus())?.dequeuedAt ?? 0));
      const sorted = times.sort((a, b) => a - b);
      // Every fourth start is at least a period after the one three before it.
      for (let n = 3; n < sorted.length; n += 1) {
        expect((sorted[n] ?? 0) - (sorted[n - 3] ?? 0)).toBeGreaterThanOrEqual(400);
      }
    });

    test('can be changed while it is busy, by another process too', async () => {
      const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1' });
      const { DBOS: operator } = await createEngine(dialect, { applicationVersion: 'v2', systemDatabaseUrl: url });
      const gate = registerGate(DBOS);
      await DBOS.launch();
      await operator.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 1 });
      const ids = ['a', 'b', 'c', 'd'];
      const handles = await DBOS.startWorkflows(
        gate.workflow,
        ids.map((id) => ({ args: [id] })),
        { queueName: 'q' },
      );
      await gate.startedCount(1);

      const queue = await operator.retrieveQueue('q');
      await queue?.setGlobalConcurrency(3);
      await gate.startedCount(3);

      expect(gate.started).toEqual(['a', 'b', 'c']);
      expect(await queue?.getGlobalConcurrency()).toBe(3);
      gate.release(...ids);
      expect(await resultsOf(handles)).toEqual(ids);
    });

    test('that is paused starts nothing until it is resumed', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'ran', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      await DBOS.pauseQueue('q');

      const handle = await DBOS.startWorkflow(workflow, { queueName: 'q' })();
      expect(await DBOS.explainWorkflow(handle.workflowID)).toMatchObject({ reason: 'paused', status: 'ENQUEUED' });

      await DBOS.resumeQueue('q');
      expect(await handle.getResult()).toBe('ran');
    });

    test('that is registered after something was enqueued serves it', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'ran', { name: 'workflow' });
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(workflow, { queueName: 'later' })();
      expect(await DBOS.explainWorkflow(handle.workflowID)).toMatchObject({ reason: 'queue-not-served' });
      await DBOS.registerQueue('later');

      expect(await handle.getResult()).toBe('ran');
    });

    test('that is defined in memory is served by its process', async () => {
      const { DBOS } = await createEngine(dialect);
      const queue = new WorkflowQueue('memory', { workerConcurrency: 1 }, DBOS);
      const workflow = DBOS.registerWorkflow(async () => 'ran', { name: 'workflow' });
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(workflow, { queueName: queue.name })();

      expect(await handle.getResult()).toBe('ran');
      expect(queue.databaseBacked).toBe(false);
      expect((await failureOf(queue.setWorkerConcurrency(2))).message).toContain('Cannot configure queue');
      expect(() => new WorkflowQueue('memory', {}, DBOS)).toThrow("Workflow Queue 'memory' defined multiple times");
    });

    test('not in listenQueues is left to others', async () => {
      const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', listenQueues: ['mine'] });
      const { DBOS: other } = await createEngine(dialect, { applicationVersion: 'v1', systemDatabaseUrl: url });
      const workflow = DBOS.registerWorkflow(async () => 'here', { name: 'workflow' });
      other.registerWorkflow(async () => 'there', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('mine');
      await DBOS.registerQueue('theirs');

      const theirs = await DBOS.startWorkflow(workflow, { queueName: 'theirs' })();
      const mine = await DBOS.startWorkflow(workflow, { queueName: 'mine' })();
      expect(await mine.getResult()).toBe('here');
      expect(await DBOS.explainWorkflow(theirs.workflowID)).toMatchObject({ reason: 'queue-not-served' });
      await other.launch();

      expect(await theirs.getResult()).toBe('there');
    });

    test('gives back a workflow whose instance is missing here, to one who has it', async () => {
      const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1' });
      const { DBOS: other } = await createEngine(dialect, { applicationVersion: 'v1', systemDatabaseUrl: url });
      other.registerWorkflow(async () => 'there', { name: 'rare' });
      await DBOS.launch();
      await DBOS.registerQueue('q');

      const handle = await DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'rare', appVersion: 'v1' });
      expect(await DBOS.explainWorkflow(handle.workflowID)).toMatchObject({ reason: 'function-not-registered' });
      await other.launch();

      expect(await handle.getResult()).toBe('there');
    });
  });
});

describe('the cap on what a process runs', () => {
  forEachDialect((dialect) => {
    test('leaves out runs that wait, so that parents do not keep their own children from starting', async () => {
      const { DBOS } = await createEngine(dialect, { maxConcurrentWorkflows: 2 });
      const child = DBOS.registerWorkflow(async (n: number) => n, { name: 'child' });
      const parent = DBOS.registerWorkflow(
        async (n: number) => {
          const handle = await DBOS.startWorkflow(child, { queueName: 'q' })(n);
          await DBOS.sleep(1);
          return handle.getResult();
        },
        { name: 'parent' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q');

      const starts = [0, 1, 2, 3, 4].map((n) => ({ args: [n] as [number] }));
      const handles = await DBOS.startWorkflows(parent, starts, { queueName: 'q' });

      expect(await resultsOf(handles)).toEqual([0, 1, 2, 3, 4]);
    });
  });
});

describe('a partitioned queue', () => {
  forEachDialect((dialect) => {
    test('keeps its limits for each partition', async () => {
      const { DBOS } = await createEngine(dialect);
      const gate = registerGate(DBOS);
      await DBOS.launch();
      await DBOS.registerQueue('q', { partitionConcurrency: 1 });
      const ids = ['a1', 'a2', 'b1', 'b2', 'c1'];
      const handles = await DBOS.startWorkflows(
        gate.workflow,
        ids.map((id) => ({ args: [id], enqueueOptions: { queuePartitionKey: id[0] } })),
        { queueName: 'q' },
      );
      await gate.startedCount(3);
      expect(await countsOf(DBOS)).toEqual([3, 2]);
      expect([...gate.started].sort()).toEqual(['a1', 'b1', 'c1']);

      gate.release('b1');
      await gate.startedCount(4);
      expect(gate.started.at(-1)).toBe('b2');

      gate.release(...ids);
      expect(await resultsOf(handles)).toEqual(ids);
    });

    test('lets no busy partition keep the others from their turn', async () => {
      const { DBOS } = await createEngine(dialect);
      const gate = registerGate(DBOS);
      const order: string[] = [];
      const workflow = DBOS.registerWorkflow(
        async (id: string) => {
          order.push(id);
        },
        { name: 'quick' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 1, partitionConcurrency: 1 });
      // All wait before one of them starts.
      const enqueueOptions = { queuePartitionKey: 'other' };
      await DBOS.startWorkflow(gate.workflow, { queueName: 'q', enqueueOptions })('other');
      await gate.startedCount(1);
      const hot = Array.from({ length: 30 }, (_, n) => `hot-${n}`);
      const cold = ['cold-0', 'cold-1', 'cold-2'];
      const keyOf = (id: string) => id.split('-')[0];
      const handles = await DBOS.startWorkflows(
        workflow,
        [...hot, ...cold].map((id) => ({ args: [id], enqueueOptions: { queuePartitionKey: keyOf(id) } })),
        { queueName: 'q' },
      );

      gate.release('other');
      await resultsOf(handles);

      // They take turns while both have work. Which one comes first is open.
      const turns = ['hot', 'cold', 'hot', 'cold', 'hot', 'cold'];
      const [first] = order.map(keyOf);
      expect(order.slice(0, 6).map(keyOf)).toEqual(first === 'hot' ? turns : turns.reverse());
      expect(order.filter((id) => keyOf(id) === 'hot')).toEqual(hot);
      expect(order.filter((id) => keyOf(id) === 'cold')).toEqual(cold);
    });

    test('refuses a workflow without a key', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q', { partitionConcurrency: 1 });

      const error = await failureOf(DBOS.startWorkflow(workflow, { queueName: 'q' })());

      expect(error.name).toBe('InvalidQueueError');
    });

    test('has a rate limit for each partition', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async (id: string) => id, { name: 'quick' });
      await DBOS.launch();
      await DBOS.registerQueue('q', { partitionRateLimit: { limitPerPeriod: 1, periodSec: 0.3 } });
      const ids = ['a1', 'a2', 'b1', 'b2'];
      const handles = await DBOS.startWorkflows(
        workflow,
        ids.map((id) => ({ args: [id], enqueueOptions: { queuePartitionKey: id[0] } })),
        { queueName: 'q' },
      );
      await resultsOf(handles);

      const [a1, a2, b1, b2] = await Promise.all(
        handles.map(async (handle) => (await handle.getStatus())?.dequeuedAt ?? 0),
      );
      expect((a2 ?? 0) - (a1 ?? 0)).toBeGreaterThanOrEqual(300);
      expect((b2 ?? 0) - (b1 ?? 0)).toBeGreaterThanOrEqual(300);
    });
  });
});
