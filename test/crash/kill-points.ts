// Kills the process at one of its commits. All writes of the library pass `run` and `commit` of the database, so those
// are counted here, from the outside.
import { AsyncLocalStorage } from 'node:async_hooks';
import { render, type Sql } from '../../src/kernel/sql/sql.js';
import type { CommitOptions, Executor, TransactionOptions } from '../../src/database/database.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { StatementBatch } from '../../src/database/postgres/statement-batch.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';

export interface KillPoint {
  /** Which commit, from 1; 0 for none. */
  readonly number: number;
  /** Counts only the commits that are about this. With `TRANSACTION`, transactions of several round trips. */
  readonly label?: string;
  /** Before anything is sent, when the request is on its way to the server, or when the commit has returned. */
  readonly moment: 'before' | 'sent' | 'after';
}

/** Hints to other processes and the look for deadlines come at any time and change nothing here. */
const IGNORED = 'ignored';

/** One that is killed when it is `sent` ends between its first statement and its commit. */
export const TRANSACTION = 'transaction';

type AnyDatabase = PostgresDatabase | SqliteDatabase;

export function armKillPoint(point: KillPoint, onCommit: (number: number, label: string) => void): void {
  const isDoomed = new AsyncLocalStorage<boolean>();
  let count = 0;

  async function counted<T>(database: AnyDatabase, statements: readonly Sql[], send: () => Promise<T>): Promise<T> {
    const label = describeCommit(database, statements);
    if (label === IGNORED || !label.includes(point.label ?? '')) return send();
    count += 1;
    const number = count;
    onCommit(number, label);
    if (number !== point.number) return send();
    if (point.moment === 'before') die();
    if (point.moment === 'sent') return isDoomed.run(true, send);
    const result = await send();
    die();
    return result;
  }

  for (const { prototype } of [PostgresDatabase, SqliteDatabase] as { prototype: AnyDatabase }[]) {
    if (point.label === TRANSACTION) killInTransaction(prototype, point);
    const original = methodsOf(prototype, 'run', 'commit');
    prototype.run = function (statement) {
      return counted(this, [statement], () => original.run.call(this, statement));
    };
    prototype.commit = function (statements: readonly Sql[], options?: CommitOptions) {
      return counted(this, statements, () => original.commit.call(this, statements, options));
    };
  }

  const original = methodsOf(StatementBatch.prototype, 'submit');
  StatementBatch.prototype.submit = function (connection) {
    original.submit.call(this, connection);
    // The bytes are in the hands of the system by now: a write that does not block is done at once.
    if (isDoomed.getStore()) die();
  };
}

function killInTransaction(prototype: AnyDatabase, { number, moment }: KillPoint): void {
  const { transaction } = methodsOf(prototype, 'transaction');
  let count = 0;
  prototype.transaction = async function <T>(body: (tx: Executor) => Promise<T>, options?: TransactionOptions) {
    count += 1;
    if (count !== number) return transaction.call(this, body, options) as Promise<T>;
    if (moment === 'before') die();
    const doomed = (tx: Executor): Promise<T> =>
      body({
        ...tx,
        run: async (statement) => {
          const rows = await tx.run(statement);
          if (moment === 'sent') die();
          return rows;
        },
      });
    const result = await transaction.call(this, doomed, options);
    die();
    return result as T;
  };
}

/** The methods as they are now, to be called after they have been replaced. */
export function methodsOf<T, K extends keyof T>(prototype: T, ...names: K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, prototype[name]])) as Pick<T, K>;
}

function die(): void {
  process.kill(process.pid, 'SIGKILL');
}

const LABELS: readonly (readonly [label: string, text: RegExp, values?: RegExp])[] = [
  ['child start', /INSERT INTO \S*workflow_status/, /everything-\d/],
  ['start', /INSERT INTO \S*workflow_status/],
  ['step checkpoint', /INSERT INTO \S*operation_outputs/, /\b(first|left|right|last|only|one|two|held|after)\b/],
  ['child result', /INSERT INTO \S*operation_outputs/, /DBOS\.getResult/],
  ['sleep record', /INSERT INTO \S*operation_outputs/, /DBOS\.sleep/],
  ['wait record', /INSERT INTO \S*operation_outputs/, /DBOS\.wait/],
  ['message', /INSERT INTO \S*notifications/],
  ['receipt', /UPDATE \S*notifications/],
  ['event', /INSERT INTO \S*workflow_events"/],
  ['stream', /INSERT INTO \S*streams/],
  ['outcome', /UPDATE \S*workflow_status[^]*SET status = r\.status/],
  ['claim', /picked AS[^]*SET status = 'PENDING'/],
  ['due', /UPDATE \S*workflow_status[^]*SET status = 'ENQUEUED'[^]*is_debounced/],
  ['park', /UPDATE \S*workflow_status[^]*SET status = 'DELAYED', delay_until/],
  ['recover', /UPDATE \S*workflow_status[^]*SET\s+status = 'ENQUEUED'/],
  ['firing', /UPDATE \S*workflow_schedules[^]*SET last_fired_at/],
  ['collect', /DELETE FROM \S*workflow_status/],
  ['executor', /(INSERT INTO|DELETE FROM|UPDATE) \S*executors/],
];

/** What a commit is about. */
export function describeCommit(database: AnyDatabase, statements: readonly Sql[]): string {
  const labels = statements.flatMap((statement) => {
    const { text, values } = render(statement, database.dialect);
    // On Postgres, lists are binary.
    const content = values
      .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value))
      .join();
    const found = LABELS.filter(([, inText, inValues]) => inText.test(text) && (inValues?.test(content) ?? true));
    return found.length === 0 ? [/pg_notify|cancel/i.test(text) ? IGNORED : 'other'] : found.map(([label]) => label);
  });
  return labels.join(' + ');
}
