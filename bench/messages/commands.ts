// What the parent asks of a worker process that measures messages, events or streams.

export interface MessagingCommand {
  readonly url: string;
  /**
   * `serve`: runs the echoing and publishing workflows, or writes a stream, for a process that asks.
   * `ask`: measures against workflows of its own process, or of a serving one.
   */
  readonly task: 'serve' | 'ask-messages' | 'ask-events' | 'fan-in' | 'read-stream';
  /** Whether the workflows are those of a serving process. */
  readonly isRemote?: boolean;
  /** Others that wait for messages and events meanwhile. */
  readonly waiters?: number;
  readonly rounds?: number;
  readonly values?: number;
}

export interface LatencyAnswer {
  /** Milliseconds of each round: there, or there and back. */
  readonly rounds: readonly number[];
}

export interface DurationAnswer {
  readonly elapsedMs: number;
}
