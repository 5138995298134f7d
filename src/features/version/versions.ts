// Application versions.
import { DBOSInitializationError, VersionNotFoundError } from '../../kernel/errors/errors.js';
import { listVersions, setLatestVersion, type VersionRecord } from './versions.sql.js';
import { topics } from '../../database/notify/topics.js';
import type { Operator } from '../../operator/operator.js';

export interface VersionInfo {
  readonly versionId: string;
  readonly versionName: string;
  readonly versionTimestamp: number;
  readonly createdAt: number;
  readonly applicationName?: string;
}

export interface SetLatestVersionOptions {
  /** Default: the operator's own. */
  readonly applicationName?: string;
}

/** The launched versions, latest first. */
export async function listApplicationVersions(operator: Operator): Promise<VersionInfo[]> {
  const versions = await operator.retrying(() => listVersions(operator.database, operator.applicationName));
  return versions.map(toInfo);
}

export async function getLatestApplicationVersion(operator: Operator): Promise<VersionInfo> {
  const [latest] = await listApplicationVersions(operator);
  if (!latest) throw new DBOSInitializationError('No application versions found');
  return latest;
}

/** From now on workflows without a version go to this one. */
export async function setLatestApplicationVersion(
  operator: Operator,
  versionName: string,
  options: SetLatestVersionOptions = {},
): Promise<void> {
  const applicationName = options.applicationName ?? operator.applicationName;
  const isKnown = await operator.retrying(() => setLatestVersion(operator.database, versionName, applicationName));
  if (!isKnown) {
    const whose = applicationName === null ? '' : ` of application "${applicationName}"`;
    throw new VersionNotFoundError(
      `Application version "${versionName}"${whose} not found. Launch it once to register it.`,
    );
  }
  // Other processes may claim waiting workflows without a version now.
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
}

function toInfo({ versionID, applicationName, ...rest }: VersionRecord): VersionInfo {
  return { ...rest, versionId: versionID, applicationName: applicationName ?? undefined };
}
