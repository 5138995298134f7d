// Connections that break while a transaction is under way, or lead to a server that has lost the last commits.
import { expect, test } from 'vitest';
import { until } from '../crash/processes.js';
import { startProxy } from '../rig/proxy.js';
import type { AdapterName } from './adapters.js';
import { effectsIn, setScene } from './scene.js';

const note = (text: string): string => `INSERT INTO effects (workflow_id, note) VALUES ('w', '${text}')`;

export function networkTests(name: AdapterName): void {
  test.each(['answer', 'request'] as const)('a COMMIT whose %s is lost happens once', async (part) => {
    const scene = await setScene(name);
    const proxy = await startProxy(scene.url);
    // Without prepared statements each COMMIT is sent as such; only postgres.js heeds this.
    const { DBOS, source, run } = await scene.engine({}, `${proxy.url}?prepare=false`);
    let bodies = 0;
    const workflow = DBOS.registerWorkflow(
      () =>
        source.runTransaction(
          async () => {
            bodies += 1;
            await run(note('once'));
            if (bodies > 1) return bodies;
            if (part === 'answer') proxy.loseNextAnswer(/commit/i);
            else proxy.loseNextRequest(/commit/i);
            return bodies;
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toBe(part === 'answer' ? 1 : 2);
    expect(bodies).toBe(part === 'answer' ? 1 : 2);
    expect(proxy.hasStruck).toBe(true);
    expect(await effectsIn(scene)).toEqual(['once']);
  });

  test('a transaction in the system database does not commit behind a checkpoint that the server has lost', async () => {
    const scene = await setScene(name, { isShared: true });
    const { DBOS, source, run } = await scene.engine();
    let bodies = 0;
    const workflow = DBOS.registerWorkflow(
      async () => {
        await source.runTransaction(async () => 1, { name: 'first' });
        await scene.query('CREATE TABLE lost AS SELECT * FROM dbos.operation_outputs');
        await scene.query('DELETE FROM dbos.operation_outputs');
        await source.runTransaction(
          async () => {
            bodies += 1;
            await run(note('second'));
          },
          { name: 'second' },
        );
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(workflow)();
    await until('it was refused', () => bodies > 1);
    const effects = await effectsIn(scene);
    await scene.query('INSERT INTO dbos.operation_outputs SELECT * FROM lost');
    await handle.getResult();

    expect(effects).toEqual([]);
    expect(await effectsIn(scene)).toEqual(['second']);
  });

  test('a connection that breaks in the function is no error of the function', async () => {
    const scene = await setScene(name);
    const proxy = await startProxy(scene.url);
    const { DBOS, source, run } = await scene.engine({}, proxy.url);
    let bodies = 0;
    const workflow = DBOS.registerWorkflow(
      () =>
        source.runTransaction(
          async () => {
            bodies += 1;
            await run(note(`undone ${bodies}`));
            if (bodies === 1) proxy.loseNextRequest();
            await run(note(`done ${bodies}`));
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();

    await workflow();

    expect(await effectsIn(scene)).toEqual(['done 2', 'undone 2']);
  });
}
