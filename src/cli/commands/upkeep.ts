// Commands for all workflows of a database: cleaning up, ending what is too old, giving an application another name.
import { renameApplication } from '../../control/management/applications.js';
import { garbageCollect, globalTimeout } from '../../control/management/retention.js';
import { countWorkflows } from '../../control/listing/listing.js';
import { ACTIVE_STATUSES } from '../../model/status.js';
import { command, confirm, JSON_FLAG, progressOn, YES_FLAG } from '../command.js';
import { APPLICATION, DATABASE, withClient } from '../connection.js';
import { wrongUsage } from '../failure.js';
import { duration, flag, needed, text, wholeNumber, withDefault } from '../option.js';
import { harmless } from '../paper.js';
import { counted, formatFields } from '../table.js';
import { formatDuration } from '../time.js';

const OPTIONS = { ...APPLICATION, ...YES_FLAG, ...DATABASE, ...JSON_FLAG };

const gcCommand = command({
  name: 'gc',
  about: 'Delete old workflows that have ended',
  details:
    'In small commits with rests between them, so that running work is not held up. Active workflows stay, however old. ' +
    'Ctrl-C ends it at once; what was deleted is gone, and the next call goes on.',
  options: {
    olderThan: duration('Delete those created longer ago'),
    keep: wholeNumber('Keep so many of the newest', { placeholder: 'N', min: 1 }),
    batchSize: wholeNumber('Workflows that are looked at in one commit', { min: 1 }),
    ...OPTIONS,
  },
  examples: [
    ['everstep gc --older-than 30d', 'by age'],
    ['everstep gc --keep 1000000 --yes', 'by count, without a question'],
  ],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }, place) => {
      const { olderThan, keep } = options;
      if (olderThan === undefined && keep === undefined)
        throw wrongUsage('Pass --older-than DURATION, --keep N, or both.');
      const what = [
        olderThan !== undefined && `older than ${formatDuration(olderThan)}`,
        keep !== undefined && `beyond the newest ${keep.toLocaleString('en-US')}`,
      ].filter((part) => part !== false);
      await confirm(
        scene,
        `Delete workflows in ${place.shown} that have ended and are ${what.join(' or ')}?`,
        options.yes,
      );
      const progress = progressOn(scene);
      try {
        const collected = await garbageCollect(operator, {
          cutoffEpochTimestampMs: olderThan === undefined ? undefined : scene.clock.now() - olderThan,
          rowsThreshold: keep,
          batchSize: options.batchSize,
          onProgress: ({ workflows }) => progress.show(`${counted(workflows, 'workflow')} deleted`),
        });
        return { json: collected, text: () => `${counted(collected.workflows, 'workflow')} deleted.` };
      } finally {
        progress.done();
      }
    }),
});

const timeoutCommand = command({
  name: 'timeout',
  about: 'Cancel all active workflows that were created too long ago',
  options: { olderThan: needed(duration('Cancel those created longer ago')), ...OPTIONS },
  examples: [['everstep timeout --older-than 7d', 'asks, and says how many they are']],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }) => {
      const cutoff = scene.clock.now() - options.olderThan;
      const count = await countWorkflows(operator, {
        status: ACTIVE_STATUSES,
        endTime: new Date(cutoff).toISOString(),
      });
      if (count > 0) {
        const age = formatDuration(options.olderThan);
        await confirm(scene, `Cancel ${counted(count, 'active workflow')} older than ${age}?`, options.yes);
      }
      const cancelled = count === 0 ? 0 : await globalTimeout(operator, cutoff);
      return { json: { cancelled }, text: () => `${counted(cancelled, 'workflow')} cancelled.` };
    }),
});

const renameCommand = command({
  name: 'rename-application',
  about: 'Give an application another name: its workflows, queues, schedules and versions',
  details: 'No process of either name should run meanwhile. If it is interrupted, call it again.',
  options: {
    from: text('The present name', { short: 'f', placeholder: 'NAME' }),
    to: needed(text('The new name', { short: 't', placeholder: 'NAME' })),
    adoptUnclaimedRows: flag('Move what belongs to no application as well'),
    batchSize: withDefault(wholeNumber('Rows that are moved in one commit', { min: 1 }), 10_000),
    ...YES_FLAG,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [['everstep rename-application --from shop --to store', 'asks before it does anything']],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }, place) => {
      const { from: oldName, to: newName, adoptUnclaimedRows, batchSize } = options;
      if (oldName === undefined && !adoptUnclaimedRows) {
        throw wrongUsage('Pass --from NAME, --adopt-unclaimed-rows, or both.');
      }
      const what = oldName === undefined ? 'what belongs to no application' : `application "${harmless(oldName)}"`;
      await confirm(scene, `Rename ${what} in ${place.shown} to "${harmless(newName)}"?`, options.yes);
      scene.terminal.tell('Renaming…\n');
      const counts = await renameApplication(operator, { oldName, newName }, { batchSize, adoptUnclaimedRows });
      return { json: counts, text: (paper) => formatFields(paper, Object.entries(counts)) };
    }),
});

export const UPKEEP_COMMANDS = [gcCommand, timeoutCommand, renameCommand];
