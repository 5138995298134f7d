import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Runs a module in a thread of its own and returns the first message that it posts. Aborting ends the thread. */
export async function runInWorker<Result>(module: URL, input: unknown, signal?: AbortSignal): Promise<Result> {
  signal?.throwIfAborted();
  const worker = new Worker(module, { workerData: input });
  // Both reject if the module throws.
  const answer = once(worker, 'message', { signal });
  const exit = once(worker, 'exit').then(([code]) => {
    throw new Error(`The worker exited with code ${code} and without an answer.`);
  });
  try {
    const [result] = (await Promise.race([answer, exit])) as [Result];
    return result;
  } finally {
    await worker.terminate();
  }
}
