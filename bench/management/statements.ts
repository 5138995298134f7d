// A database whose statements are timed, as whoever sends them sees it: with the wait for a turn.
import type { Database } from '../../src/database/database.js';

export interface TimedDatabase {
  readonly database: Database;
  /** How long each statement or commit took, in milliseconds. */
  readonly times: number[];
}

export function timeStatements(database: Database): TimedDatabase {
  const times: number[] = [];
  const note = async <T>(sent: Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const result = await sent;
    times.push(performance.now() - startedAt);
    return result;
  };
  const timed: Database = {
    dialect: database.dialect,
    run: (statement) => note(database.run(statement)),
    read: (statement) => note(database.read(statement)),
    observe: (statement, options) => note(database.observe(statement, options)),
    commit: (statements) => note(database.commit(statements)),
    transaction: (body) => note(database.transaction(body)),
    exclusive: (body) => database.exclusive(body),
    close: () => database.close(),
  };
  return { database: timed, times };
}
