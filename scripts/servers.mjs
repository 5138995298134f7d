// The Postgres servers that tests run on besides the embedded one, and what runs on them.
import { existsSync } from 'node:fs';

export const STOCK = 'stock';
export const SERVERS = [STOCK, '14', '15', '16', '17', '18'];

export const SUITES = ['test/plans', 'test/database', 'test/run', 'test/features', 'test/crash'];

export function hasStockPostgres() {
  return existsSync('/usr/lib/postgresql');
}
