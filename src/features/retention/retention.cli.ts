// Commands for retention, and for what it has archived.
import { applyRetention, planRetention, type PlannedRetention } from './retention-policy.js';
import { fileArchive, listFileArchive } from './file-archive.js';
import { getArchivedWorkflow, repairArchiveIndex } from './archive.js';
import type { KeptFor, RetentionPolicy } from './policy.js';
import { command, confirm, JSON_FLAG, progressOn, YES_FLAG } from '../../faces/cli/command.js';
import { APPLICATION, DATABASE, withClient } from '../../faces/cli/connection.js';
import { notFound, wrongUsage } from '../../faces/cli/failure.js';
import { duration, repeatable, required, text, type Values } from '../../faces/cli/option.js';
import { type RenderContext, safeJSON } from '../../faces/cli/render-context.js';
import { type Column, counted, formatTable } from '../../faces/cli/table.js';
import { formatRelative } from '../../faces/cli/time.js';

const POLICY = {
  completed: duration('How long workflows that have succeeded are kept'),
  failed: duration('How long those that have failed or were cancelled are kept'),
  history: duration('How long stored events of workflows that have ended are kept'),
  keep: repeatable(text('Keep all workflows of this function', { placeholder: 'NAME' })),
};
const ARCHIVE = text('Folder of the archive, as in fileArchive', { placeholder: 'FOLDER' });
const OPTIONS = { ...APPLICATION, ...DATABASE, ...JSON_FLAG };

function policyOf({ completed, failed, history, keep = [] }: Values<typeof POLICY>): RetentionPolicy {
  if ((completed ?? failed ?? history) === undefined) throw wrongUsage('Pass --completed, --failed or --history.');
  const kept: KeptFor = {};
  return {
    ...(completed !== undefined && { completed }),
    ...(failed !== undefined && { failed }),
    ...(history !== undefined && { history }),
    perWorkflow: Object.fromEntries(keep.map((name) => [name, kept])),
  };
}

function columns({ now }: RenderContext): Column<PlannedRetention>[] {
  return [
    { title: 'WORKFLOW', text: (row) => row.name, isShortenable: true },
    { title: 'STATUS', text: (row) => row.status },
    { title: 'COUNT', text: (row) => row.workflows.toLocaleString('en-US'), isRight: true },
    { title: 'CHARACTERS', text: (row) => row.characters.toLocaleString('en-US'), isRight: true },
    { title: 'EVENTS', text: (row) => row.events.toLocaleString('en-US'), isRight: true },
    { title: 'OLDEST', text: (row) => formatRelative(row.oldestEndedAt, now) },
  ];
}

const planCommand = command({
  name: 'retention plan',
  about: 'Show which workflows a retention would delete, and how much they hold',
  options: { ...POLICY, ...OPTIONS },
  examples: [['everstep retention plan --completed 30d --failed 90d', 'deletes nothing']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const plan = await planRetention(operator, policyOf(options));
      return {
        json: plan,
        text: (rendering) =>
          plan.length === 0 ? 'Nothing would be deleted.' : formatTable(rendering, columns(rendering), plan),
      };
    }),
});

const runCommand = command({
  name: 'retention run',
  about: 'Delete workflows some time after they have ended, and archive them first if asked to',
  details:
    'Works in small commits with pauses between them. You can stop it with Ctrl-C and run it again later. If archiving ' +
    'fails, what is not archived stays.',
  options: { ...POLICY, archive: ARCHIVE, ...YES_FLAG, ...OPTIONS },
  examples: [['everstep retention run --completed 30d --archive /var/lib/shop/archive', 'asks first']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }, target) => {
      const { archive: folder, yes } = options;
      const policy = policyOf(options);
      const archive = folder === undefined ? undefined : fileArchive(folder);
      const what = archive ? 'Archive and delete' : 'Delete';
      await confirm(context, `${what} old workflows in ${target.shown} that have ended?`, yes);
      const progress = progressOn(context);
      try {
        const applied = await applyRetention(operator, policy, {
          ...(archive && { archive }),
          signal: context.signal,
          onProgress: ({ workflows }) => progress.show(`${counted(workflows, 'workflow')} deleted`),
        });
        const events = applied.events === undefined ? '' : `, ${counted(applied.events, 'stored event')} of others`;
        return { json: applied, text: () => `${counted(applied.workflows, 'workflow')} deleted${events}.` };
      } finally {
        progress.done();
      }
    }),
});

const repairCommand = command({
  name: 'retention repair',
  about: 'Find archived workflows again whose note names an object that lacks them',
  details:
    'Two processes that applied retention at once could write such notes. Reads all objects of the archive. If it is no ' +
    'folder, copy its objects into one first, under their names.',
  options: { archive: required(ARCHIVE), ...OPTIONS },
  examples: [['everstep retention repair --archive /var/lib/shop/archive', 'changes notes only']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const archive = fileArchive(options.archive);
      const names = await listFileArchive(options.archive);
      const progress = progressOn(context);
      try {
        const repaired = await repairArchiveIndex(operator, { archive, names }, ({ objects, workflows }) =>
          progress.show(
            `${objects} of ${counted(names.length, 'object')} read, ${counted(workflows, 'workflow')} found`,
          ),
        );
        const read = counted(repaired.objects, 'object');
        return { json: repaired, text: () => `${counted(repaired.workflows, 'workflow')} found again in ${read}.` };
      } finally {
        progress.done();
      }
    }),
});

const archivedCommand = command({
  name: 'workflow archived',
  about: 'Print an archived workflow as a line of JSON, as exports have it',
  parameter: { name: 'ID', takes: 'one', about: 'ID of a workflow' },
  options: { archive: required(ARCHIVE), ...OPTIONS },
  examples: [
    ['everstep workflow archived order-17 --archive /var/lib/shop/archive', 'what was it?'],
    ['everstep workflow archived order-17 --archive archive | everstep workflow import -', 'bring it back'],
  ],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const exported = await getArchivedWorkflow(operator, id, fileArchive(options.archive));
      if (!exported) throw notFound(`There is no archived workflow "${id}".`);
      return { json: exported, text: () => safeJSON(JSON.stringify(exported)) };
    }),
});

export const RETENTION_COMMANDS = [planCommand, runCommand, repairCommand, archivedCommand];
