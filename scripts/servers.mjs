// The Postgres servers that tests run on besides the embedded one, and what runs on them.
import { existsSync } from 'node:fs';

export const STOCK = 'stock';
export const SERVERS = [STOCK, '14', '15', '16', '17', '18'];

/** Every night. */
export const SUITES = ['test/plans', 'test/store', 'test/engine', 'test/crash'];
/** In each run, on Debian's server only: plans differ most where the planner may compile them. */
export const SHORT_SUITES = ['test/plans', 'test/store/queues'];

export function hasStockPostgres() {
  return existsSync('/usr/lib/postgresql');
}
