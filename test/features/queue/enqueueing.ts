// What tests of enqueueing share: an engine with a paused queue, and a workflow that is recovered by another process.
import type { DBOSInstance, EnqueueOptions, StartWorkflowParams } from '../../../src/index.js';
import type { TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import type { ManualClock } from '../../rig/manual-clock.js';
import { createGenerations, newHalt } from '../../run/succession.js';

/** A launched engine with a workflow that gives back its arguments, and a queue `q` that is paused. */
export async function setupEnqueueing(dialect: TestDialect, clock?: ManualClock) {
  const config = { name: 'shop', executorID: 'ex', applicationVersion: 'v1' };
  const { DBOS, url } = await createEngine(dialect, config, clock?.settings);
  const echo = DBOS.registerWorkflow(async (...args: unknown[]) => args, { name: 'echo' });
  /** Runs a function as workflow `parent`. */
  let body: () => Promise<unknown> = async () => {};
  const parent = DBOS.registerWorkflow(async () => body(), { name: 'parent' });
  const inWorkflow = <R>(code: () => Promise<R>): Promise<R> => {
    body = code;
    return DBOS.withNextWorkflowID('parent', () => parent()) as Promise<R>;
  };
  await DBOS.launch();
  await DBOS.registerQueue('q');
  await DBOS.pauseQueue('q');
  const enqueue = (enqueueOptions: EnqueueOptions = {}, params: StartWorkflowParams = {}) =>
    DBOS.startWorkflow(echo, { queueName: 'q', enqueueOptions, ...params })('x');
  return { DBOS, url, echo, enqueue, inWorkflow };
}

/**
 * Runs the body as workflow `parent` in one process, which ends before the workflow does, and again in another one.
 * Gives what the body has returned in each, and the steps.
 */
export async function replayParent<R>(dialect: TestDialect, body: (DBOS: DBOSInstance) => Promise<R>) {
  const { first, second } = await createGenerations(dialect);
  const halt = newHalt();
  const results: R[] = [];
  for (const DBOS of [first, second]) {
    DBOS.registerWorkflow(async (...args: unknown[]) => args, { name: 'echo' });
    DBOS.registerWorkflow(
      async () => {
        results.push(await body(DBOS));
        if (DBOS === first) await halt.here();
      },
      { name: 'parent' },
    );
  }
  await first.launch();
  await first.registerQueue('q');
  await first.pauseQueue('q');
  await first.registerQueue('parents');
  const handle = await first.enqueueWorkflowWithOptions({
    queueName: 'parents',
    workflowName: 'parent',
    workflowID: 'parent',
  });
  await halt.reached;
  await first.shutdown();
  await second.launch();
  await second.retrieveWorkflow(handle.workflowID).getResult();
  const steps = (await second.listWorkflowSteps('parent'))!;
  return { results, steps, DBOS: second };
}
