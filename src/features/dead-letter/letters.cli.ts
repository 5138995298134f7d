// What the commands for the dead letters of outboxes and of receivers have in common: pages, groups, and changes that count
// and ask first.
import { type CommandContext, confirm, type Output, progressOn, YES_FLAG } from '../../faces/cli/command.js';
import { readIDs } from '../listing/workflow-filters.cli.js';
import { wrongUsage } from '../../faces/cli/failure.js';
import { flag, text, type Values, wholeNumber, withDefault } from '../../faces/cli/option.js';
import { type RenderContext, sanitize } from '../../faces/cli/render-context.js';
import { type Column, counted, formatTable } from '../../faces/cli/table.js';

export const PAGE_LIMIT = {
  limit: withDefault(wholeNumber('At most this many, up to 1,000', { short: 'l', min: 1 }), 20),
};
export const PAGE = {
  ...PAGE_LIMIT,
  cursor: text('Continue after the page that had this cursor'),
  ids: flag('Print only the IDs, one a line'),
};
export const CHANGE = {
  all: flag('All dead letters'),
  limit: wholeNumber('At most this many', { short: 'l', min: 1 }),
  dryRun: flag('Only count'),
  ...YES_FLAG,
};
export const IDS = {
  name: 'ID',
  takes: 'any',
  about: 'IDs of dead letters; "-" reads them from standard input',
} as const;

type Columns<Row> = (rendering: RenderContext) => readonly Column<Row>[];

/** The options of a list that say which page of it. */
export function pageOf({ limit, cursor }: Values<typeof PAGE>): { readonly limit: number; readonly cursor?: string } {
  return { limit, ...(cursor !== undefined && { cursor }) };
}

export function pageOutput<Letter extends { readonly id: string }>(
  { letters, cursor }: { readonly letters: readonly Letter[]; readonly cursor: string | undefined },
  { ids }: Values<typeof PAGE>,
  columns: Columns<Letter>,
  toJSON: (letter: Letter) => object = (letter) => letter,
): Output {
  const more = cursor === undefined ? '' : `\n\nMore: --cursor ${cursor}`;
  return {
    json: { letters: letters.map(toJSON), cursor: cursor ?? null },
    text: (rendering) =>
      ids ? letters.map(({ id }) => sanitize(id)).join('\n') : `${tableOf(rendering, columns, letters)}${more}`,
  };
}

export function groupsOutput<Group>(groups: readonly Group[], columns: Columns<Group>): Output {
  return { json: groups, text: (rendering) => tableOf(rendering, columns, groups) };
}

function tableOf<Row>(rendering: RenderContext, columns: Columns<Row>, rows: readonly Row[]): string {
  return rows.length === 0 ? 'No dead letters.' : formatTable(rendering, columns(rendering), rows);
}

export interface Bounds {
  readonly limit?: number;
  readonly dryRun?: boolean;
  readonly onProgress?: (done: number) => void;
}

export interface Change<Filter> {
  readonly args: readonly string[];
  readonly options: Values<typeof CHANGE>;
  /** What the filter options say, without those that were not passed. */
  readonly filter: Filter;
  /** Whether the filter is narrower than all that are, or are not, archived. */
  readonly isFiltered: boolean;
  /** A filter option to name in errors. */
  readonly hint: string;
  /** As in "Delete 5 dead letters?" and "5 dead letters deleted." */
  readonly verb: string;
  readonly past: string;
  readonly act: (
    filter: Filter & { readonly ids?: readonly string[]; readonly all?: true },
    bounds: Bounds,
  ) => Promise<number>;
}

/** Makes a change, after a count and a prompt if no IDs are given. Returns how many it is for. */
export async function changeLetters<Filter>(context: CommandContext, change: Change<Filter>): Promise<number> {
  const { args, options, filter, isFiltered, hint, verb, past, act } = change;
  const { all, limit, dryRun, yes } = options;
  const ids = args.length > 0 ? await readIDs(context, args) : undefined;
  if (ids && (isFiltered || all)) throw wrongUsage('Pass IDs or filters, not both.');
  if (!ids && !isFiltered && !all) throw wrongUsage(`Pass IDs, a filter such as ${hint}, or --all.`);
  if (ids?.length === 0) return 0;
  const chosen = { ...filter, ...(ids && { ids }), ...(all && { all: true as const }) };
  const bounds = limit === undefined ? {} : { limit };
  if (dryRun || !ids) {
    const count = await act(chosen, { ...bounds, dryRun: true });
    if (dryRun || count === 0) return count;
    await confirm(context, `${verb} ${counted(count, 'dead letter')}?`, yes);
  }
  const progress = progressOn(context);
  try {
    return await act(chosen, {
      ...bounds,
      onProgress(done) {
        progress.show(`${counted(done, 'dead letter')} ${past}`);
        context.signal.throwIfAborted();
      },
    });
  } finally {
    progress.done();
  }
}

/** The output of a change under the name of its result. */
export function countOutput(
  result: Readonly<Record<string, number>>,
  { options: { dryRun }, past }: { readonly options: { readonly dryRun: boolean }; readonly past: string },
  rest = '',
): Output {
  const [count = 0] = Object.values(result);
  return {
    json: { ...result, dryRun },
    text: () => `${counted(count, 'dead letter')} ${dryRun ? 'would be ' : ''}${past}.${rest}`,
  };
}
