// The command that partitions the stored events of workflows.
import { partitionHistory } from './partitions.js';
import { command, confirm, JSON_FLAG, YES_FLAG } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { choice, flag, wholeNumber } from '../../faces/cli/option.js';
import { counted } from '../../faces/cli/table.js';

const partitionCommand = command({
  name: 'history partition',
  about: 'Partition stored events by time, so that retention can drop old ones as a whole',
  details:
    'Postgres only, as the role that owns the tables. Workflows go on; their writes wait for a moment. If it is interrupted, ' +
    'run it again. Engines create further partitions in time.',
  options: {
    every: choice('How much a partition holds: month or day; defaults to month', ['month', 'day'], {
      placeholder: 'PERIOD',
    }),
    ahead: wholeNumber('How many partitions exist in advance; defaults to 12 months, or 30 days', { min: 1 }),
    archiveIndex: flag('Also partition the index of archived workflows'),
    ...YES_FLAG,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [['everstep history partition --every month', 'asks first']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }, target) => {
      const { every, ahead, archiveIndex, yes } = options;
      await confirm(context, `Partition the stored events in ${target.shown}?`, yes);
      const done = await partitionHistory(operator, {
        ...(every !== undefined && { every }),
        ...(ahead !== undefined && { ahead }),
        archiveIndex,
      });
      const { converted, created } = done;
      const more = created.length === 0 ? '' : ` ${counted(created.length, 'missing partition')} created.`;
      const text = converted ? 'The stored events are partitioned.' : `They had partitions already.${more}`;
      return { json: done, text: () => text };
    }),
});

export const HISTORY_COMMANDS = [partitionCommand];
