// Maintenance commands for a whole database: garbage collection, global timeout, renaming an application.
import { renameApplication } from '../../../features/version/applications.js';
import { garbageCollect, type GarbageCollectOptions, globalTimeout } from '../../../features/retention/retention.js';
import { countWorkflows } from '../../../features/listing/listing.js';
import type { Operator } from '../../../operator/operator.js';
import { ACTIVE_STATUSES, FAILED_STATUSES } from '../../../kernel/workflow/status.js';
import { command, confirm, JSON_FLAG, progressOn, YES_FLAG } from '../command.js';
import { APPLICATION, DATABASE, withClient } from '../connection.js';
import { wrongUsage } from '../failure.js';
import { duration, flag, required, text, wholeNumber, withDefault } from '../option.js';
import { sanitize } from '../render-context.js';
import { counted, formatFields } from '../table.js';
import { formatDuration } from '../time.js';

const OPTIONS = { ...APPLICATION, ...YES_FLAG, ...DATABASE, ...JSON_FLAG };

const gcCommand = command({
  name: 'gc',
  about: 'Delete old workflows that have ended',
  details:
    'Deletes in small commits with pauses between them, so that running work is not slowed down. Active workflows stay, ' +
    'however old. You can stop it with Ctrl-C and run it again later.',
  options: {
    olderThan: duration('Delete workflows created longer ago'),
    keep: wholeNumber('Keep this many of the newest workflows', { placeholder: 'N', min: 1 }),
    batchSize: wholeNumber('Workflows examined in one commit', { min: 1 }),
    ...OPTIONS,
  },
  examples: [
    ['everstep gc --older-than 30d', 'by age'],
    ['everstep gc --keep 1000000 --yes', 'by count, without a prompt'],
  ],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }, target) => {
      const { olderThan, keep } = options;
      if (olderThan === undefined && keep === undefined)
        throw wrongUsage('Pass --older-than DURATION, --keep N, or both.');
      const what = [
        olderThan !== undefined && `older than ${formatDuration(olderThan)}`,
        keep !== undefined && `beyond the newest ${keep.toLocaleString('en-US')}`,
      ].filter((part) => part !== false);
      await confirm(
        context,
        `Delete workflows in ${target.shown} that have ended and are ${what.join(' or ')}?`,
        options.yes,
      );
      const cutoffEpochTimestampMs = olderThan === undefined ? undefined : context.clock.now() - olderThan;
      // Counting takes a while on a large database. Only a bar needs it.
      const total = context.terminal.isOverwritable
        ? await countGarbage(operator, { cutoffEpochTimestampMs, rowsThreshold: keep })
        : 0;
      const progress = progressOn(context);
      try {
        const collected = await garbageCollect(operator, {
          cutoffEpochTimestampMs,
          rowsThreshold: keep,
          batchSize: options.batchSize,
          onProgress: ({ workflows }) =>
            progress.show(`${counted(workflows, 'workflow')} deleted`, { done: workflows, total }),
        });
        return { json: collected, text: () => `${counted(collected.workflows, 'workflow')} deleted.` };
      } finally {
        progress.done();
      }
    }),
});

/** How many workflows it will delete, roughly: those beyond a count may be active. */
async function countGarbage(
  operator: Operator,
  { cutoffEpochTimestampMs, rowsThreshold }: GarbageCollectOptions,
): Promise<number> {
  const old =
    cutoffEpochTimestampMs === undefined
      ? 0
      : await countWorkflows(operator, {
          status: ['SUCCESS', ...FAILED_STATUSES],
          endTime: new Date(cutoffEpochTimestampMs).toISOString(),
        });
  const beyond = rowsThreshold === undefined ? 0 : (await countWorkflows(operator)) - rowsThreshold;
  return Math.max(old, beyond, 0);
}

const timeoutCommand = command({
  name: 'timeout',
  about: 'Cancel active workflows that are too old',
  options: { olderThan: required(duration('Cancel workflows created longer ago')), ...OPTIONS },
  examples: [['everstep timeout --older-than 7d', 'shows their number and asks first']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const cutoff = context.clock.now() - options.olderThan;
      const count = await countWorkflows(operator, {
        status: ACTIVE_STATUSES,
        endTime: new Date(cutoff).toISOString(),
      });
      if (count > 0) {
        const age = formatDuration(options.olderThan);
        await confirm(context, `Cancel ${counted(count, 'active workflow')} older than ${age}?`, options.yes);
      }
      const cancelled = count === 0 ? 0 : await globalTimeout(operator, cutoff);
      return { json: { cancelled }, text: () => `${counted(cancelled, 'workflow')} cancelled.` };
    }),
});

const renameCommand = command({
  name: 'rename-application',
  about: 'Rename an application with its workflows, queues, schedules and versions',
  details: 'Stop all processes of both names first. If interrupted, run it again.',
  options: {
    from: text('Current name', { short: 'f', placeholder: 'NAME' }),
    to: required(text('New name', { short: 't', placeholder: 'NAME' })),
    adoptUnclaimedRows: flag('Also move rows that belong to no application'),
    batchSize: withDefault(wholeNumber('Rows moved in one commit', { min: 1 }), 10_000),
    ...YES_FLAG,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [['everstep rename-application --from shop --to store', 'asks first']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }, target) => {
      const { from: oldName, to: newName, adoptUnclaimedRows, batchSize } = options;
      if (oldName === undefined && !adoptUnclaimedRows) {
        throw wrongUsage('Pass --from NAME, --adopt-unclaimed-rows, or both.');
      }
      const what = oldName === undefined ? 'rows of no application' : `application "${sanitize(oldName)}"`;
      await confirm(context, `Rename ${what} in ${target.shown} to "${sanitize(newName)}"?`, options.yes);
      context.terminal.printStderr('Renaming…\n');
      const counts = await renameApplication(operator, { oldName, newName }, { batchSize, adoptUnclaimedRows });
      return { json: counts, text: (rendering) => formatFields(rendering, Object.entries(counts)) };
    }),
});

export const UPKEEP_COMMANDS = [gcCommand, timeoutCommand, renameCommand];
