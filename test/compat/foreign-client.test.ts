// What the client and a worker of real DBOS do reaches our engine without a poll.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import { onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { patientClock } from '../rig/patient-clock.js';
import { createClient, createNotes, type ForeignClient, isInstalled, startWorker } from './foreign.js';

const HOUR = 3_600_000;

interface Scene {
  readonly DBOS: DBOSInstance;
  readonly client: ForeignClient;
  readonly url: string;
  /** The workflows that sleep at the moment, and those that were started so far. */
  readonly sleeping: ReadonlySet<string>;
  readonly started: readonly string[];
}

async function setup(dialect: TestDialect): Promise<Scene> {
  const { DBOS, url } = await createEngine(
    dialect,
    { applicationVersion: 'v1', executorID: 'ours' },
    { clock: patientClock },
  );
  const sleeping = new Set<string>();
  const started: string[] = [];
  DBOS.registerWorkflow(
    async (ms?: number) => {
      const workflowID = DBOS.workflowID ?? '';
      started.push(workflowID);
      sleeping.add(workflowID);
      try {
        await DBOS.sleep(typeof ms === 'number' ? ms : 0);
      } finally {
        sleeping.delete(workflowID);
      }
    },
    { name: 'sleeper' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q');
  return { DBOS, client: await createClient('dbos-5', url), url, sleeping, started };
}

/** How long it takes from the end of the action until the condition holds. */
async function latency(action: () => Promise<unknown>, isDone: () => boolean): Promise<number> {
  await action();
  const from = performance.now();
  await until(isDone);
  return performance.now() - from;
}

const latencies: Record<string, number> = {};
function note(name: string, ms: number): void {
  latencies[name] = Math.round(ms);
  if (process.env['SHOW_LATENCIES'] !== undefined) onTestFinished(() => console.log(latencies));
}

describe.skipIf(!isInstalled)('DBOS 5.3 beside Everstep', () => {
  onlyOn('postgres', (dialect) => {
    test('workflows that its client enqueues, cancels, resumes and delays start and stop at once', async () => {
      const { client, sleeping, started } = await setup(dialect);
      const enqueue = (workflowID: string, more: object = {}) =>
        client.enqueue({ queueName: 'q', workflowName: 'sleeper', workflowID, ...more }, HOUR);

      note(
        'enqueue',
        await latency(
          () => enqueue('w'),
          () => sleeping.has('w'),
        ),
      );
      note(
        'cancel',
        await latency(
          () => client.cancelWorkflow('w'),
          () => !sleeping.has('w'),
        ),
      );
      note(
        'resume',
        await latency(
          () => client.resumeWorkflow('w'),
          () => sleeping.has('w'),
        ),
      );
      await enqueue('later', { delaySeconds: 3600 });
      note(
        'delay',
        await latency(
          () => client.setWorkflowDelay('later', { delaySeconds: 0.001 }),
          () => sleeping.has('later'),
        ),
      );
      expect(started).toEqual(['w', 'w', 'later']);
    });

    test('a schedule that its client creates fires, and stops when it is deleted', async () => {
      const { client, started } = await setup(dialect);

      const schedule = { scheduleName: 's', workflowName: 'sleeper', schedule: '* * * * * *' };
      await client.createSchedule(schedule);

      // Due at the next full second.
      await until(() => started.length > 0);
      await client.deleteSchedule('s');
    });

    test('a queue that its worker registers is served, and results that it records are returned', async () => {
      const { DBOS, client, url, sleeping } = await setup(dialect);
      await createNotes(url);
      await client.enqueue({ queueName: 'r', workflowName: 'sleeper', workflowID: 'early', appVersion: 'v1' }, HOUR);
      const worker = await startWorker('dbos-5', url, { applicationVersion: 'd1', executorID: 'theirs' });

      note(
        'queue',
        await latency(
          () => worker.call('registerQueue', 'r', {}),
          () => sleeping.has('early'),
        ),
      );

      await worker.call('startNap', 'n', 'r', 50);
      expect(await DBOS.retrieveWorkflow('n').getResult()).toBe('dbos');
      const status = await DBOS.getWorkflowStatus('n');
      note('result', Date.now() - (status?.completedAt ?? status?.updatedAt ?? 0));
    });
  });
});
