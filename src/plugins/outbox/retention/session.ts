// A session in which one process at a time changes partitions of the user's database. Where no connection of its own can be
// made, it uses the driver of the data source, which knows transactions only.
import type { ClientConfig } from 'pg';
import type { PartitionSession } from '../../../database/partitions/session.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import { inOwnSession } from './own-session.js';

export type Session = PartitionSession<Transaction>;

/** Runs the body. Returns undefined without having run it if another process is in it. */
export async function inSession<T>(
  database: OutboxDatabase,
  { config, lock }: { readonly config: ClientConfig | undefined; readonly lock: string },
  body: (session: Session) => Promise<T>,
): Promise<T | undefined> {
  if (!config) return body(sessionOf(database));
  return inOwnSession({ config, dialect: database.dialect, lock: `everstep.outbox.retention.${lock}` }, body);
}

/** Each statement is a transaction of the data source. */
function sessionOf(database: OutboxDatabase): Session {
  return {
    isFree: false,
    run: (statement) => database.transact((tx) => tx.run(statement)),
    exec: (text) => database.transact((tx) => tx.exec(text)),
    transact: (body) => database.transact(body),
  };
}
