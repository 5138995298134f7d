// Commands about the versions of an application.
import {
  listApplicationVersions,
  setLatestApplicationVersion,
  type VersionInfo,
} from '../../control/management/versions.js';
import { command, JSON_FLAG } from '../command.js';
import { APPLICATION, DATABASE, withClient } from '../connection.js';
import { notFound } from '../failure.js';
import { formatTable, type Column } from '../table.js';
import { formatRelative } from '../time.js';
import type { Paper } from '../paper.js';

const OPTIONS = { ...APPLICATION, ...DATABASE, ...JSON_FLAG };

type Row = VersionInfo & { readonly isLatest: boolean };

function columns({ now }: Paper): Column<Row>[] {
  return [
    { title: 'VERSION', text: (row) => row.versionName },
    { title: 'APPLICATION', text: (row) => row.applicationName, rank: 1 },
    { title: 'FIRST LAUNCHED', text: (row) => formatRelative(row.createdAt, now) },
    { title: 'MADE LATEST', text: (row) => formatRelative(row.versionTimestamp, now), rank: 2 },
    { title: '', text: (row) => (row.isLatest ? 'latest' : ''), colour: () => 'green' },
  ];
}

/** The latest of each application; versions come latest first. */
function withLatest(versions: readonly VersionInfo[]): Row[] {
  const seen = new Set<string>();
  return versions.map((version) => {
    const application = version.applicationName ?? '';
    const isLatest = !seen.has(application);
    seen.add(application);
    return { ...version, isLatest };
  });
}

const listCommand = command({
  name: 'version list',
  about: 'List the versions that were launched, the latest first',
  options: OPTIONS,
  examples: [['everstep version list', 'of all applications']],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }) => {
      const rows = withLatest(await listApplicationVersions(operator));
      return {
        json: rows,
        text: (paper) =>
          rows.length === 0 ? 'No version was launched yet.' : formatTable(paper, columns(paper), rows),
      };
    }),
});

const latestCommand = command({
  name: 'version latest',
  about: 'Show the version that takes workflows without one',
  options: OPTIONS,
  examples: [['everstep version latest --app shop', 'of one application']],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }) => {
      const [latest] = await listApplicationVersions(operator);
      if (!latest) throw notFound('No version was launched yet.');
      return { json: latest, text: () => latest.versionName };
    }),
});

const setLatestCommand = command({
  name: 'version set-latest',
  about: 'Let a version take workflows without one: schedules and enqueued workflows',
  parameter: { name: 'VERSION', takes: 'one', about: 'A version that was launched before' },
  options: OPTIONS,
  examples: [['everstep version set-latest 1.4.2', 'roll back to an older one']],
  run: (scene, { options, args: [version = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const versions = await listApplicationVersions(operator);
      if (!versions.some(({ versionName }) => versionName === version)) {
        throw notFound(`There is no version "${version}". Launch it once to make it known.`);
      }
      await setLatestApplicationVersion(operator, version);
      return { json: { latest: version }, text: () => `"${version}" is the latest version now.` };
    }),
});

export const VERSION_COMMANDS = [listCommand, latestCommand, setLatestCommand];
