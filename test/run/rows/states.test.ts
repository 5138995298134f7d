import { describe, expect, test } from 'vitest';
import {
  ACTIVE_STATUSES,
  hasEnded,
  hasOutcome,
  StatusString,
  STOPPED_STATUSES,
} from '../../../src/kernel/workflow/status.js';
import { postgresDialect } from '../../../src/kernel/sql/postgres-dialect.js';
import { render, type Sql } from '../../../src/kernel/sql/sql.js';
import { tracksOf } from '../../../src/database/migrations/plan.js';
import * as states from '../../../src/run/rows/states.js';

const dialect = postgresDialect({ schema: 'dbos' });
const textOf = (condition: Sql): string => render(condition, dialect).text;

function migrationsOf(name: 'postgres' | 'sqlite'): string {
  const migrations = tracksOf(name).flatMap((track) => track.migrations);
  return migrations.map((migration) => migration.sql).join('\n');
}

describe('conditions on the status of a workflow', () => {
  test.each(['isActive', 'isInFlight', 'hasFailed', 'isListedAsWaiting'] as const)(
    '%s repeats the condition of a partial index word for word',
    (name) => {
      const condition = textOf(states[name]());

      expect(migrationsOf('postgres')).toContain(`WHERE ${condition}`);
      expect(migrationsOf('sqlite')).toContain(`WHERE ${condition}`);
    },
  );

  test.each(['isWaiting', 'isPending'] as const)('%s is the condition of no index', (name) => {
    const condition = textOf(states[name]());

    expect(migrationsOf('postgres')).not.toContain(condition);
    expect(migrationsOf('sqlite')).not.toContain(condition);
  });

  test('every state is active, stopped, or has an outcome', () => {
    const all = Object.values(StatusString);

    expect(all.filter(hasEnded)).toEqual(
      all.filter((status) => !(ACTIVE_STATUSES as readonly string[]).includes(status)),
    );
    expect([...ACTIVE_STATUSES, ...STOPPED_STATUSES, ...all.filter(hasOutcome)].sort()).toEqual(all.toSorted());
  });
});
