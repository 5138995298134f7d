// What a client leaves out on a database that only DBOS has migrated; see `migrations/dbos-tables.ts`.
import { ifLacking } from '../kernel/sql/sql.js';
import type { Executor } from './database.js';

export function lacks({ dialect }: Pick<Executor, 'dialect'>, table: string): boolean {
  return dialect.lacking?.tables.has(table) ?? false;
}

// DBOS 4 has no column for the token of a row's creator, and uses the owner's.
const CREATOR = 'creator_xid';

/** The name of the creator's column, for an INSERT. */
export const creatorName = ifLacking(CREATOR, { then: 'owner_xid', otherwise: CREATOR });
/** The creator of a row, for a select list. */
export const selectedCreator = ifLacking(CREATOR, { then: 'owner_xid AS creator_xid', otherwise: CREATOR });
/** The owner of a new row `r`. */
export const insertedOwner = ifLacking(CREATOR, {
  then: 'COALESCE(r.owner_xid, r.creator_xid)',
  otherwise: 'r.owner_xid',
});
