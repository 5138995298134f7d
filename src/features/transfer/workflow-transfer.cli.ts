// Commands that export and import workflows.
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { countWorkflows } from '../listing/listing.js';
import { toLines } from './export-format.js';
import { exportWorkflows, importWorkflows } from './transfer.js';
import { command, JSON_FLAG, progressOn, type CommandContext } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { CommandFailure, wrongUsage } from '../../faces/cli/failure.js';
import { choice, flag, text, wholeNumber } from '../../faces/cli/option.js';
import { safeJSON, sanitize } from '../../faces/cli/render-context.js';
import { counted } from '../../faces/cli/table.js';
import { FILTERS, findAll, IDS_PARAMETER, readIDs, toFilters } from '../listing/workflow-filters.cli.js';

/** How far a transfer has got. The total is 0 if it is not known. */
interface Measure {
  readonly total: number;
  /** How much a text counts for. */
  of(text: string): number;
  shown(done: number): string;
}

/** Passes texts on with a progress line, and stops at Ctrl-C. */
async function* withProgress(
  context: CommandContext,
  texts: AsyncIterable<string>,
  measure: Measure,
): AsyncGenerator<string, void, undefined> {
  const progress = progressOn(context);
  let done = 0;
  try {
    for await (const text of texts) {
      context.signal.throwIfAborted();
      yield text;
      done += measure.of(text);
      progress.show(measure.shown(done), { done, total: measure.total });
    }
    context.signal.throwIfAborted();
  } finally {
    progress.done();
  }
}

/** Writes the lines and returns their number. */
async function writeAll(lines: AsyncIterable<string>, write: (line: string) => Promise<unknown>): Promise<number> {
  let count = 0;
  for await (const line of lines) {
    await write(line);
    count += 1;
  }
  return count;
}

/** Writes to a temporary file and renames it when complete. */
async function writeFile(path: string, lines: AsyncIterable<string>): Promise<number> {
  const part = `${path}.part`;
  // Exports hold inputs and results. And never write through a link that someone else has put there.
  const file = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    const advice =
      error.code === 'EEXIST' ? '. Another export is writing it, or was killed; if none is running, delete it.' : '';
    throw new CommandFailure(`Cannot write "${path}": ${error.message}${advice}`);
  });
  try {
    const count = await writeAll(lines, (line) => file.write(line));
    await file.close();
    await rename(part, path);
    return count;
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
}

const exportCommand = command({
  name: 'workflow export',
  about: 'Export workflows as JSON lines',
  details:
    'By ID or by filter; defaults to all. Each line is a workflow with its steps, events, messages and streams, in the ' +
    'DBOS export format. An output file appears only when it is complete.',
  parameter: { ...IDS_PARAMETER, takes: 'any' },
  options: {
    output: text('Output file; defaults to standard output', { short: 'o', placeholder: 'FILE' }),
    children: flag('Include descendants'),
    limit: wholeNumber('Maximum number of workflows, descendants not counted', { short: 'l', min: 1 }),
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow export order-17 --children > order-17.jsonl', 'a workflow and its descendants'],
    ['everstep workflow export -S ERROR -t 7d -o failed.jsonl', 'failures of the last week'],
    [
      'everstep workflow export | everstep workflow import - -s sqlite:///copy.sqlite',
      'copy everything to another database',
    ],
  ],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const filters = toFilters(options);
      const isFiltered = Object.keys(filters).some((name) => name !== 'applicationName');
      if (args.length > 0 && isFiltered) throw wrongUsage('Pass IDs or filters, not both.');
      const workflowIDs = args.length === 0 ? undefined : await readIDs(context, args);
      if (workflowIDs) await findAll(operator, workflowIDs);
      const { children: exportChildren, limit } = options;
      const input = { ...filters, exportChildren, ...(workflowIDs && { workflowIDs }), ...(limit && { limit }) };
      // Counting takes a while on a large database, and only a bar needs it. How many descendants there are is not known.
      const isCounted = context.terminal.isOverwritable && !exportChildren;
      const matching = workflowIDs?.length ?? (isCounted ? await countWorkflows(operator, filters) : 0);
      const lines = withProgress(context, toLines(exportWorkflows(operator, input)), {
        total: isCounted ? Math.min(matching, limit ?? Infinity) : 0,
        of: () => 1,
        shown: (count) => `${counted(count, 'workflow')} exported`,
      });
      const { output } = options;
      if (output === undefined) {
        const exported = await writeAll(lines, (line) => context.terminal.print(safeJSON(line)));
        context.terminal.printStderr(`${counted(exported, 'workflow')} exported.\n`);
        return undefined;
      }
      const exported = await writeFile(resolve(context.folder, output), lines);
      return {
        json: { exported, file: output },
        text: () => `${counted(exported, 'workflow')} exported to ${sanitize(output)}.`,
      };
    }),
});

/** The text of a file or of standard input, in chunks. */
async function* readChunks(
  { terminal, folder, signal }: CommandContext,
  path: string,
): AsyncGenerator<string, void, undefined> {
  if (path === '-') {
    for await (const line of terminal.lines(signal)) yield `${line}\n`;
    return;
  }
  try {
    for await (const chunk of createReadStream(resolve(folder, path), 'utf8')) yield chunk as string;
  } catch (error) {
    throw new CommandFailure(`Cannot read "${path}": ${(error as Error).message}`);
  }
}

/** 0 if it cannot be read: reading says why. */
async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

const importCommand = command({
  name: 'workflow import',
  about: 'Import exported workflows',
  details:
    'Each workflow is imported completely or not at all. If interrupted, run it again with --on-conflict skip. Active ' +
    'workflows are imported as cancelled, so that nothing runs twice; resume them, or pass --active enqueue.',
  parameter: { name: 'FILE', takes: 'one', about: 'JSON lines or a JSON array; "-" reads standard input' },
  options: {
    onConflict: choice('If an ID exists: fail, or skip the workflow', ['fail', 'skip'], {
      placeholder: 'POLICY',
    }),
    active: choice('Active workflows: import them as cancelled, or enqueue them here', ['cancel', 'enqueue'], {
      placeholder: 'POLICY',
    }),
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow import order-17.jsonl', 'stops at an existing ID'],
    ['everstep workflow import all.jsonl --on-conflict skip --active enqueue', 'move an application'],
  ],
  run: (context, { options, args: [path = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const source = withProgress(context, readChunks(context, path), {
        total: path === '-' ? 0 : await sizeOf(resolve(context.folder, path)),
        of: (text) => Buffer.byteLength(text),
        shown: (bytes) => `${(bytes / 1_000_000).toFixed(1)} MB read`,
      });
      const { onConflict, active: activeWorkflows } = options;
      const result = await importWorkflows(operator, source, { onConflict, activeWorkflows });
      const skipped = result.skipped === 0 ? '' : ` ${result.skipped.toLocaleString('en-US')} skipped.`;
      return { json: result, text: () => `${counted(result.imported, 'workflow')} imported.${skipped}` };
    }),
});

export const WORKFLOW_TRANSFER_COMMANDS = [exportCommand, importCommand];
