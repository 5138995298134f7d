// The versions of an application, as its users see them.
import { DBOSError, DBOSInitializationError } from '../model/errors.js';
import type { Database } from '../store/database.js';
import { listVersions, setLatestVersion, type VersionRecord } from '../store/versions.js';

export interface VersionInfo {
  readonly versionId: string;
  readonly versionName: string;
  readonly versionTimestamp: number;
  readonly createdAt: number;
  readonly applicationName?: string;
}

/** All that were launched, the latest first. */
export async function listApplicationVersions(database: Database, applicationName: string): Promise<VersionInfo[]> {
  return (await listVersions(database, applicationName)).map(toInfo);
}

export async function getLatestApplicationVersion(database: Database, applicationName: string): Promise<VersionInfo> {
  const [latest] = await listVersions(database, applicationName);
  if (!latest) throw new DBOSInitializationError('No application versions found');
  return toInfo(latest);
}

/** From now on workflows without a version go to this one. */
export async function setLatestApplicationVersion(
  database: Database,
  versionName: string,
  applicationName: string,
): Promise<void> {
  if (await setLatestVersion(database, versionName, applicationName)) return;
  throw new DBOSError(
    `Application "${applicationName}" has no version "${versionName}". Launch it once to make it known.`,
  );
}

function toInfo({ versionID, applicationName, ...rest }: VersionRecord): VersionInfo {
  return { ...rest, versionId: versionID, applicationName: applicationName ?? undefined };
}
