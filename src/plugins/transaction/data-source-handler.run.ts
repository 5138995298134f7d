// The contract between the engine and a data source.

/** A workflow with completion records. */
export interface RecordedWorkflow {
  readonly workflowID: string;
  /** The system database that it is in, if a record says so. */
  readonly systemID: string | undefined;
}

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
  /**
   * Deletes completion records that a later workflow with the same ID, or a rewound one, would take for its own. Only for
   * data sources whose other records are safe from that. Awaits `beforeCommit` as above.
   */
  deleteUnmarked?(workflowIDs: readonly string[], startStep: number, beforeCommit: () => Promise<void>): Promise<void>;
  /** Workflows with old completion records, after an ID, in order of ID. */
  listRecorded?(afterID: string, max: number): Promise<RecordedWorkflow[]>;
  /** Runs the function in a transaction. */
  invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return>;
}
