// Connections that break while a transaction is under way.
import { expect, test } from 'vitest';
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
