// Paused topics. They are rows, so that a pause holds in all processes and after a restart.
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import { sql } from '../../../kernel/sql/sql.js';
import type { OutboxDatabase } from '../database.js';
import type { OutboxTable, StateTable } from '../schema/tables.js';
import { tableToken, text } from '../tokens.js';

interface Tables {
  readonly outbox: OutboxTable;
  readonly state: StateTable | undefined;
}

/** False if it was paused already. */
export async function pauseTopic(database: OutboxDatabase, tables: Tables, topic: string): Promise<boolean> {
  const state = stateOf(tables);
  const paused = await database.connected(() =>
    database.transact((tx) =>
      tx.run(sql`
    INSERT INTO ${state} (queue, kind, "key")
    VALUES (${text(topic)}, 'paused', '')
    ON CONFLICT DO NOTHING
    RETURNING queue`),
    ),
  );
  return paused.length > 0;
}

/** False if it was not paused. */
export async function resumeTopic(database: OutboxDatabase, tables: Tables, topic: string): Promise<boolean> {
  const state = stateOf(tables);
  const resumed = await database.connected(() =>
    database.transact(async (tx) => {
      const rows = await tx.run(sql`
    DELETE FROM ${state}
    WHERE queue = ${text(topic)} AND kind = 'paused' AND "key" = ''
    RETURNING queue`);
      if (database.driver.dialect === 'postgres') {
        await tx.run(sql`SELECT pg_notify(${text(tables.outbox.channel)}, ${text(topic)})::text AS notified`);
      }
      return rows;
    }),
  );
  return resumed.length > 0;
}

/** The paused topics; none without a state table. */
export async function pausedTopics(database: OutboxDatabase, { state }: Tables): Promise<string[]> {
  if (!state) return [];
  const rows = await database.connected(() =>
    database.transact(
      (tx) => tx.run(sql`SELECT s.queue FROM ${tableToken(state)} AS s WHERE s.kind = 'paused' ORDER BY s.queue`),
      { readOnly: true },
    ),
  );
  return rows.map((row) => String(row['queue']));
}

function stateOf({ state }: Tables): ReturnType<typeof tableToken> {
  if (state) return tableToken(state);
  throw new InvalidOutboxError('Pausing topics needs a table. Pass stateTable: makeStateTable() to the OutboxBroker.');
}
