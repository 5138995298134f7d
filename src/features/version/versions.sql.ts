// Versions of an application that were launched. The latest is the one last set as such.
import { newID } from '../../kernel/base/ids.js';
import { OwnedByAnotherApplicationError } from '../../kernel/errors/errors.js';
import { nowMs, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database } from '../../database/database.js';

export interface VersionRecord {
  readonly versionID: string;
  readonly versionName: string;
  readonly versionTimestamp: number;
  readonly createdAt: number;
  readonly applicationName: string | null;
}

const versions = table('application_versions');
const columns = new TableColumns<VersionRecord>([
  ['versionID', 'version_id', 'text'],
  ['versionName', 'version_name', 'text'],
  ['versionTimestamp', 'version_timestamp', 'bigint'],
  ['createdAt', 'created_at', 'bigint'],
  ['applicationName', 'application_name', 'text'],
]);
const selected = columns.select('v');

/** Registers the version if it is new, and adopts a row of that name without an application. */
export async function registerVersion(database: Database, versionName: string, applicationName: string): Promise<void> {
  await database.run(sql`
    INSERT INTO ${versions} (version_id, version_name, version_timestamp, created_at, application_name)
    VALUES (${newID()}, ${versionName}, ${nowMs}, ${nowMs}, ${applicationName})
    ON CONFLICT DO NOTHING`);
  await database.run(sql`
    UPDATE ${versions} SET application_name = ${applicationName}
    WHERE version_name = ${versionName} AND application_name IS NULL`);
  const [row] = await database.read(sql`
    SELECT v.application_name FROM ${versions} AS v WHERE v.version_name = ${versionName}`);
  const owner = row?.['application_name'] as string | undefined;
  if (owner === undefined || owner === applicationName) return;
  throw new OwnedByAnotherApplicationError(
    `Application version "${versionName}" belongs to application "${owner}". Set applicationVersion to a name that only "${applicationName}" uses.`,
  );
}

/** Makes a version the application's latest. Returns whether it exists. */
export async function setLatestVersion(
  database: Database,
  versionName: string,
  applicationName: string | null,
): Promise<boolean> {
  const owned =
    applicationName === null ? sql`` : sql`AND (application_name = ${applicationName} OR application_name IS NULL)`;
  // Later than all others, even if their timestamps are in the future.
  const changed = await database.run(sql`
    UPDATE ${versions}
    SET application_name = COALESCE(application_name, ${applicationName}), version_timestamp = (
      SELECT CASE WHEN MAX(o.version_timestamp) >= ${nowMs} THEN MAX(o.version_timestamp) + 1 ELSE ${nowMs} END
      FROM ${versions} AS o)
    WHERE version_name = ${versionName} ${owned}
    RETURNING version_id`);
  return changed.length > 0;
}

/** The versions of the application and those without one, latest first; null for all applications. */
export async function listVersions(database: Database, applicationName: string | null): Promise<VersionRecord[]> {
  const owned =
    applicationName === null ? sql`` : sql`WHERE v.application_name = ${applicationName} OR v.application_name IS NULL`;
  const found = await database.read(sql`
    SELECT ${selected}
    FROM ${versions} AS v
    ${owned}
    ORDER BY v.version_timestamp DESC, v.version_id DESC`);
  return found.map((row) => columns.toRecord(row));
}
