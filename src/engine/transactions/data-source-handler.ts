// The contract between the engine and a data source.

/** What a data source registers with the engine, so that the engine can run functions in its transactions. */
export interface DataSourceTransactionHandler {
  readonly name: string;
  /** The class of the data source, for messages. */
  readonly dsType?: string;
  /** Called at launch: connects, and throws a clear error if the database or its tables are missing. */
  initialize(): Promise<void>;
  /** Called at shutdown. */
  destroy(): Promise<void>;
  /**
   * Deletes the completion records of a workflow from a step on. Awaits `beforeCommit` between the deletion and its
   * commit; if that throws, rolls back.
   */
  deleteCheckpoints?(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void>;
  /** Deletes all completion records of several workflows, in one transaction. */
  deleteCheckpointsOfAll?(workflowIDs: readonly string[], beforeCommit: () => Promise<void>): Promise<void>;
  /** Workflows with old completion records, after an ID, in order of ID. */
  listRecorded?(afterID: string, max: number): Promise<string[]>;
  /** Runs the function in a transaction. */
  invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return>;
}
