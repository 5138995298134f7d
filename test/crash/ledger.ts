// The application's own database: bookings, each made by a transaction of a workflow.
import BetterSqlite3 from 'better-sqlite3';
import { expect } from 'vitest';
import { newID } from '../../src/kernel/base/ids.js';
import { BetterSqlite3DataSource } from '../../src/plugins/transaction/adapters/better-sqlite3.js';
import { NodePostgresDataSource } from '../../src/plugins/transaction/adapters/node-postgres.js';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import type { Tables } from './invariants.js';

export const LEDGER = 'CREATE TABLE bookings (workflow_id TEXT NOT NULL, name TEXT NOT NULL, token TEXT NOT NULL)';

type Book = (name: string) => Promise<string>;

/** Books in a transaction of a data source on the database. */
export function ledgerOn(DBOS: DBOSInstance, url: string | undefined): Book | undefined {
  if (url === undefined) return undefined;
  return url.startsWith('sqlite') ? onSqlite(DBOS, url) : onPostgres(DBOS, url);
}

function onSqlite(DBOS: DBOSInstance, url: string): Book {
  const database = new BetterSqlite3(url.replace('sqlite:///', ''));
  database.pragma('journal_mode = WAL');
  const source = new BetterSqlite3DataSource('ledger', database, { owner: DBOS });
  return (name) =>
    source.runTransaction(
      async () => {
        const token = newID();
        source.client.prepare('INSERT INTO bookings VALUES (?, ?, ?)').run(DBOS.workflowID, name, token);
        return token;
      },
      { name },
    );
}

function onPostgres(DBOS: DBOSInstance, url: string): Book {
  const source = new NodePostgresDataSource('ledger', { connectionString: url }, { owner: DBOS });
  return (name) =>
    source.runTransaction(
      async () => {
        const token = newID();
        await source.client.query('INSERT INTO bookings VALUES ($1, $2, $3)', [DBOS.workflowID, name, token]);
        return token;
      },
      { name },
    );
}

export interface Booking {
  readonly workflow_id: string;
  readonly name: string;
  readonly token: string;
}

/** Each transaction of each workflow was applied once, and it is the one that is recorded. */
export function expectBooked(tables: Tables, bookings: readonly Booking[]): void {
  const isBooking = (name: string): boolean => name === 'debit' || name === 'credit';
  const recorded = [...tables.steps.values()]
    .filter(({ name }) => isBooking(name))
    .map(({ workflowID, name, value }) => `${workflowID} ${name} ${String(value)}`);
  const applied = bookings.map((one) => `${one.workflow_id} ${one.name} ${one.token}`);
  expect(applied.sort(), 'the bookings that were applied, and those that are recorded').toEqual(recorded.sort());
}
