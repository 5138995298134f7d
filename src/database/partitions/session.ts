// What changes of partitions run in. DETACH CONCURRENTLY is not possible inside a transaction, so a session has a connection
// of its own where that can be made.
import type { Sql } from '../../kernel/sql/sql.js';

type Row = Readonly<Record<string, unknown>>;

/** Runs statements in one transaction. */
export interface PartitionTransaction {
  run(statement: Sql): Promise<readonly Row[]>;
  /** Runs text without parameters. */
  exec(text: string): Promise<unknown>;
}

export interface PartitionSession<Tx extends PartitionTransaction = PartitionTransaction> extends PartitionTransaction {
  /** Whether statements can run outside of a transaction. */
  readonly isFree: boolean;
  readonly transact: <T>(body: (tx: Tx) => Promise<T>) => Promise<T>;
}
