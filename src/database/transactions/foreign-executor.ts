// Runs statements on the system tables through a connection of the application, whatever client it uses.
import { postgresJSONDialect } from '../../kernel/sql/postgres-json-dialect.js';
import { type Dialect, render } from '../../kernel/sql/sql.js';
import type { Database, Executor } from '../database.js';
import { isPostgres } from '../postgres/is-postgres.js';
import type { Query } from './shared-database.js';

/** The dialect for connections that are not ours: their clients may not be able to bind what ours can. */
export function foreignDialect(database: Database): Dialect {
  if (!isPostgres(database)) return database.dialect;
  const { schema = 'dbos', now } = database.options;
  return postgresJSONDialect({ schema, now });
}

export function foreignExecutor(dialect: Dialect, query: Query): Executor {
  return {
    dialect,
    run: async (statement) => {
      const { text, values } = render(statement, dialect);
      return [...(await query(text, values))];
    },
  };
}
