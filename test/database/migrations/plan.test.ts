// The pure part: what is pending, what the text is, where statements end, and that the embedded copy is fresh.
import { describe, expect, it } from 'vitest';
import type { Migration } from '../../../src/database/migrations/migration.js';
import {
  addedColumn,
  changedIndex,
  latestVersion,
  pendingMigrations,
  renderMigration,
  splitStatements,
  tracksOf,
  versionAfter,
} from '../../../src/database/migrations/plan.js';

import { EVERSTEP_LATEST } from './setup.js';

const [shared, everstep] = tracksOf('postgres');
const [sqliteShared] = tracksOf('sqlite');
const numbers = (migrations: readonly Migration[]): number[] => migrations.map((migration) => migration.number);
const render = (
  text: string,
  options: { schema?: string; useListenNotify?: boolean; isOnline?: boolean } = {},
): string =>
  renderMigration(
    { number: 1, name: 'x', sql: text, isOnline: false },
    { schema: 'dbos', useListenNotify: true, isOnline: true, ...options },
  );

describe('the list', () => {
  it('has the numbers 1 to 24 and 100 to 123', () => {
    const expected = [...range(1, 24), ...range(100, 123)];

    expect(numbers(shared.migrations)).toEqual(expected);
    expect(numbers(sqliteShared.migrations)).toEqual(expected.filter((number) => ![10, 14, 20].includes(number)));
    expect(latestVersion(shared)).toBe(123);
    expect(latestVersion(everstep)).toBe(EVERSTEP_LATEST);
  });

  it('begins every file with a comment that says what it is for', () => {
    for (const migration of [...shared.migrations, ...everstep.migrations, ...sqliteShared.migrations]) {
      expect(migration.sql, migration.name).toMatch(/^(-- online\n)?-- [A-Z\w]/);
    }
  });

  it('builds and drops indexes concurrently only in online files, and there repeatably', () => {
    for (const migration of [...shared.migrations, ...everstep.migrations]) {
      expect(migration.sql.includes('CONCURRENTLY'), migration.name).toBe(migration.isOnline);
      if (!migration.isOnline) continue;
      for (const statement of splitStatements(render(migration.sql))) {
        expect(statement, migration.name).toMatch(/IF (NOT )?EXISTS|CREATE OR REPLACE/);
        expect(changedIndex(statement) !== undefined, statement).toBe(statement.includes('CONCURRENTLY'));
      }
    }
  });
});

describe('what is pending', () => {
  it('is everything in an empty database', () => {
    expect(pendingMigrations(shared, 0)).toEqual(shared.migrations);
  });

  it.each([24, 70, 98])('is the shared base and what follows at %i, where another library was', (version) => {
    expect(numbers(pendingMigrations(shared, version))).toEqual([24, ...range(100, 123)]);
  });

  it('is what all languages share once the base is there', () => {
    const base = shared.migrations.find((migration) => migration.number === 24);

    expect(base && versionAfter(shared, base)).toBe(99);
    expect(numbers(pendingMigrations(shared, 99))).toEqual(range(100, 123));
  });

  it.each([123, 124, 1000])('is nothing at %i', (version) => {
    expect(pendingMigrations(shared, version)).toEqual([]);
  });
});

describe('the text of a migration', () => {
  it('has the quoted schema', () => {
    expect(render('SELECT {schema}.f();\n', { schema: 'a"b $& c' })).toBe('SELECT "a""b $& c".f();\n');
  });

  it('has the triggers only where they are wanted', () => {
    const text = 'a;\n-- if listen_notify\nb;\n-- end if\nc;\n-- if listen_notify\nd;\n-- end if\n';

    expect(render(text)).toBe('a;\nb;\nc;\nd;\n');
    expect(render(text, { useListenNotify: false })).toBe('a;\nc;\n');
  });

  it('is not concurrent in a database that nobody uses yet', () => {
    const text = '-- online\nCREATE INDEX CONCURRENTLY i ON t (a);\n';

    expect(render(text)).toBe('CREATE INDEX CONCURRENTLY i ON t (a);\n');
    expect(render(text, { isOnline: false })).toBe('CREATE INDEX i ON t (a);\n');
  });

  it('quotes function bodies with a mark that the schema does not contain', () => {
    expect(render('AS $body$ {schema} $body$', { schema: '$body$' })).toBe('AS $body_$ "$body$" $body_$');
  });
});

describe('splitting', () => {
  it('ends a statement at a semicolon outside of quotes, bodies and comments', () => {
    const statements = [
      `SELECT -- no; end\n ';'''`,
      `SELECT "a;""b"`,
      `CREATE FUNCTION f() AS $body$ BEGIN; END; $body$`,
      `SELECT $$;$$, 1 - 2, 'x'`,
    ];

    expect(splitStatements(`${statements.join(';\n')};\n`)).toEqual(statements);
  });

  it('drops what is only comment or space', () => {
    expect(splitStatements('-- nothing;\n ; \n;')).toEqual([]);
    expect(splitStatements('')).toEqual([]);
  });

  it('keeps a last statement without a semicolon', () => {
    expect(splitStatements('SELECT 1; SELECT 2')).toEqual(['SELECT 1', 'SELECT 2']);
  });

  it('finds the column that a statement adds', () => {
    expect(addedColumn('-- Why.\nALTER TABLE t ADD COLUMN c TEXT')).toEqual({ table: 't', column: 'c' });
    expect(addedColumn('CREATE TABLE t (c TEXT)')).toBeUndefined();
  });

  it('finds the index that a statement builds or drops concurrently', () => {
    const build = '-- Why.\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i\n  ON {schema}.t (c)';
    const drop = 'DROP INDEX CONCURRENTLY IF EXISTS {schema}.i';

    expect(changedIndex(render(build))).toEqual({ name: 'i', isWanted: true });
    expect(changedIndex(render(drop))).toEqual({ name: 'i', isWanted: false });
    expect(changedIndex(render(drop, { schema: 'a ".\n" b' }))).toEqual({ name: 'i', isWanted: false });
    expect(changedIndex('CREATE INDEX IF NOT EXISTS i ON t (c)')).toBeUndefined();
  });
});

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
