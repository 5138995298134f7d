// What is said about a workflow that waits in memory: by its own process, and by others.
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { callerOf } from '../../faces/http/scene.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';

const HOUR_SECONDS = 3600;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;

/** An engine that parks nothing, and a client of its database. */
async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect, { executorID: 'one', parkAfterMs: 100 * HOUR_SECONDS * 1000 });
  const step = deferred<void>();
  const bodies = {
    receiving: () => DBOS.recv('approval', HOUR_SECONDS),
    'receiving anything': () => DBOS.recv(undefined, HOUR_SECONDS),
    looking: () => DBOS.getEvent('other', 'price', HOUR_SECONDS),
    sleeping: () => DBOS.sleep(HOUR_SECONDS * 1000),
    parent: async () => {
      const child = await DBOS.startWorkflow(workflows.receiving, { workflowID: 'child' })();
      return child.getResult();
    },
    busy: async () => {
      await DBOS.recv('approval', HOUR_SECONDS);
      await DBOS.runStep(() => step.promise, { name: 'long step' });
    },
  };
  const workflows = Object.fromEntries(
    Object.entries(bodies).map(([name, body]) => [name, DBOS.registerWorkflow(body, { name })]),
  ) as Record<keyof typeof bodies, () => Promise<unknown>>;
  await DBOS.launch();
  const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
  onTestFinished(() => client.destroy());
  const start = async (name: keyof typeof bodies): Promise<void> => {
    await DBOS.startWorkflow(workflows[name], { workflowID: 'w' })();
  };
  /** When it waits, as this observer sees it. */
  const untilWaiting = async (observer: Pick<DBOSClient, 'explainWorkflow'>) => {
    await until(async () => (await observer.explainWorkflow('w')).reason === 'waiting');
    return observer.explainWorkflow('w');
  };
  return { DBOS, client, start, step, untilWaiting };
}

describe('a workflow that waits in memory', () => {
  forEachDialect((dialect) => {
    test.each([
      ['receiving', 'waits for a message of topic "approval", until', [{ kind: 'message', topic: 'approval' }]],
      ['receiving anything', 'waits for a message without a topic, until', [{ kind: 'message', topic: null }]],
      [
        'looking',
        'waits for event "price" of workflow "other", until',
        [{ kind: 'event', workflowID: 'other', key: 'price' }],
      ],
      ['sleeping', 'sleeps until', [{ kind: 'sleep' }]],
      ['parent', 'waits for the end of workflow "child".', [{ kind: 'workflow', workflowID: 'child' }]],
    ] as const)('is explained by its own process: %s', async (name, text, waitsFor) => {
      const { DBOS, start, untilWaiting } = await setup(dialect);
      await start(name);

      const found = await untilWaiting(DBOS);

      expect(found).toMatchObject({ status: 'PENDING', details: { executorID: 'one', waitsFor } });
      expect(found.message).toMatch(`It ${text}`);
      expect(found.message).toMatch('It is in the memory of executor "one".');
    });

    test('is known to other processes by its time limit', async () => {
      const { client, start, untilWaiting } = await setup(dialect);
      await start('receiving');

      const found = await untilWaiting(client);

      expect(found.details).toMatchObject({ waitsFor: null, wakesAt: expect.any(Number) });
      expect(found.message).toMatch(/^It waits for a message, an event or a workflow, until /);
      expect(found.message).toMatch(TIME);
    });

    test('is known to other processes to sleep', async () => {
      const { client, start, untilWaiting } = await setup(dialect);
      await start('sleeping');

      const found = await untilWaiting(client);

      expect(found).toMatchObject({ details: { waitsFor: [{ kind: 'sleep' }], wakesAt: expect.any(Number) } });
      expect(found.message).toMatch(/^It sleeps until /);
    });

    test('gets the message that is suggested over HTTP', async () => {
      const { DBOS, start, untilWaiting } = await setup(dialect);
      const admin = createAdmin({ source: DBOS, isOpen: true });
      onTestFinished(() => admin.close());
      const call = callerOf(admin.fetch);
      await start('receiving');
      await untilWaiting(DBOS);

      const { body } = await call('GET', '/api/v1/workflows/w/explanation');
      await call('POST', '/api/v1/workflows/w/messages', { message: 'yes', topic: body.details.waitsFor[0].topic });

      expect(body.action).toEqual({ kind: 'send-message', label: 'Send it the message.' });
      expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('yes');
    });

    test('is running again once the message has come', async () => {
      const { DBOS, client, start, step } = await setup(dialect);
      await start('busy');
      await until(async () => (await client.explainWorkflow('w')).reason === 'waiting');

      await DBOS.send('w', 'yes', 'approval');

      await until(async () => (await client.explainWorkflow('w')).reason === 'running');
      await until(async () => (await DBOS.explainWorkflow('w')).reason === 'running');
      step.resolve();
      await DBOS.retrieveWorkflow('w').getResult();
    });
  });
});
