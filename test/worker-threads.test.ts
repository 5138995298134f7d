// The recipe for CPU-heavy steps, as the guide shows it.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runInWorker } from '../examples/worker-threads/run-in-worker.js';
import { forEachDialect } from './rig/dialects.js';
import { createEngine } from './rig/engines.js';
import { until } from './rig/manual-clock.js';

const PRIMES = new URL('../examples/worker-threads/primes-worker.mjs', import.meta.url);

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

function workerOf(code: string): URL {
  const head = "import { parentPort, workerData } from 'node:worker_threads';";
  return new URL(`data:text/javascript,${encodeURIComponent(`${head}\n${code}`)}`);
}

/** A number that both threads see. It turns from 0 to 1 when the worker runs; the worker ends when it is 2. */
function sharedFlag(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4));
}

const WAITING = workerOf(
  'Atomics.store(workerData, 0, 1); Atomics.wait(workerData, 0, 1); parentPort.postMessage("done");',
);

test('the guide shows the files that are tested', () => {
  const guide = read('docs/guides/cpu-heavy-steps.md');

  expect(guide).toContain(`\`\`\`ts\n${read('examples/worker-threads/run-in-worker.ts')}\`\`\``);
  expect(guide).toContain(`\`\`\`js\n${read('examples/worker-threads/primes-worker.mjs')}\`\`\``);
});

test('a blocked worker does not block the thread of the engine', async () => {
  const flag = sharedFlag();

  const result = runInWorker<string>(WAITING, flag);
  await until(() => Atomics.load(flag, 0) === 1);
  Atomics.store(flag, 0, 2);
  Atomics.notify(flag, 0);

  expect(await result).toBe('done');
});

test('an error in the worker is thrown to the caller', async () => {
  await expect(runInWorker(workerOf('throw new Error("no such file")'), {})).rejects.toThrow('no such file');
});

test('a worker that ends without an answer is an error', async () => {
  await expect(runInWorker(workerOf('process.exit(3)'), {})).rejects.toThrow('exited with code 3');
});

test('an aborted signal starts no worker', async () => {
  const reason = new Error('cancelled');

  await expect(runInWorker(PRIMES, { below: 100 }, AbortSignal.abort(reason))).rejects.toBe(reason);
});

forEachDialect((dialect) => {
  test('a step returns what its worker has computed', async () => {
    const { DBOS } = await createEngine(dialect);
    const countPrimes = DBOS.registerStep((below: number) => runInWorker<number>(PRIMES, { below }), {
      name: 'countPrimes',
    });
    const report = DBOS.registerWorkflow(async (below: number) => countPrimes(below), { name: 'report' });
    await DBOS.launch();

    expect(await report(100)).toBe(25);
  });

  test('cancelling the workflow ends the worker', async () => {
    const flag = sharedFlag();
    const { DBOS } = await createEngine(dialect);
    const work = DBOS.registerWorkflow(
      () => DBOS.runStep(() => runInWorker(WAITING, flag, DBOS.stepStatus?.cancelSignal), { name: 'compute' }),
      { name: 'work' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(work)();
    await until(() => Atomics.load(flag, 0) === 1);

    await DBOS.cancelWorkflow(handle.workflowID);

    // The step would wait for its worker without end.
    await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    await DBOS.shutdown({ workflowCompletionTimeoutMS: 20_000 });
  });
});
