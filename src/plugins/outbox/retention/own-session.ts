// A session on a connection of its own to the user's database. Not in `store/partitions/`: whatever loads that would load `pg`.
import type pg from 'pg';
import { type Dialect, render, type Sql } from '../../../kernel/sql/sql.js';
import type { PartitionSession, PartitionTransaction } from '../../../database/partitions/session.js';
import type { Row } from '../../transaction/driver.js';
import { withSession } from '../../../database/postgres/pg-session.js';

/** A transaction of an own connection. */
interface OwnTransaction extends PartitionTransaction {
  exec(text: string): Promise<readonly Row[]>;
  query(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
}

interface OwnSession {
  readonly config: pg.ClientConfig;
  readonly dialect: Dialect;
  /** The name of an advisory lock. */
  readonly lock: string;
}

/** Runs the body on a connection of its own. Returns undefined without having run it if another process has the lock. */
export async function inOwnSession<T>(
  { config, dialect, lock }: OwnSession,
  body: (session: PartitionSession<OwnTransaction>) => Promise<T>,
): Promise<T | undefined> {
  return withSession({ ...config, application_name: 'everstep_retention' }, async (session) => {
    const { rows } = await session.ask<{ locked: boolean }>(
      'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked',
      [lock],
    );
    // Ending the session releases the lock.
    return rows[0]?.locked === true ? await body(sessionOn(session, dialect)) : undefined;
  });
}

function sessionOn(client: pg.Client, dialect: Dialect): PartitionSession<OwnTransaction> {
  const query = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> =>
    (await client.query<Record<string, unknown>>(text, [...values])).rows;
  const run = (statement: Sql): Promise<readonly Row[]> => {
    const { text, values } = render(statement, dialect);
    return query(text, values);
  };
  return {
    isFree: true,
    run,
    exec: (text) => client.query(text),
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
