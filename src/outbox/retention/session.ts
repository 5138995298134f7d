// A session in which one process at a time changes partitions. It has a connection of its own where that can be made:
// DETACH CONCURRENTLY is not possible inside a transaction, and the drivers of data sources know nothing else.
import pg from 'pg';
import type { Row } from '../../datasource/driver.js';
import { render, type Sql } from '../../sql/sql.js';
import type { OutboxDatabase, Transaction } from '../database.js';

export interface Session {
  /** Whether statements can run outside of a transaction. */
  readonly isFree: boolean;
  readonly run: (statement: Sql) => Promise<readonly Row[]>;
  readonly exec: (text: string) => Promise<void>;
  readonly transact: <T>(body: (tx: Transaction) => Promise<T>) => Promise<T>;
}

/** Runs the body. Returns undefined without having run it if another process is in it. */
export async function inSession<T>(
  database: OutboxDatabase,
  { config, lock }: { readonly config: pg.ClientConfig | undefined; readonly lock: string },
  body: (session: Session) => Promise<T>,
): Promise<T | undefined> {
  if (!config) return body(sessionOf(database));
  const client = new pg.Client({ ...config, application_name: 'everstep_retention' });
  // A lost connection rejects the statement in flight; the event must not end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ locked: boolean }>(
      'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked',
      [`everstep.outbox.retention.${lock}`],
    );
    // Ending the session releases the lock.
    return rows[0]?.locked === true ? await body(freeSession(database, client)) : undefined;
  } finally {
    await client.end();
  }
}

/** Each statement is a transaction of the data source. */
function sessionOf(database: OutboxDatabase): Session {
  return {
    isFree: false,
    run: (statement) => database.transact((tx) => tx.run(statement)),
    exec: async (text) => void (await database.transact((tx) => tx.exec(text))),
    transact: (body) => database.transact(body),
  };
}

function freeSession({ dialect }: OutboxDatabase, client: pg.Client): Session {
  const query = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> =>
    (await client.query<Record<string, unknown>>(text, [...values])).rows;
  const run = (statement: Sql): Promise<readonly Row[]> => {
    const { text, values } = render(statement, dialect);
    return query(text, values);
  };
  return {
    isFree: true,
    run,
    exec: async (text) => void (await client.query(text)),
    async transact(body) {
      await client.query('BEGIN');
      try {
        const result = await body({ query, run, exec: (text) => query(text, []) });
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch(() => {
          // The connection is lost, and with it the transaction; the first error says why.
        });
        throw error;
      }
    },
  };
}
