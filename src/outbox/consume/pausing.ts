// Paused topics. They are rows, so that a pause holds in all processes and after a restart.
import { InvalidOutboxError } from '../../model/errors/errors.js';
import { sql } from '../../sql/sql.js';
import type { OutboxDatabase } from '../database.js';
import type { OutboxTable, StateTable } from '../schema/tables.js';
import { tableToken, text } from '../tokens.js';

interface Tables {
  readonly outbox: OutboxTable;
  readonly state: StateTable | undefined;
}

export async function pauseTopic(database: OutboxDatabase, tables: Tables, topic: string): Promise<void> {
  const state = stateOf(tables);
  await database.connected(() =>
    database.transact((tx) =>
      tx.run(sql`
    INSERT INTO ${state} (queue, kind, "key")
    VALUES (${text(topic)}, 'paused', '')
    ON CONFLICT DO NOTHING
    RETURNING queue`),
    ),
  );
}

export async function resumeTopic(database: OutboxDatabase, tables: Tables, topic: string): Promise<void> {
  const state = stateOf(tables);
  await database.connected(() =>
    database.transact(async (tx) => {
      await tx.run(sql`
    DELETE FROM ${state}
    WHERE queue = ${text(topic)} AND kind = 'paused' AND "key" = ''
    RETURNING queue`);
      if (database.driver.dialect === 'postgres') {
        await tx.run(sql`SELECT pg_notify(${text(tables.outbox.channel)}, ${text(topic)})::text AS notified`);
      }
    }),
  );
}

function stateOf({ state }: Tables): ReturnType<typeof tableToken> {
  if (state) return tableToken(state);
  throw new InvalidOutboxError('Pausing topics needs a table. Pass stateTable: makeStateTable() to the OutboxBroker.');
}
