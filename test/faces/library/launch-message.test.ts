import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

forEachDialect((dialect) => {
  test('a launch says what runs where, without the password', async () => {
    const lines: string[] = [];
    const logger = { ...silentLogger, info: (entry: unknown) => void lines.push(String(entry)) };
    const { DBOS, url } = await createEngine(dialect, { logger, applicationVersion: 'v1', executorID: 'e1' });
    const tick = DBOS.registerWorkflow(async () => {}, { name: 'tick' });
    await DBOS.launch();
    await DBOS.registerQueue('mail');
    await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 1 1 *' });
    await DBOS.shutdown();
    lines.length = 0;

    await DBOS.launch();

    const line = lines.find((one) => one.startsWith('Launched'));
    expect(line).toContain('Launched "test", version v1, executor e1, on ');
    expect(line).toContain(' (its URL is configured). ');
    expect(line).toContain('Queues: mail, 1 schedule(s), 1 workflow function(s).');
    const { password } = new URL(url);
    if (password !== '') expect(line).not.toContain(`:${password}@`);
  });

  test('a launch warns of classes of errors whose names the next build changes', async () => {
    const warnings: unknown[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(entry) };
    const { DBOS } = await createEngine(dialect, { logger });
    const CardDeclined = class t extends Error {};
    const OutOfStock = class e1 extends Error {};
    DBOS.registerErrors(CardDeclined, { OutOfStock });

    await DBOS.launch();

    expect(warnings).toEqual([
      'The names of the registered classes of errors t look as if a minifier had made them. They change with the next ' +
        'build, which then does not know the errors of this one. Name them: DBOS.registerErrors({ CardDeclined }).',
    ]);
  });

  test('a launch that is not awaited says so to what runs too early', async () => {
    const { DBOS } = await createEngine(dialect);
    const workflow = DBOS.registerWorkflow(async () => 1, { name: 'workflow' });

    const launching = DBOS.launch();

    await expect(workflow()).rejects.toThrow('`DBOS.launch()` has not finished. Await it before running workflows.');
    await launching;
    expect(await workflow()).toBe(1);
  });
});
