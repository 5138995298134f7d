// Workflows that start again under their ID, without a history.
import { expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';

forEachDialect((dialect) => {
  test('a workflow continues as new with other arguments, and its handle gets the last result', async () => {
    const { DBOS } = await createEngine(dialect);
    const seen: number[] = [];
    const counting = DBOS.registerWorkflow(
      async (round: number): Promise<string> => {
        await DBOS.runStep(async () => Promise.resolve(seen.push(round)), { name: 'note' });
        if (round < 3) return DBOS.continueAsNew(round + 1);
        return `after ${round}`;
      },
      { name: 'counting' },
    );
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(counting, { workflowID: 'w' })(1);

    expect(await handle.getResult()).toBe('after 3');
    expect(seen).toEqual([1, 2, 3]);
    expect(await DBOS.listWorkflowSteps('w')).toHaveLength(1);
    expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS', input: [3], recoveryAttempts: 1 });
  });

  test('each round has children of its own', async () => {
    const { DBOS } = await createEngine(dialect);
    const child = DBOS.registerWorkflow(async (round: number) => Promise.resolve(`child ${round}`), { name: 'child' });
    const parent = DBOS.registerWorkflow(
      async (round: number, results: string[]): Promise<string[]> => {
        const all = [...results, await child(round)];
        return round < 3 ? DBOS.continueAsNew(round + 1, all) : all;
      },
      { name: 'parent' },
    );
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(parent, { workflowID: 'w' })(1, []);

    expect(await handle.getResult()).toEqual(['child 1', 'child 2', 'child 3']);
  });

  test.each([1, 2])('a rewound round has the children of that round, rewound %i times', async (times) => {
    const { DBOS } = await createEngine(dialect);
    const child = DBOS.registerWorkflow(async (round: number) => Promise.resolve(`child ${round}`), { name: 'child' });
    const parent = DBOS.registerWorkflow(
      async (round: number): Promise<string> => {
        const result = await child(round);
        return round < 3 ? DBOS.continueAsNew(round + 1) : result;
      },
      { name: 'parent' },
    );
    await DBOS.launch();
    await (await DBOS.startWorkflow(parent, { workflowID: 'w' })(1)).getResult();

    for (let count = 0; count < times; count += 1) {
      await DBOS.rewindWorkflow('w');
      await until(async () => (await DBOS.getWorkflowStatus('w'))?.status === 'SUCCESS');
    }

    expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('child 3');
    expect((await DBOS.listWorkflowSteps('w'))?.map((step) => step.childWorkflowID)).toContain('w-again2-0');
  });

  test('messages and events stay', async () => {
    const { DBOS } = await createEngine(dialect);
    const reader = DBOS.registerWorkflow(
      async (round: number): Promise<unknown> => {
        if (round === 1) {
          await DBOS.setEvent('key', 'set');
          return DBOS.continueAsNew(2);
        }
        return [await DBOS.recv('topic', 0), await DBOS.getEvent('w', 'key', 0)];
      },
      { name: 'reader' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q');
    await DBOS.startWorkflow(reader, {
      workflowID: 'w',
      queueName: 'q',
      enqueueOptions: { delaySeconds: 3600 },
    })(1);
    await DBOS.send('w', 'hello', 'topic');

    await DBOS.resumeWorkflow('w');

    expect(await DBOS.retrieveWorkflow('w').getResult()).toEqual(['hello', 'set']);
  });

  test('code that goes on after it records nothing', async () => {
    const { DBOS } = await createEngine(dialect);
    let ran = 0;
    const stubborn = DBOS.registerWorkflow(
      async (round: number): Promise<number> => {
        if (round === 2) return round;
        await DBOS.continueAsNew(2).catch(() => {});
        await DBOS.runStep(async () => Promise.resolve((ran += 1)), { name: 'late' });
        return round;
      },
      { name: 'stubborn' },
    );
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(stubborn, { workflowID: 'w' })(1);

    expect(await handle.getResult()).toBe(2);
    expect(ran).toBe(0);
  });

  test('only workflow code continues as new', async () => {
    const { DBOS } = await createEngine(dialect);
    await DBOS.launch();

    await expect(DBOS.continueAsNew()).rejects.toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
  });

  test('the log says that a history is long', async () => {
    const warnings: string[] = [];
    const none = (): void => {};
    const logger = {
      debug: none,
      info: none,
      error: none,
      warn: (entry: unknown) => void warnings.push(String(entry)),
    };
    const { DBOS } = await createEngine(dialect, { logger });
    const long = DBOS.registerWorkflow(
      async () => {
        for (let count = 0; count < 10_000; count += 1) await DBOS.now();
      },
      { name: 'long' },
    );
    await DBOS.launch();

    await DBOS.startWorkflow(long, { workflowID: 'w' })();

    await until(() => warnings.some((text) => text.includes('DBOS.continueAsNew')));
  });
});
