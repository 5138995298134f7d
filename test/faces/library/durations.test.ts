import { describe, expect, test } from 'vitest';
import { createDBOS, Debouncer, WorkflowQueue } from '../../../src/index.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { resolveConfig } from '../../../src/run/config/config.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { failureOf } from '../../run/succession.js';

test('a configuration takes durations', () => {
  const config = resolveConfig(
    { name: 'app', leaseSeconds: '2 minutes', schedulerPollingIntervalMs: '5s', observabilityQueryTimeoutMs: '1m' },
    {},
  );

  expect(config).toMatchObject({
    leaseSeconds: 120,
    schedulerPollingIntervalMs: 5000,
    observabilityQueryTimeoutMs: 60_000,
  });
});

test('a queue takes durations', () => {
  const DBOS = createDBOS();

  const queue = new WorkflowQueue(
    'mail',
    { rateLimit: { limitPerPeriod: 10, periodSec: '1 hour' }, minPollingIntervalMs: '3s' },
    DBOS,
  );

  expect(queue.rateLimit).toEqual({ limitPerPeriod: 10, periodSec: 3600 });
  expect(queue.minPollingIntervalMs).toBe(3000);
});

test.each([
  ['a queue', () => new WorkflowQueue('q', { rateLimit: { limitPerPeriod: 1, periodSec: '1 fortnight' as '1s' } })],
  ['a step', () => createDBOS().registerStep(async () => {}, { name: 's', intervalSeconds: 'soon' as '1s' })],
])('what is no duration is refused, with a hint: %s', (_, call) => {
  expect(call).toThrow('A duration is a number with a unit: 500ms, 30s, 10m, 2h or 30 days.');
});

test('an unknown unit in the configuration is refused', () => {
  expect(() => resolveConfig({ name: 'app', logger: silentLogger, leaseSeconds: '1 lease' as '1s' }, {})).toThrow(
    'leaseSeconds',
  );
});

forEachDialect((dialect) => {
  describe('durations', () => {
    async function setup() {
      const { DBOS } = await createEngine(dialect);
      new WorkflowQueue('queue', {}, DBOS);
      const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
      await DBOS.launch();
      return { DBOS, workflow };
    }

    test('are stored with a start, as timeout and delay', async () => {
      const { DBOS, workflow } = await setup();

      const handle = await DBOS.startWorkflow(workflow, {
        queueName: 'queue',
        timeoutMS: '2h',
        enqueueOptions: { delaySeconds: '1 day' },
      })();

      const { timeoutMS, status, createdAt, delayUntilEpochMS } = (await handle.getStatus())!;
      expect({ timeoutMS, status }).toEqual({ timeoutMS: 7_200_000, status: 'DELAYED' });
      expect(delayUntilEpochMS! - createdAt).toBeGreaterThanOrEqual(86_400_000);
      expect(await DBOS.setWorkflowDelay(handle.workflowID, '2 days')).toBe(true);
    });

    test('limit waits', async () => {
      const { DBOS } = await setup();

      expect(await DBOS.getEvent('missing', 'key', '1ms')).toBeNull();
      expect(await DBOS.getEvent('missing', 'key', { timeoutSeconds: '1ms', pollingIntervalMs: '1s' })).toBeNull();
    });

    test('are sleeps, and timeouts of what a callback starts', async () => {
      const { DBOS, workflow } = await setup();

      await DBOS.sleep('1ms');
      await DBOS.sleepSeconds('1ms');
      const handle = await DBOS.withWorkflowTimeout('1 hour', () => DBOS.startWorkflow(workflow)());

      expect(await handle.getStatus()).toMatchObject({ timeoutMS: 3_600_000 });
    });

    test('are periods of a debouncer', async () => {
      const { DBOS, workflow } = await setup();
      const debouncer = new Debouncer({ workflow, debounceTimeoutMs: '1m' }, DBOS);

      const handle = await debouncer.debounce('key', '1ms');

      expect(await handle.getResult()).toBe('done');
    });

    test('are timeouts of steps', async () => {
      const { DBOS } = await createEngine(dialect);
      const never = DBOS.registerWorkflow(
        () => DBOS.runStep(() => new Promise<void>(() => {}), { name: 'never', timeoutMS: '1ms' }),
        { name: 'workflow' },
      );
      await DBOS.launch();

      expect(await failureOf(never())).toMatchObject({ code: 'STEP_TIMEOUT' });
    });
  });
});
