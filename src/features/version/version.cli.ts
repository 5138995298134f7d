// Commands for application versions.
import { listApplicationVersions, setLatestApplicationVersion, type VersionInfo } from './versions.js';
import { command, JSON_FLAG } from '../../faces/cli/command.js';
import { APPLICATION, DATABASE, withClient } from '../../faces/cli/connection.js';
import { notFound } from '../../faces/cli/failure.js';
import { formatTable, type Column } from '../../faces/cli/table.js';
import { formatRelative } from '../../faces/cli/time.js';
import type { RenderContext } from '../../faces/cli/render-context.js';

const OPTIONS = { ...APPLICATION, ...DATABASE, ...JSON_FLAG };

type Row = VersionInfo & { readonly isLatest: boolean };

function columns({ now }: RenderContext): Column<Row>[] {
  return [
    { title: 'VERSION', text: (row) => row.versionName },
    { title: 'APPLICATION', text: (row) => row.applicationName, rank: 1 },
    { title: 'FIRST LAUNCHED', text: (row) => formatRelative(row.createdAt, now) },
    { title: 'SET LATEST', text: (row) => formatRelative(row.versionTimestamp, now), rank: 2 },
    { title: '', text: (row) => (row.isLatest ? 'latest' : ''), colour: () => 'green' },
  ];
}

/** Marks the latest version of each application. Expects the latest first. */
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
  about: 'List the launched versions, latest first',
  options: OPTIONS,
  examples: [['everstep version list', 'all applications']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const rows = withLatest(await listApplicationVersions(operator));
      return {
        json: rows,
        text: (rendering) =>
          rows.length === 0 ? 'No version has been launched yet.' : formatTable(rendering, columns(rendering), rows),
      };
    }),
});

const latestCommand = command({
  name: 'version latest',
  about: 'Show the version that runs workflows without a version',
  options: OPTIONS,
  examples: [['everstep version latest --app shop', 'one application']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const [latest] = await listApplicationVersions(operator);
      if (!latest) throw notFound('No version was launched yet.');
      return { json: latest, text: () => latest.versionName };
    }),
});

const setLatestCommand = command({
  name: 'version set-latest',
  about: 'Set the version that runs workflows without a version: scheduled and enqueued ones',
  parameter: { name: 'VERSION', takes: 'one', about: 'A version that has been launched' },
  options: OPTIONS,
  examples: [['everstep version set-latest 1.4.2', 'roll back']],
  run: (context, { options, args: [version = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const versions = await listApplicationVersions(operator);
      if (!versions.some(({ versionName }) => versionName === version)) {
        throw notFound(`There is no version "${version}". Launch it once to make it known.`);
      }
      await setLatestApplicationVersion(operator, version);
      return { json: { latest: version }, text: () => `"${version}" is now the latest version.` };
    }),
});

export const VERSION_COMMANDS = [listCommand, latestCommand, setLatestCommand];
