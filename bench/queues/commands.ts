// What the parent asks of a process that enqueues or works, and what the process answers.

export type QueueEngine = 'everstep' | 'dbos-5' | 'graphile-worker' | 'pg-boss';

export type QueueCommand =
  LatencyCommand | SendCommand | FillCommand | ServeCommand | StreamCommand | BulkCommand | IdleCommand;

interface OnQueue {
  readonly url: string;
  /** Settings for throughput instead of the default ones. Only job queues have them. */
  readonly isTuned?: boolean;
  /** How many jobs may run at once in all processes. Only Everstep and DBOS. */
  readonly concurrency?: number;
}

/** Enqueues job by job and runs them: how long each waits. */
export interface LatencyCommand extends OnQueue {
  readonly task: 'latency';
  readonly samples: number;
  /** Pause between two jobs: so long at least, and twice that at most. */
  readonly gapMs: number;
}

/** Only enqueues, job by job, for a process that serves. Answers nothing. */
export interface SendCommand extends OnQueue {
  readonly task: 'send';
  readonly samples: number;
  readonly gapMs: number;
}

/** Only enqueues, all in one call. */
export interface FillCommand extends OnQueue {
  readonly task: 'fill';
  readonly jobs: number;
  readonly workMs: number;
}

/** Runs what others enqueue. Says when it is ready, and answers when the given number of jobs has been done. */
export interface ServeCommand extends OnQueue {
  readonly task: 'serve';
  readonly jobs: number;
  /** How many processes share the jobs. */
  readonly processes: number;
}

/** Enqueues jobs one by one, many calls in flight, and runs them at the same time. */
export interface StreamCommand extends OnQueue {
  readonly task: 'stream';
  readonly jobs: number;
  readonly warmUpJobs: number;
  readonly inFlight: number;
}

/** Enqueues many jobs in one call, several times. */
export interface BulkCommand extends OnQueue {
  readonly task: 'bulk';
  readonly rows: number;
  readonly rounds: number;
}

export interface IdleCommand extends OnQueue {
  readonly task: 'idle';
  readonly queues: number;
  readonly windowMs: number;
}

export interface LatencyAnswer {
  readonly samples: number;
  readonly median: number;
  readonly p95: number;
}

export interface ServeAnswer extends LatencyAnswer {
  /** Jobs that have run in this process. */
  readonly count: number;
  /** Epoch milliseconds; null if no job has run here. */
  readonly firstStartedAt: number | null;
  readonly lastEndedAt: number | null;
  /** From the launch, or the first job if that came earlier, until all jobs are done and recorded. */
  readonly drainMs: number;
}

export interface StreamAnswer {
  readonly drainMs: number;
}

export interface BulkAnswer {
  readonly elapsedMs: readonly number[];
}

export interface IdleAnswer {
  readonly statementsPerMinute: number;
}
