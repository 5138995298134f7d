// Connections that break while a transaction is under way, or lead to a server that has lost the last commits.
import { expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { startProxy } from '../../rig/proxy.js';
import type { AdapterName } from './adapters.js';
import { effectsIn, setScene } from './scene.js';

const note = (text: string): string => `INSERT INTO effects (workflow_id, note) VALUES ('w', '${text}')`;

const failing = () => Promise.reject(new Error('not yet'));
const RETRIES = { retriesAllowed: true, intervalSeconds: 0.5, maxAttempts: 2 };

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
    let runs = 0;
    const workflow = DBOS.registerWorkflow(
      async () => {
        runs += 1;
        const value = await source.runTransaction(async () => runs, { name: 'first' });
        if (runs === 1) await scene.query('DELETE FROM dbos.operation_outputs');
        await source.runTransaction(() => run(note(`after ${value}`)), { name: 'second' });
        return value;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    const value = await (await DBOS.startWorkflow(workflow)()).getResult();

    expect(value).toBe(2);
    expect(await effectsIn(scene)).toEqual(['after 2']);
  });

  test.each<[string, (DBOS: DBOSInstance, end: Promise<void>) => Promise<unknown>]>([
    ['has failed an attempt', (DBOS) => DBOS.runStep(failing, { name: 'beside', ...RETRIES })],
    [
      'has written to a stream',
      (DBOS, end) => DBOS.runStep(() => DBOS.writeStream('numbers', 1).then(() => end), { name: 'beside' }),
    ],
  ])('a transaction in the system database commits beside a step that %s', async (_, beside) => {
    const scene = await setScene(name, { isShared: true });
    const { DBOS, source, run } = await scene.engine();
    let bodies = 0;
    const workflow = DBOS.registerWorkflow(
      async () => {
        const end = deferred<void>();
        const other = beside(DBOS, end.promise).catch(() => {});
        await DBOS.sleep(50);
        await source.runTransaction(
          async () => {
            bodies += 1;
            await run(note('once'));
          },
          { name: 'step' },
        );
        end.resolve();
        await other;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();

    await (await DBOS.startWorkflow(workflow)()).getResult();

    expect(bodies).toBe(1);
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
