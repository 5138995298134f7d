// A workflow that fails without a caller to see it must not fail silently.
import { expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { failureOf } from './succession.js';

forEachDialect((dialect) => {
  async function setup() {
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (entry: unknown) => void errors.push(String(entry)) };
    const { DBOS } = await createEngine(dialect, { logger });
    const failing = DBOS.registerWorkflow(() => Promise.reject(new Error('no funds')), { name: 'charge' });
    await DBOS.launch();
    await DBOS.registerQueue('q');
    return { DBOS, failing, errors };
  }

  test.each(['here', 'on a queue'])('a failure that is not awaited is logged with its stack: %s', async (where) => {
    const { DBOS, failing, errors } = await setup();

    const queueName = where === 'here' ? undefined : 'q';
    await DBOS.startWorkflow(failing, { workflowID: 'w', queueName })();

    await until(() => errors.length > 0);
    expect(errors).toEqual([expect.stringMatching(/^Workflow "w" \(charge\) failed: Error: no funds\n +at /)]);
  });

  test('a failure that a caller awaits is not logged', async () => {
    const { DBOS, failing, errors } = await setup();

    await failureOf(failing());
    await failureOf((await DBOS.startWorkflow(failing)()).getResult());
    await failureOf((await DBOS.startWorkflow(failing, { queueName: 'q' })()).getResult());
    await DBOS.shutdown();

    expect(errors).toEqual([]);
  });
});
