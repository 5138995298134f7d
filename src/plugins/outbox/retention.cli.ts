// Commands that keep the dead letters of an outbox from growing without end.
import type { Keep } from './retention/options.js';
import type { PlannedPartition, RetentionPlan } from './retention/retention.js';
import { command, confirm, JSON_FLAG, progressOn, YES_FLAG } from '../../faces/cli/command.js';
import { choice, required, text, type Values, wholeNumber } from '../../faces/cli/option.js';
import { OUTBOX, WITHOUT, withOutbox } from './connection.cli.js';
import { counted } from '../../faces/cli/table.js';

const OPTIONS = {
  keep: required(text('How long dead letters are kept: 90d, or "12 months"', { placeholder: 'TIME' })),
  every: choice('How much a partition holds: month or day; defaults to month', ['month', 'day'], {
    placeholder: 'PERIOD',
  }),
  ahead: wholeNumber('How many partitions exist in advance; defaults to 12 months, or 30 days', { min: 1 }),
  drop: choice('What becomes of old partitions: drop or detach; defaults to drop', ['drop', 'detach'], {
    placeholder: 'HOW',
  }),
  ...WITHOUT,
  ...OUTBOX,
  ...JSON_FLAG,
};

function settingsOf({ keep, every, ahead, drop }: Values<typeof OPTIONS>) {
  return {
    // Checked by what it is passed to.
    keep: keep as Keep,
    ...(every !== undefined && { every }),
    ...(ahead !== undefined && { ahead }),
    ...(drop !== undefined && { drop }),
  };
}

function planText({ mode, cutoff, create, drop, delete: deleted, expiredKeys }: RetentionPlan): string {
  const names = (partitions: readonly PlannedPartition[]): string => partitions.map(({ name }) => name).join(', ');
  return [
    `What failed before ${new Date(cutoff).toISOString()} goes${mode === 'partitions' ? ', a whole partition at a time' : ''}.`,
    ...(create.length > 0 ? [`Create ${counted(create.length, 'partition')}: ${names(create)}.`] : []),
    ...(drop.length > 0 ? [`Drop ${counted(drop.length, 'partition')}: ${names(drop)}.`] : []),
    ...(deleted > 0 ? [`Delete ${counted(deleted, 'dead letter')}.`] : []),
    ...(expiredKeys > 0 ? [`Forget ${counted(expiredKeys, 'expired key')}.`] : []),
    ...(create.length + drop.length + deleted + expiredKeys === 0 ? ['Nothing to do.'] : []),
  ].join('\n');
}

const planCommand = command({
  name: 'outbox retention plan',
  about: 'Show what outbox retention run would do',
  options: OPTIONS,
  examples: [['everstep outbox retention plan --keep 90d', 'changes nothing']],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox) => {
      const plan = await outbox.retention(settingsOf(options)).plan();
      return { json: plan, text: () => planText(plan) };
    }),
});

const runCommand = command({
  name: 'outbox retention run',
  about: 'Delete old dead letters and expired keys, and create partitions ahead',
  details:
    'A table with partitions loses whole partitions; any other is deleted from in batches. Does all that is due, however ' +
    'long it has not run. An application can do the same on a schedule.',
  options: { ...OPTIONS, ...YES_FLAG },
  examples: [['everstep outbox retention run --keep 365d --yes', 'for cron']],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox, { shown }) => {
      const retention = outbox.retention(settingsOf(options));
      const plan = await retention.plan();
      if (plan.drop.length + plan.delete > 0) {
        await confirm(context, `${planText(plan)}\nDo that in ${shown}?`, options.yes);
      }
      const progress = progressOn(context);
      try {
        const report = await retention.run({
          onProgress(deleted) {
            progress.show(`${counted(deleted, 'dead letter')} deleted`);
            context.signal.throwIfAborted();
          },
        });
        const { skipped, created, dropped, moved, deleted, expiredKeys } = report;
        return {
          json: report,
          text: () =>
            skipped
              ? 'Another process is at it.'
              : `${counted(created.length, 'partition')} created, ${dropped.length} dropped; ` +
                `${counted(deleted, 'dead letter')} deleted, ${moved} moved; ${counted(expiredKeys, 'key')} forgotten.`,
        };
      } finally {
        progress.done();
      }
    }),
});

const convertCommand = command({
  name: 'outbox retention convert',
  about: 'Give the table of the dead letters partitions (Postgres)',
  details:
    'Needs to happen once, as the owner of the table. The application is held up for a moment only; rows are moved ' +
    'afterwards. If it is interrupted, run it again.',
  options: { ...OPTIONS, ...YES_FLAG },
  examples: [['everstep outbox retention convert --keep 365d', 'asks first']],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox, { shown }) => {
      await confirm(context, `Convert "${options.dlqTable}" in ${shown} to a table with partitions?`, options.yes);
      const converted = await outbox.retention(settingsOf(options)).convert();
      return {
        json: converted,
        text: () =>
          `${converted.converted ? 'Converted' : 'It has partitions'}; ${counted(converted.moved, 'dead letter')} moved, ` +
          `${converted.deleted} too old and deleted.`,
      };
    }),
});

export const OUTBOX_RETENTION_COMMANDS = [planCommand, runCommand, convertCommand];
