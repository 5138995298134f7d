// Commands that take workflows out of a database and put them into one.
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { toLines } from '../../control/management/export-format.js';
import { exportWorkflows, importWorkflows } from '../../control/management/transfer.js';
import { command, JSON_FLAG, progressOn, type Scene } from '../command.js';
import { DATABASE, withClient } from '../connection.js';
import { CommandFailure, wrongUsage } from '../failure.js';
import { choice, flag, text, wholeNumber } from '../option.js';
import { harmless } from '../paper.js';
import { counted } from '../table.js';
import { FILTERS, findAll, IDS_PARAMETER, readIDs, toFilters } from './workflow-filters.js';

/** Passes texts on, shows how far it has come, and ends at Ctrl-C. */
async function* watched(
  scene: Scene,
  texts: AsyncIterable<string>,
  shown: (count: number, characters: number) => string,
): AsyncGenerator<string, void, undefined> {
  const progress = progressOn(scene);
  let count = 0;
  let characters = 0;
  try {
    for await (const text of texts) {
      scene.signal.throwIfAborted();
      yield text;
      count += 1;
      characters += text.length;
      progress.show(shown(count, characters));
    }
    scene.signal.throwIfAborted();
  } finally {
    progress.done();
  }
}

/** Writes the lines and gives their number. */
async function writeAll(lines: AsyncIterable<string>, write: (line: string) => Promise<unknown>): Promise<number> {
  let count = 0;
  for await (const line of lines) {
    await write(line);
    count += 1;
  }
  return count;
}

/** Writes a file that is there when it is whole, and not before. */
async function writeFile(path: string, lines: AsyncIterable<string>): Promise<number> {
  const part = `${path}.part`;
  const file = await open(part, 'w').catch((error: Error) => {
    throw new CommandFailure(`Cannot write "${path}": ${error.message}`);
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
  about: 'Write whole workflows as lines of JSON',
  details:
    'By ID or by filter; all of them if neither is given. Each line is a workflow with its steps, events, messages and ' +
    'streams, in the form of DBOS. A file is there when it is whole.',
  parameter: { ...IDS_PARAMETER, takes: 'any' },
  options: {
    output: text('The file to write; standard output if not given', { short: 'o', placeholder: 'FILE' }),
    children: flag('Also the workflows that they have started, and so on'),
    limit: wholeNumber('How many at most, children not counted', { short: 'l', min: 1 }),
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow export order-17 --children > order-17.jsonl', 'one, with all that it has started'],
    ['everstep workflow export -S ERROR -t 7d -o failed.jsonl', 'what has failed in a week'],
    [
      'everstep workflow export | everstep workflow import - -s sqlite:///copy.sqlite',
      'everything, into a database of another kind',
    ],
  ],
  run: (scene, { options, args }) =>
    withClient(scene, options, async ({ operator }) => {
      const filters = toFilters(options);
      const isFiltered = Object.keys(filters).some((name) => name !== 'applicationName');
      if (args.length > 0 && isFiltered) throw wrongUsage('Pass IDs or filters, not both.');
      const workflowIDs = args.length === 0 ? undefined : await readIDs(scene, args);
      if (workflowIDs) await findAll(operator, workflowIDs);
      const { children: exportChildren, limit } = options;
      const input = { ...filters, exportChildren, ...(workflowIDs && { workflowIDs }), ...(limit && { limit }) };
      const lines = watched(
        scene,
        toLines(exportWorkflows(operator, input)),
        (count) => `${counted(count, 'workflow')} exported`,
      );
      const { output } = options;
      if (output === undefined) {
        const exported = await writeAll(lines, (line) => scene.terminal.print(line));
        scene.terminal.tell(`${counted(exported, 'workflow')} exported.\n`);
        return undefined;
      }
      const exported = await writeFile(resolve(scene.folder, output), lines);
      return {
        json: { exported, file: output },
        text: () => `${counted(exported, 'workflow')} exported to ${harmless(output)}.`,
      };
    }),
});

/** The text of a file, or of standard input, in pieces. */
async function* readPieces({ terminal, folder, signal }: Scene, path: string): AsyncGenerator<string, void, undefined> {
  if (path === '-') {
    for await (const line of terminal.lines(signal)) yield `${line}\n`;
    return;
  }
  try {
    for await (const piece of createReadStream(resolve(folder, path), 'utf8')) yield piece as string;
  } catch (error) {
    throw new CommandFailure(`Cannot read "${path}": ${(error as Error).message}`);
  }
}

const importCommand = command({
  name: 'workflow import',
  about: 'Put workflows in that were exported',
  details:
    'Each whole or not at all. If it is interrupted, call it again with --on-conflict skip. Workflows that had not ended ' +
    'are held back as cancelled, so that nothing runs twice; resume them, or give --active enqueue.',
  parameter: { name: 'FILE', takes: 'one', about: 'Lines of JSON, or an array; "-" reads standard input' },
  options: {
    onConflict: choice('Where an ID is in use: fail, or skip the workflow', ['fail', 'skip'], {
      placeholder: 'POLICY',
    }),
    active: choice('Workflows that had not ended: cancel, or enqueue to let them go on here', ['cancel', 'enqueue'], {
      placeholder: 'POLICY',
    }),
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow import order-17.jsonl', 'stops at an ID that is in use'],
    ['everstep workflow import all.jsonl --on-conflict skip --active enqueue', 'move an application'],
  ],
  run: (scene, { options, args: [path = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const megabytes = (_: number, characters: number): string => `${(characters / 1_000_000).toFixed(1)} MB read`;
      const source = watched(scene, readPieces(scene, path), megabytes);
      const { onConflict, active: activeWorkflows } = options;
      const result = await importWorkflows(operator, source, { onConflict, activeWorkflows });
      const skipped = result.skipped === 0 ? '' : ` ${result.skipped.toLocaleString('en-US')} were there already.`;
      return { json: result, text: () => `${counted(result.imported, 'workflow')} imported.${skipped}` };
    }),
});

export const WORKFLOW_TRANSFER_COMMANDS = [exportCommand, importCommand];
