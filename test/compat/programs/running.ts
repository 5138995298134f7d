// What running workflows see of themselves, how waits poll, and what a shutdown waits for.
import { randomUUID } from 'node:crypto';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { configure, failureOf, print, sleep, sql, within } from '../program.js';

const own = (): string => DBOS.workflowID ?? '';

const seesStatus = DBOS.registerWorkflow(async () => (await DBOS.getWorkflowStatus(own()))?.status, { name: 'status' });
const seesHandle = DBOS.registerWorkflow(async () => (await DBOS.retrieveWorkflow(own()).getStatus())?.status, {
  name: 'handle',
});
const seesList = DBOS.registerWorkflow(
  async () => (await DBOS.listWorkflows({ workflowIDs: [own()] })).map(({ status }) => status),
  { name: 'list' },
);
const seesStream = DBOS.registerWorkflow(
  async () => {
    await DBOS.writeStream('values', 1);
    await DBOS.writeStream('values', 2);
    await DBOS.closeStream('values');
    const values: unknown[] = [];
    for await (const value of DBOS.readStream(own(), 'values')) values.push(value);
    return values;
  },
  { name: 'stream' },
);

const waiting = DBOS.registerWorkflow(async (key: string) => DBOS.recv(key, { timeoutSeconds: 30 }), {
  name: 'waiting',
});

const stepOutside = (): unknown => DBOS.runStep((() => 7) as unknown as () => Promise<number>, { name: 'sync' });

let ended: string[] = [];
const grandchild = DBOS.registerWorkflow(
  async () => {
    await sleep(150);
    ended.push('grandchild');
  },
  { name: 'grandchild' },
);
const child = DBOS.registerWorkflow(
  async () => {
    await sleep(150);
    await DBOS.startWorkflow(grandchild)();
    ended.push('child');
  },
  { name: 'child' },
);
const parent = DBOS.registerWorkflow(
  async () => {
    await sleep(150);
    await DBOS.startWorkflow(child)();
    ended.push('parent');
  },
  { name: 'parent' },
);

/** Finishes a workflow as a program would that sends no notifications. */
async function finishSilently(workflowID: string): Promise<void> {
  await sql(`UPDATE workflow_status SET status = 'CANCELLED' WHERE workflow_uuid = '${workflowID}'`);
}

async function msUntil(workflowID: string, wait: () => Promise<unknown>): Promise<boolean> {
  const waited = failureOf(wait);
  await sleep(200);
  await finishSilently(workflowID);
  const begun = Date.now();
  await waited;
  return Date.now() - begun < 900;
}

async function main(): Promise<void> {
  configure();
  await DBOS.launch();
  await DBOS.registerQueue('idle', { concurrency: 1 });
  const found = await within({
    'its own status': () => seesStatus(),
    'its own handle': () => seesHandle(),
    'itself in a list': () => seesList(),
    'its own stream': () => seesStream(),
    'polling for a result': async () => {
      const { workflowID } = await DBOS.startWorkflow(waiting, {
        queueName: 'idle',
        enqueueOptions: { delaySeconds: 600 },
      })('none');
      return msUntil(workflowID, () => DBOS.getResult(workflowID, { timeoutSeconds: 20, pollingIntervalMs: 50 }));
    },
    'polling for the first of several': async () => {
      const handles = await Promise.all(
        [1, 2].map(() =>
          DBOS.startWorkflow(waiting, { queueName: 'idle', enqueueOptions: { delaySeconds: 600 } })('none'),
        ),
      );
      return msUntil(handles[0]?.workflowID ?? '', () => DBOS.waitFirst(handles, { pollingIntervalMs: 50 }));
    },
    'a function that is not async, as a step': async () => {
      const result = stepOutside();
      return [typeof (result as Promise<unknown>).then, await result];
    },
    'a stream of a workflow that does not exist': () =>
      failureOf(async () => {
        const values = DBOS.readStream(randomUUID(), 'absent', { timeoutSeconds: 0.2 } as object);
        return (await values.next()).done;
      }),
  });
  ended = [];
  await DBOS.startWorkflow(parent)();
  await DBOS.shutdown({ workflowCompletionTimeoutMS: 10_000 });
  print({ ...found, 'what a shutdown waits for': ended });
}

void main();
