// What plugins keep in the system database, above all how far they have come.
import type { Database } from '../../store/database.js';
import {
  type EventDispatchState,
  findEventDispatchState,
  toEventDispatchState,
  upsertEventDispatchState,
} from '../../store/receiving/event-dispatch.js';

/** A value of a plugin. `service`, `workflowFnName` and `key` name it; a time or a number says how recent it is. */
export type DBOSExternalState = EventDispatchState;

/** Stores the state unless a later one is there. Gives what is stored then. */
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
