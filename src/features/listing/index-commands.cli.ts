// Commands for optional indexes.
import {
  adviseIndexes,
  createOptionalIndex,
  dropOptionalIndex,
  listOptionalIndexes,
  type OptionalIndexInfo,
} from './indexes.js';
import { OPTIONAL_INDEXES, type OptionalIndex } from './index-fields.js';
import { command, JSON_FLAG } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { wrongUsage } from '../../faces/cli/failure.js';
import { type Column, formatTable } from '../../faces/cli/table.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const NAMES = Object.keys(OPTIONAL_INDEXES);

type Row = OptionalIndexInfo & { readonly wouldHelp: boolean };

const COLUMNS: readonly Column<Row>[] = [
  { title: 'INDEX', text: (row) => row.index },
  { title: 'BUILT', text: (row) => (row.isThere ? 'yes' : 'no'), colour: (row) => (row.isThere ? 'green' : undefined) },
  { title: '', text: (row) => (row.wouldHelp ? 'some values are rare: helps if you list them' : '') },
];

const listCommand = command({
  name: 'index list',
  about: 'List the optional indexes and say which would help',
  details:
    'An index speeds up lists with the filter after which it is named. Without it, a list of a rare value reads the history ' +
    'until it has found enough. It would help where values are rare in a history of 100,000 workflows or more.',
  options: OPTIONS,
  examples: [['everstep index list', 'what there is']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const advised = new Set(await adviseIndexes(operator));
      const rows = (await listOptionalIndexes(operator)).map((info) => ({
        ...info,
        wouldHelp: advised.has(info.index),
      }));
      return { json: rows, text: (rendering) => formatTable(rendering, COLUMNS, rows) };
    }),
});

const NAME = { name: 'INDEX', takes: 'one', about: `One of ${NAMES.join(', ')}` } as const;

const createCommand = command({
  name: 'index create',
  about: 'Build an optional index',
  details:
    'Postgres builds it while other work continues; on SQLite, writers wait. From then on it costs a write whenever a ' +
    'workflow is created or changes state.',
  parameter: NAME,
  options: OPTIONS,
  examples: [['everstep index create queueName', 'for lists of one queue']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const index = indexOf(name);
      await createOptionalIndex(operator, index);
      return { json: { index, isThere: true }, text: () => `Index "${index}" is built.` };
    }),
});

const dropCommand = command({
  name: 'index drop',
  about: 'Drop an optional index',
  parameter: NAME,
  options: OPTIONS,
  examples: [['everstep index drop queueName', 'lists of one queue still work, more slowly']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const index = indexOf(name);
      await dropOptionalIndex(operator, index);
      const { isThere } = (await listOptionalIndexes(operator)).find((one) => one.index === index) ?? {
        isThere: false,
      };
      return {
        json: { index, isThere },
        text: () => (isThere ? `The primary key serves as index "${index}".` : `Index "${index}" is dropped.`),
      };
    }),
});

function indexOf(name: string): OptionalIndex {
  const found = NAMES.find((one) => one.toLowerCase() === name.toLowerCase());
  if (found === undefined) throw wrongUsage(`There is no optional index "${name}". Use one of ${NAMES.join(', ')}.`);
  return found as OptionalIndex;
}

export const INDEX_COMMANDS = [listCommand, createCommand, dropCommand];
