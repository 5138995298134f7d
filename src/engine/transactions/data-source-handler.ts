// The contract between the engine and a data source: the engine knows a data source by its handler only.

/** What a data source hands to the engine, so that the engine can run functions in its transactions. */
export interface DataSourceTransactionHandler {
  readonly name: string;
  /** The kind of data source, for people. */
  readonly dsType?: string;
  /** Called at launch: connects, and throws a clear error if the database or its tables are not there. */
  initialize(): Promise<void>;
  /** Called at shutdown. */
  destroy(): Promise<void>;
  /**
   * Deletes the records of a workflow from a step on. `beforeCommit` is awaited between the deletion and its commit; if
   * it throws, all is rolled back.
   */
  deleteCheckpoints?(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void>;
  /** The same for all steps of several workflows, in one transaction. */
  deleteCheckpointsOfAll?(workflowIDs: readonly string[], beforeCommit: () => Promise<void>): Promise<void>;
  /** Workflows whose records are too old for any run to still need them: those after an ID, in order. */
  listRecorded?(afterID: string, max: number): Promise<string[]>;
  /** Runs the function in a transaction. */
  invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return>;
}
