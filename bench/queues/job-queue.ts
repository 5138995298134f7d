// What the tasks need of a queue; each library has an adapter.

export const QUEUE = 'bench';

export interface Job {
  /** Epoch milliseconds, with a fraction. */
  readonly sentAt: number;
  /** How long its only step takes. */
  readonly workMs: number;
}

export interface JobHooks {
  onStart(job: Job): void;
  onEnd(): void;
}

export interface QueueSettings {
  readonly url: string;
  /** Whether this process runs jobs, or only enqueues them. */
  readonly isServing: boolean;
  readonly isTuned: boolean;
  readonly concurrency: number | undefined;
  /** How many queues there are; the jobs are in the first one. */
  readonly queues: number;
  readonly hooks: JobHooks;
}

export interface JobQueue {
  launch(): Promise<void>;
  enqueue(job: Job): Promise<unknown>;
  enqueueMany(jobs: readonly Job[]): Promise<unknown>;
  /** How many of the jobs are recorded as done. */
  countDone(jobs: number): Promise<number>;
  close(): Promise<unknown>;
}

/** Epoch milliseconds with a fraction, comparable between the processes of a machine. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** The body of a step or of a job. */
export async function work(workMs: number): Promise<number> {
  if (workMs > 0) await new Promise((resolve) => setTimeout(resolve, workMs));
  return workMs;
}
