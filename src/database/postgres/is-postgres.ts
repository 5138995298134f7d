// Tells the drivers apart without loading this one, and `pg` with it.
import { isInstanceOf } from '../../kernel/base/copies.js';
import type { Database } from '../database.js';
import type { PostgresDatabase } from './postgres-database.js';

export function isPostgres(database: Database): database is PostgresDatabase {
  return isInstanceOf(database, 'PostgresDatabase');
}
