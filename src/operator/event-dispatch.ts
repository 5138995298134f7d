// State that plugins keep in the system database, such as their position in a source.
import type { Database } from '../database/database.js';
import {
  type EventDispatchState,
  findEventDispatchState,
  toEventDispatchState,
  upsertEventDispatchState,
} from '../run/rows/event-dispatch.js';

/** A plugin's value. `service`, `workflowFnName` and `key` identify it; a time or sequence number orders updates. */
export type DBOSExternalState = EventDispatchState;

/** Stores the state unless a later one exists. Returns the stored one. */
export async function saveEventDispatchState(database: Database, state: DBOSExternalState): Promise<DBOSExternalState> {
  const [row] = await database.run(upsertEventDispatchState(state));
  return row ? toEventDispatchState(row) : state;
}

export function getEventDispatchState(
  database: Database,
  name: Pick<DBOSExternalState, 'service' | 'workflowFnName' | 'key'>,
): Promise<DBOSExternalState | undefined> {
  return findEventDispatchState(database, name);
}
