// `everstep migrate --adopt`: shows what DBOS has left in flight, and takes it over once its processes are declared gone.
// `--release` is the way back: it leaves to DBOS what Everstep has in flight.
import { adoptWorkflows, findAdoptable } from './adoption.js';
import type { AdoptableGroup } from './adoption.sql.js';
import type { CommandContext } from '../../faces/cli/command.js';
import { type DATABASE, withClient } from '../../faces/cli/connection.js';
import { wrongUsage } from '../../faces/cli/failure.js';
import { flag, repeatable, text, type Values } from '../../faces/cli/option.js';
import type { RenderContext } from '../../faces/cli/render-context.js';
import { type Column, counted, formatTable } from '../../faces/cli/table.js';
import { formatRelative } from '../../faces/cli/time.js';

export const ADOPT_OPTIONS = {
  adopt: flag('Show what DBOS has left in flight; with --gone, take it over'),
  release: flag('Show what Everstep has left in flight; with --gone, leave it to DBOS'),
  gone: flag('Declare that the processes whose workflows are taken over have ended'),
  executor: repeatable(text('With --adopt or --release: only what this executor ID has run', { placeholder: 'ID' })),
  fromVersion: repeatable(
    text('With --adopt or --release: only workflows of this version', { placeholder: 'VERSION' }),
  ),
  toVersion: text('The version that is to run them; the latest with --adopt', { placeholder: 'VERSION' }),
};

type AdoptOptions = Values<typeof ADOPT_OPTIONS>;

export interface Adoption {
  readonly leftBy: 'dbos' | 'everstep';
  readonly isDryRun: boolean;
  /** What was in flight, before anything was taken over. */
  readonly groups: readonly AdoptableGroup[];
  readonly adopted: number;
}

/** Refuses combinations that make no sense. */
export function checkAdoptOptions(options: AdoptOptions): void {
  const { adopt, release, gone, executor, fromVersion, toVersion } = options;
  if (adopt && release) throw wrongUsage('Give --adopt or --release, not both.');
  // DBOS registers its version once: it is not the latest any more.
  if (release && toVersion === undefined) throw wrongUsage('--release needs --to-version, the version of DBOS.');
  if (adopt || release || !(gone || executor || fromVersion || toVersion)) return;
  throw wrongUsage('--gone, --executor, --from-version and --to-version belong to --adopt or --release.');
}

export function adopt(context: CommandContext, options: AdoptOptions & Values<typeof DATABASE>): Promise<Adoption> {
  const filter = {
    leftBy: options.release ? ('everstep' as const) : ('dbos' as const),
    executorIDs: options.executor,
    applicationVersions: options.fromVersion,
    toVersion: options.toVersion ?? null,
  };
  return withClient(context, options, async ({ operator }) => {
    const groups = await findAdoptable(operator, filter);
    const adopted = options.gone ? await adoptWorkflows(operator, filter) : 0;
    return { leftBy: filter.leftBy, isDryRun: !options.gone, groups, adopted };
  });
}

function columns({ now }: RenderContext): Column<AdoptableGroup>[] {
  return [
    { title: 'EXECUTOR', text: (group) => group.executorID ?? '' },
    { title: 'VERSION', text: (group) => group.applicationVersion ?? '', isShortenable: true },
    { title: 'APPLICATION', text: (group) => group.applicationName ?? '', isShortenable: true, rank: 1 },
    { title: 'RUNNING', text: (group) => String(group.running) },
    { title: 'WAITING', text: (group) => String(group.waiting) },
    { title: 'OLDEST', text: (group) => formatRelative(group.oldestAt, now), rank: 2 },
  ];
}

const NAMES = { dbos: 'DBOS', everstep: 'Everstep' };

export function adoptionText(rendering: RenderContext, { leftBy, isDryRun, groups, adopted }: Adoption): string {
  if (groups.length === 0) return `${NAMES[leftBy]} has left nothing in flight.`;
  const outcome = isDryRun
    ? 'Nothing was changed. When these processes have ended, run it again with --gone.'
    : `${counted(adopted, 'workflow')} put back on their queues.`;
  return `Left in flight by ${NAMES[leftBy]}:\n${formatTable(rendering, columns(rendering), groups)}\n${outcome}`;
}
