// How cancelled, timed-out and dead-lettered workflows look to those who await them.
import { randomUUID } from 'node:crypto';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { describe, failureOf, runProgram, sleep, sql, until } from '../program.js';

const queueName = 'outcomes';

const napping = DBOS.registerWorkflow(
  async () => {
    for (let i = 0; i < 200; i += 1) await DBOS.sleep(50);
  },
  { name: 'napping' },
);

const awaiting = DBOS.registerWorkflow(
  async (how: 'call' | 'handle' | 'retrieved', childID: string) => {
    const caught = async (promise: Promise<unknown>) => {
      const found = await failureOf(() => promise);
      return found;
    };
    if (how === 'call') return DBOS.withNextWorkflowID(childID, () => caught(napping()));
    const handle = await DBOS.startWorkflow(napping, { workflowID: childID })();
    return caught(how === 'handle' ? handle.getResult() : DBOS.retrieveWorkflow(childID).getResult());
  },
  { name: 'awaiting' },
);

const careless = DBOS.registerWorkflow(
  async (childID: string) => {
    const handle = await DBOS.startWorkflow(napping, { workflowID: childID })();
    await handle.getResult();
  },
  { name: 'careless' },
);

const caller = DBOS.registerWorkflow(async () => napping(), { name: 'caller' });

let isReleased = false;
const held = DBOS.registerWorkflow(
  async () => {
    await until(() => isReleased);
    await DBOS.sleep(1);
    return 'done';
  },
  { name: 'held', maxRecoveryAttempts: 3 },
);

let steps = 0;
let release = (): void => {};
const stepping = DBOS.registerWorkflow(
  async () => {
    await DBOS.runStep(
      async () => {
        steps += 1;
        await new Promise<void>((resolve) => (release = resolve));
      },
      { name: 'once' },
    );
    await DBOS.sleep(10);
    return 'stepped';
  },
  { name: 'stepping' },
);

async function cancelSoon(workflowID: string): Promise<void> {
  await until(() => DBOS.getWorkflowStatus(workflowID));
  await DBOS.cancelWorkflow(workflowID);
}

async function awaited(how: 'call' | 'handle' | 'retrieved'): Promise<unknown> {
  const childID = randomUUID();
  const handle = await DBOS.startWorkflow(awaiting)(how, childID);
  await cancelSoon(childID);
  return handle.getResult();
}

async function deadLettered(read: (workflowID: string, own: Promise<unknown>) => Promise<unknown>): Promise<unknown> {
  isReleased = false;
  const handle = await DBOS.startWorkflow(held)();
  await sql(
    `UPDATE workflow_status SET status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' WHERE workflow_uuid = '${handle.workflowID}'`,
  );
  isReleased = true;
  return failureOf(() => read(handle.workflowID, handle.getResult()));
}

async function main(): Promise<void> {
  await runProgram({
    'own handle of a cancelled workflow': async () => {
      const handle = await DBOS.startWorkflow(napping)();
      await DBOS.cancelWorkflow(handle.workflowID);
      return failureOf(() => handle.getResult());
    },
    'direct call of a cancelled workflow': async () => {
      const workflowID = randomUUID();
      void cancelSoon(workflowID);
      return failureOf(() => DBOS.withNextWorkflowID(workflowID, () => napping()));
    },
    'retrieved handle of a cancelled workflow': async () => {
      const handle = await DBOS.startWorkflow(napping)();
      await DBOS.cancelWorkflow(handle.workflowID);
      handle.getResult().catch(() => {});
      return failureOf(() => DBOS.retrieveWorkflow(handle.workflowID).getResult());
    },
    'DBOS.getResult of a cancelled workflow': async () => {
      const handle = await DBOS.startWorkflow(napping)();
      await DBOS.cancelWorkflow(handle.workflowID);
      handle.getResult().catch(() => {});
      return failureOf(() => DBOS.getResult(handle.workflowID));
    },
    'handle of an enqueued workflow that was cancelled': async () => {
      await DBOS.registerQueue(queueName, {});
      const handle = await DBOS.startWorkflow(napping, { queueName })();
      await DBOS.cancelWorkflow(handle.workflowID);
      return failureOf(() => handle.getResult());
    },
    'second start under the ID of a cancelled workflow': async () => {
      const handle = await DBOS.startWorkflow(napping)();
      await DBOS.cancelWorkflow(handle.workflowID);
      await failureOf(() => handle.getResult());
      return failureOf(async () =>
        (await DBOS.startWorkflow(napping, { workflowID: handle.workflowID })()).getResult(),
      );
    },
    'own handle of a timed-out workflow': async () => {
      const handle = await DBOS.startWorkflow(napping, { timeoutMS: 100 })();
      return failureOf(() => handle.getResult());
    },
    'direct call of a timed-out workflow': () => failureOf(() => DBOS.withWorkflowTimeout(100, () => napping())),
    'a child that is called': () => awaited('call'),
    'a child that is started': () => awaited('handle'),
    'a child that is retrieved': () => awaited('retrieved'),
    'own handle of a parent that did not catch': async () => {
      const childID = randomUUID();
      const handle = await DBOS.startWorkflow(careless)(childID);
      await cancelSoon(childID);
      const own = await failureOf(() => handle.getResult());
      const status = await DBOS.getWorkflowStatus(handle.workflowID);
      return { own, status: status?.status, stored: describe(status?.error) };
    },
    'a dead letter': () => deadLettered((_, own) => own),
    'a dead letter, retrieved': () =>
      deadLettered((workflowID, own) => {
        own.catch(() => {});
        return DBOS.retrieveWorkflow(workflowID).getResult();
      }),
    'a parent whose child inherits its deadline': async () => {
      const ends = await Promise.all(
        Array.from({ length: 60 }, async (_, i) => {
          const handle = await DBOS.startWorkflow(caller, { timeoutMS: 400 + i })();
          const own = await failureOf(() => handle.getResult());
          return JSON.stringify({ own, status: (await handle.getStatus())?.status });
        }),
      );
      return [...new Set(ends)].map((end) => JSON.parse(end) as unknown);
    },
    'a step that resolves while its workflow is cancelled': async () => {
      const counts = [];
      for (let i = 0; i < 3; i += 1) {
        steps = 0;
        const handle = await DBOS.startWorkflow(stepping)();
        await until(() => steps > 0);
        release();
        await DBOS.cancelWorkflow(handle.workflowID);
        await sleep(150);
        await DBOS.resumeWorkflow(handle.workflowID);
        // A second execution of the step would wait to be released.
        await until(async () => {
          if (steps > 1) release();
          return (await DBOS.getWorkflowStatus(handle.workflowID))?.status === 'SUCCESS';
        });
        counts.push(steps);
      }
      return counts;
    },
  });
}

void main();
