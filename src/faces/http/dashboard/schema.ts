// The versions of the system tables, and those that this release needs.
import type { StoreOperator } from '../source.js';

export interface SchemaState {
  readonly versions: { readonly shared: number; readonly everstep: number };
  readonly neededVersions: { readonly shared: number; readonly everstep: number };
  /** Migrations that have not run. */
  readonly due: number;
}

export async function readSchema(operator: StoreOperator): Promise<SchemaState> {
  const { database } = operator;
  // Loaded when asked for: the migrations are a file of their own.
  const [{ databaseSource, readVersions }, { latestVersion, pendingMigrations, tracksOf }] = await Promise.all([
    import('../../../database/migrations/versions.js'),
    import('../../../database/migrations/plan.js'),
  ]);
  const versions = await operator.retrying(() => readVersions(databaseSource(database, schemaOf(database))));
  const tracks = tracksOf(database.dialect.name);
  const [shared, everstep] = tracks.map(latestVersion) as [number, number];
  const due = tracks.map((track, index) => pendingMigrations(track, versions[index] ?? 0).length);
  return {
    versions: { shared: versions[0], everstep: versions[1] },
    neededVersions: { shared, everstep },
    due: due.reduce((sum, count) => sum + count, 0),
  };
}

export async function migrationsDue(operator: StoreOperator): Promise<number> {
  return (await readSchema(operator)).due;
}

/** The schema that statements name; SQLite has none. */
export function schemaOf({ dialect }: StoreOperator['database']): string {
  const quoted = /^"((?:[^"]|"")*)"\./.exec(dialect.table('workflow_status'))?.[1];
  return quoted?.replaceAll('""', '"') ?? 'dbos';
}
