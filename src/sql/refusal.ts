// A statement that fails instead of writing nothing, so that the COMMIT behind it is skipped. Postgres only.
import { sql } from './sql.js';

/** Stands in the message of the failure. */
export const REFUSAL = 'everstep refuses this since';

/** In the place of a number. The clock keeps the planner from working it out beforehand. */
export const refusal = sql`CAST('everstep refuses this since ' || clock_timestamp() AS INTEGER)`;
