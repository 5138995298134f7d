// Makes a guarded statement fail instead of writing nothing, so that the COMMIT pipelined behind it is skipped. Postgres
// only.
import { sql } from './sql.js';

/** Part of the error's message. */
export const REFUSAL = 'everstep refuses this since';

/** An integer expression that fails when evaluated. The clock keeps the planner from folding it. */
export const refusal = sql`CAST('everstep refuses this since ' || clock_timestamp() AS INTEGER)`;
