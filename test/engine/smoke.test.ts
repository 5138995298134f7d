import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

forEachDialect((dialect) => {
  test('a workflow with steps and a child runs', async () => {
    const { DBOS } = await createEngine(dialect);
    const calls: string[] = [];
    const add = DBOS.registerStep(
      async (a: number, b: number) => {
        calls.push('add');
        return a + b;
      },
      { name: 'add' },
    );
    const child = DBOS.registerWorkflow(async (x: number) => (await add(x, 1)) * 10, { name: 'child' });
    const parent = DBOS.registerWorkflow(
      async (x: number) => {
        const y = await add(x, 2);
        const z = await child(y);
        await DBOS.sleep(5);
        return { z, id: DBOS.workflowID };
      },
      { name: 'parent' },
    );
    await DBOS.launch();

    const result = await DBOS.withNextWorkflowID('w1', () => parent(1));

    expect(result).toEqual({ z: 40, id: 'w1' });
    expect(await parent(2)).toMatchObject({ z: 50 });
    const steps = await DBOS.listWorkflowSteps('w1');
    expect(steps.map((step) => [step.functionID, step.name, step.childWorkflowID])).toEqual([
      [0, 'add', null],
      [1, 'child', 'w1-1'],
      [2, 'DBOS.getResult', 'w1-1'],
      [3, 'DBOS.sleep', null],
    ]);
    expect(await DBOS.withNextWorkflowID('w1', () => parent(99))).toEqual({ z: 40, id: 'w1' });
    expect(calls).toHaveLength(4);
  });
});
