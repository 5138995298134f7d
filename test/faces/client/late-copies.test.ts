// A copy of a write reaches the server after the write was repeated, and after later ones. It must not undo them.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { DBOSClient } from '../../../src/faces/client/client.js';
import { DebouncerClient } from '../../../src/faces/client/debouncer-client.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { connect } from './scene.js';

type Call = (client: DBOSClient) => Promise<unknown>;

/** Two calls, of which the second counts, and what shows that. The first is held on its way at the pattern. */
interface Succession {
  readonly held: RegExp;
  readonly prepare?: Call;
  readonly first: Call;
  readonly second: Call;
  readonly shows: Call;
  readonly expected: unknown;
}

const statusOf = async (client: DBOSClient) => client.getWorkflow('w');
const scheduleStatus = async (client: DBOSClient) => (await client.getSchedule('s'))?.status;

const SUCCESSIONS: Record<string, Succession> = {
  'a cancellation does not come back after a resume': {
    held: /UPDATE/,
    first: (client) => client.cancelWorkflow('w'),
    second: (client) => client.resumeWorkflow('w'),
    shows: async (client) => (await statusOf(client))?.status,
    expected: 'ENQUEUED',
  },
  'a resume does not come back after a cancellation': {
    held: /COMMIT/,
    prepare: (client) => client.cancelWorkflow('w'),
    first: (client) => client.resumeWorkflow('w'),
    second: (client) => client.cancelWorkflow('w'),
    shows: async (client) => (await statusOf(client))?.status,
    expected: 'CANCELLED',
  },
  'a priority does not go back': {
    held: /UPDATE/,
    first: (client) => client.setWorkflowPriority('w', 13),
    second: (client) => client.setWorkflowPriority('w', 19),
    shows: async (client) => (await statusOf(client))?.priority,
    expected: 19,
  },
  'attributes do not go back': {
    held: /UPDATE/,
    first: (client) => client.setWorkflowAttributes('w', { value: 13 }),
    second: (client) => client.setWorkflowAttributes('w', { value: 19 }),
    shows: async (client) => (await statusOf(client))?.attributes,
    expected: { value: 19 },
  },
  'the settings of a queue do not go back': {
    held: /COMMIT/,
    first: (client) => client.registerQueue('q', { concurrency: 13, onConflict: 'always_update' }),
    second: (client) => client.registerQueue('q', { concurrency: 19, onConflict: 'always_update' }),
    shows: async (client) => (await client.retrieveQueue('q'))?.concurrency,
    expected: 19,
  },
  'a queue is not paused again after it was resumed': {
    held: /paused_queues/,
    first: (client) => client.pauseQueue('q'),
    second: (client) => client.resumeQueue('q'),
    // Only a queue that is paused can be resumed.
    shows: (client) => client.resumeQueue('q'),
    expected: false,
  },
  'a schedule is not paused again after it was resumed': {
    held: /COMMIT/,
    first: (client) => client.pauseSchedule('s'),
    second: (client) => client.resumeSchedule('s'),
    shows: scheduleStatus,
    expected: 'ACTIVE',
  },
  'a deletion does not take the workflow that was created under the same ID': {
    held: /COMMIT/,
    first: (client) => client.deleteWorkflow('w'),
    second: (client) => client.enqueue({ queueName: 'q', workflowName: 'again', workflowID: 'w' }),
    shows: async (client) => (await statusOf(client))?.workflowName,
    expected: 'again',
  },
};

onlyOn('postgres', (dialect) => {
  /** A caller's pool behind a proxy: there each request has the text of its statement with it. */
  async function setupProxy() {
    const url = await dialect.createURL();
    const proxy = await startProxy(url);
    const pool = new pg.Pool({ connectionString: proxy.url, max: 2 });
    pool.on('error', () => {});
    onTestFinished(() => pool.end());
    return { url, proxy, pool };
  }

  async function setupClient() {
    const { proxy, pool } = await setupProxy();
    const client = await connect(proxy.url, { systemDatabasePool: pool, useListenNotify: false });
    return { proxy, client };
  }

  test.each(Object.entries(SUCCESSIONS))('%s', async (_, { held, prepare, first, second, shows, expected }) => {
    const { proxy, client } = await setupClient();
    await client.enqueue({ queueName: 'q', workflowName: 'w', workflowID: 'w' });
    await client.registerQueue('q');
    await client.createSchedule({ scheduleName: 's', workflowName: 'w', schedule: '0 0 1 1 *' });
    await prepare?.(client);

    proxy.holdNextRequest(held);
    await first(client);
    expect(proxy.hasStruck).toBe(true);
    await second(client);
    await proxy.deliver();

    expect(await shows(client)).toEqual(expected);
  });

  test('a debounced workflow does not go back from call 19 to call 13', async () => {
    const { proxy, client } = await setupClient();
    const debouncer = new DebouncerClient(client, { workflowName: 'w' });
    await debouncer.debounce('key', 60_000, 0);

    proxy.holdNextRequest(/UPDATE/);
    for (let call = 13; call <= 19; call += 1) await debouncer.debounce('key', 60_000, call);
    await proxy.deliver();

    const [workflow] = await client.listWorkflows({});
    expect(workflow?.input).toEqual([19]);
  });

  test('an event does not go back from 6 to 0', async () => {
    const { url, proxy, pool } = await setupProxy();
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: proxy.url, systemDatabasePool: pool });
    const workflow = DBOS.registerWorkflow(
      async () => {
        for (let value = 0; value <= 6; value += 1) await DBOS.setEvent('progress', value);
        await DBOS.recv('end');
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    proxy.holdNextRequest(/INTO "dbos"\."workflow_events"/);
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    const client = await connect(url);
    const progress = () => client.getEvent('w', 'progress', 0);
    await until(async () => (await progress()) === 6);
    await proxy.deliver();

    expect(await progress()).toBe(6);
    await client.send('w', null, 'end');
    await handle.getResult();
  });
});
