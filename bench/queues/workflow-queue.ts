// Everstep and DBOS: a job is a workflow with one step.
import type { Job, JobQueue, QueueSettings } from './job-queue.js';
import { QUEUE, work } from './job-queue.js';

type JobWorkflow = (sentAt: number, workMs: number) => Promise<void>;

/** The part of the API that both libraries have. */
export interface QueueLibrary {
  setConfig(config: Record<string, unknown>): void;
  launch(): Promise<void>;
  shutdown(): Promise<void>;
  registerStep(func: typeof work, config: { name: string }): typeof work;
  registerWorkflow(func: JobWorkflow, config: { name: string }): JobWorkflow;
  registerQueue(name: string, options: { globalConcurrency?: number }): Promise<unknown>;
  startWorkflow(
    target: JobWorkflow,
    params: { queueName: string },
  ): (...args: Parameters<JobWorkflow>) => Promise<unknown>;
}

/** What they do in different ways. */
export interface Specifics {
  enqueueMany(workflow: JobWorkflow, jobs: readonly Job[]): Promise<unknown>;
  countDone(): Promise<number>;
  close(): Promise<unknown>;
}

export function workflowQueue(library: QueueLibrary, settings: QueueSettings, specifics: Specifics): JobQueue {
  const { url, isServing, hooks, concurrency } = settings;
  library.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    applicationVersion: 'bench',
    executorID: `bench-${process.pid}`,
    logLevel: 'error',
    ...(!isServing && { listenQueues: ['none'] }),
  });
  const step = library.registerStep(work, { name: 'work' });
  const body = async (sentAt: number, workMs: number): Promise<void> => {
    hooks.onStart({ sentAt, workMs });
    await step(workMs);
    hooks.onEnd();
  };
  const workflow = library.registerWorkflow(body, { name: 'job' });
  return {
    async launch() {
      await library.launch();
      const options = concurrency === undefined ? {} : { globalConcurrency: concurrency };
      for (let index = 0; index < settings.queues; index += 1) {
        await library.registerQueue(index === 0 ? QUEUE : `${QUEUE}-${index}`, options);
      }
    },
    enqueue: ({ sentAt, workMs }) => library.startWorkflow(workflow, { queueName: QUEUE })(sentAt, workMs),
    enqueueMany: (jobs) => specifics.enqueueMany(workflow, jobs),
    countDone: () => specifics.countDone(),
    async close() {
      await specifics.close();
      await library.shutdown();
    },
  };
}
