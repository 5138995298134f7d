import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { WorkflowStatus } from '../../../src/features/listing/status.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { newWorkflow } from '../../rig/records.js';
import { call, type Called, type CallOptions } from './terminals.js';

interface Setup {
  readonly DBOS: DBOSInstance;
  /** Runs a workflow of the order under its ID and waits for its end. */
  readonly fulfil: (order: string) => Promise<void>;
  /** Puts workflows into a queue that is paused. */
  readonly enqueue: (...workflowIDs: string[]) => Promise<void>;
  readonly everstep: (line: string, options?: CallOptions) => Promise<Called>;
  readonly statusOf: (workflowID: string) => Promise<string | undefined>;
}

/** A launched engine with a workflow, and the command line on its database. */
async function setup(dialect: TestDialect): Promise<Setup> {
  const { DBOS, url } = await createEngine(dialect);
  const workflow = DBOS.registerWorkflow(
    async (order: string) => {
      await DBOS.setEvent('state', 'charged');
      await DBOS.writeStream('log', 'begun');
      const paid = await DBOS.runStep(async () => `payment of ${order}`, { name: 'charge' });
      if (order === 'bad') await DBOS.runStep(async () => Promise.reject(new Error('no stock')), { name: 'ship' });
      return paid;
    },
    { name: 'fulfil' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('idle');
  await DBOS.pauseQueue('idle');
  const environment = { DBOS_SYSTEM_DATABASE_URL: url };
  return {
    DBOS,
    async fulfil(order) {
      const handle = await DBOS.startWorkflow(workflow, { workflowID: order })(order);
      await handle.getResult().catch(() => {});
    },
    async enqueue(...workflowIDs) {
      for (const workflowID of workflowIDs) {
        await DBOS.startWorkflow(workflow, { workflowID, queueName: 'idle' })(workflowID);
      }
    },
    everstep: (line, options) => call(line, { environment, ...options }),
    statusOf: async (workflowID) => (await DBOS.getWorkflowStatus(workflowID))?.status,
  };
}

describe('the command line', () => {
  forEachDialect((dialect) => {
    test('lists workflows with filters, page by page', async () => {
      const { fulfil, enqueue, everstep } = await setup(dialect);
      await fulfil('good');
      await fulfil('bad');
      await enqueue('waiting');

      const table = await everstep('workflow list');
      const failed = await everstep('wf list -S error -n fulfil -t 1h --json');
      const first = (await everstep('wf list --limit 2 --json')).json<{
        workflows: WorkflowStatus[];
        nextCursor: string;
      }>();
      const second = await everstep(`wf list --limit 2 --cursor ${first.nextCursor} --ids`);
      const queued = await everstep('wf q list --ids');

      expect(table.out).toMatch(/^waiting +ENQUEUED +fulfil +idle/m);
      expect(table.out).toMatch(/^bad +ERROR +fulfil .*Error: no stock$/m);
      expect(failed.json<{ workflows: WorkflowStatus[] }>().workflows).toMatchObject([
        { workflowID: 'bad', status: 'ERROR', input: ['bad'], error: { message: 'no stock' } },
      ]);
      expect(first.workflows.map(({ workflowID }) => workflowID)).toEqual(['waiting', 'bad']);
      expect(second.out).toBe('good\n');
      expect(queued.out).toBe('waiting\n');
    });

    test('shows a workflow from all sides', async () => {
      const { DBOS, fulfil, everstep } = await setup(dialect);
      await fulfil('good');
      await DBOS.send('good', { hello: 1 }, 'greetings');

      const shown = await everstep('workflow get good');
      const steps = await everstep('workflow steps good');
      const events = await everstep('workflow events good --json');
      const streams = await everstep('workflow streams good --json');
      const messages = await everstep('workflow messages good');
      const explained = await everstep('workflow explain good --json');

      expect(shown.out).toMatch(/^status +SUCCESS$/m);
      expect(shown.out).toMatch(/^output +'payment of good'$/m);
      expect(steps.out).toMatch(/^ +2 +charge .*'payment of good'$/m);
      expect(events.json()).toEqual({ state: 'charged' });
      expect(streams.json()).toEqual({ log: ['begun'] });
      expect(messages.out).toMatch(/greetings +no +\{ hello: 1 \}/);
      expect(explained.json()).toMatchObject({ reason: 'succeeded' });
    });

    test('draws the history of a workflow, with who cancelled it and why', async () => {
      const { fulfil, enqueue, everstep } = await setup(dialect);
      await fulfil('bad');
      await enqueue('waiting');

      await everstep('workflow cancel waiting --reason mistake --actor ops');
      const drawn = await everstep('workflow history bad --payloads');
      const cancelled = await everstep('workflow history waiting --json --type WorkflowCancelRequested');
      const shown = await everstep('workflow get waiting');
      const recent = await everstep('workflow recent --since 1h --type AttemptLost');

      expect(drawn.out).toMatch(/ ● .*WorkflowStarted +fulfil/);
      expect(drawn.out).toMatch(/ 3 ActivityFailed +ship error: Error: no stock/);
      expect(drawn.out).toMatch(/WorkflowFailed +error: Error: no stock\n$/);
      expect(cancelled.json()).toMatchObject([{ actor: 'ops', details: { reason: 'mistake' } }]);
      expect(shown.out).toMatch(/^cancelled by +ops$/m);
      expect(shown.out).toMatch(/^reason +mistake$/m);
      expect(recent.out).toBe('No events.\n');
    });

    test('ends with exit code 3 if there is no such workflow', async () => {
      const { everstep } = await setup(dialect);
      const verbs = ['get', 'steps', 'explain', 'events', 'messages', 'streams', 'history'];
      const changes = ['cancel', 'resume', 'rewind', 'delete', 'fork --step 0'];

      const called = await Promise.all([...verbs, ...changes].map((verb) => everstep(`workflow ${verb} nobody`)));

      for (const { exitCode, out, err } of called) {
        expect({ exitCode, out }).toEqual({ exitCode: 3, out: '' });
        expect(err).toBe('Error: Workflow "nobody" not found. See: everstep workflow list\n');
      }
    });

    test('cancels, resumes and deletes by ID, and leaves alone what has ended', async () => {
      const { fulfil, enqueue, everstep, statusOf } = await setup(dialect);
      await fulfil('good');
      await enqueue('a', 'b');

      const cancelled = await everstep('workflow cancel a b good');
      const afterCancel = [await statusOf('a'), await statusOf('b'), await statusOf('good')];
      const resumed = await everstep('workflow resume - --to-queue idle --json', { input: ['a', '', 'a'] });
      const afterResume = await statusOf('a');
      await everstep('workflow delete b');

      expect(cancelled.out).toBe('2 workflows cancelled; 1 had already ended.\n');
      expect(afterCancel).toEqual(['CANCELLED', 'CANCELLED', 'SUCCESS']);
      expect(resumed.json()).toEqual({ changed: 1, unchanged: [] });
      expect(afterResume).toBe('ENQUEUED');
      expect(await statusOf('b')).toBeUndefined();
    });

    test('counts what it has changed, and says why others stay', async () => {
      const { fulfil, enqueue, everstep } = await setup(dialect);
      await fulfil('good');
      await enqueue('a', 'b');
      await everstep('workflow cancel a');

      const again = await everstep('workflow cancel a');
      const asJSON = await everstep('workflow cancel a b --json');
      const ended = await everstep('workflow resume good a --to-queue idle');
      const active = await everstep('workflow resume a --to-queue idle');

      expect(again).toMatchObject({ exitCode: 0, out: '0 workflows cancelled; 1 had already ended.\n' });
      expect(asJSON.json()).toEqual({ changed: 1, unchanged: ['a'] });
      expect(ended.out).toBe('1 workflow resumed; 1 had already ended.\n');
      expect(active.out).toBe('1 workflow resumed.\n');
    });

    test('counts descendants, and none of them twice', async () => {
      const { DBOS, everstep } = await setup(dialect);
      const parents = { root: null, child: 'root', grandchild: 'child' };
      const workflows = Object.entries(parents).map(([workflowID, parentWorkflowID]) =>
        newWorkflow({ workflowID, parentWorkflowID, status: 'ENQUEUED', queueName: 'idle' }),
      );
      await engineOf(DBOS).runtime.database.run(insertWorkflows(workflows));

      const cancelled = await everstep('workflow cancel root --children');
      const deleted = await everstep('workflow delete root grandchild --children --json');

      expect(cancelled.out).toBe('3 workflows cancelled.\n');
      expect(deleted.json()).toEqual({ changed: 3, unchanged: [] });
    });

    test('does nothing to any workflow if one of them does not exist', async () => {
      const { enqueue, everstep, statusOf } = await setup(dialect);
      await enqueue('a');

      const { exitCode, err } = await everstep('workflow cancel a b c');

      expect(exitCode).toBe(3);
      expect(err).toContain('Workflow "b", "c" not found. Nothing was changed.');
      expect(await statusOf('a')).toBe('ENQUEUED');
    });

    test('asks before it changes many by filter, and says how many they are', async () => {
      const { enqueue, everstep, statusOf } = await setup(dialect);
      await enqueue('a', 'b', 'c');

      const refused = await everstep('workflow cancel -q idle', { input: ['n'] });
      const afterRefusal = await statusOf('a');
      const agreed = await everstep('workflow cancel -q idle', { input: ['y'] });
      const none = await everstep('workflow cancel -q idle');
      const deleted = await everstep('workflow delete --name fulfil --yes');

      expect(refused).toMatchObject({ exitCode: 1, out: '' });
      expect(refused.err).toContain('Cancel 3 workflows? [y/N] ');
      expect(afterRefusal).toBe('ENQUEUED');
      expect(agreed).toMatchObject({ exitCode: 0, out: '3 workflows cancelled.\n' });
      expect(none).toMatchObject({ exitCode: 0, out: '0 workflows cancelled.\n', err: '' });
      expect(deleted.out).toBe('3 workflows deleted.\n');
    });

    test('asks on a terminal before it deletes by ID, and a script is not asked', async () => {
      const { enqueue, everstep, statusOf } = await setup(dialect);
      await enqueue('a', 'b', 'c');

      const refused = await everstep('workflow delete a', { isInteractive: true, input: ['n'] });
      const afterRefusal = await statusOf('a');
      const agreed = await everstep('workflow delete a', { isInteractive: true, input: ['y'] });
      const sure = await everstep('workflow delete b --yes', { isInteractive: true });
      const scripted = await everstep('workflow delete c');

      expect(refused).toMatchObject({ exitCode: 1, out: '' });
      expect(refused.err).toContain('Delete 1 workflow? [y/N] ');
      expect(afterRefusal).toBe('ENQUEUED');
      for (const done of [agreed, sure, scripted]) expect(done.out).toBe('1 workflow deleted.\n');
      expect(sure.err + scripted.err).toBe('');
    });

    test('changes nothing without IDs and without a filter, or with both', async () => {
      const { everstep } = await setup(dialect);

      expect(await everstep('workflow delete --yes')).toMatchObject({ exitCode: 2 });
      expect(await everstep('workflow delete a -S ERROR')).toMatchObject({ exitCode: 2 });
    });

    test('forks from where a workflow has failed, or from a step under an ID of choice', async () => {
      const { DBOS, fulfil, everstep, statusOf } = await setup(dialect);
      await fulfil('good');
      await fulfil('bad');

      const failed = await everstep('workflow fork bad --from-failure --json');
      const chosen = await everstep('workflow fork good -S 1 -f again');
      const ambiguous = await everstep('workflow fork good --step 1 --from-failure');

      const [{ forkID }] = failed.json<[{ workflowID: string; forkID: string }]>();
      await DBOS.retrieveWorkflow(forkID)
        .getResult()
        .catch(() => {});
      await DBOS.retrieveWorkflow('again').getResult();
      expect(await statusOf(forkID)).toBe('ERROR');
      expect(chosen.out).toMatch(/^good +again$/m);
      expect(await statusOf('again')).toBe('SUCCESS');
      expect(ambiguous).toMatchObject({ exitCode: 2 });
    });

    test('rewinds a workflow that has ended', async () => {
      const { DBOS, fulfil, everstep, statusOf } = await setup(dialect);
      await fulfil('good');

      const rewound = await everstep('workflow rewind good --json');

      expect(rewound.json()).toEqual({ rewound: ['good'], step: 0 });
      await DBOS.retrieveWorkflow('good').getResult();
      expect(await statusOf('good')).toBe('SUCCESS');
    });

    test('refuses to rewind a workflow that is active, and says why', async () => {
      const { enqueue, everstep } = await setup(dialect);
      await enqueue('a');

      const { exitCode, err } = await everstep('workflow rewind a');

      expect(exitCode).toBe(1);
      expect(err).toContain('Cancel it first, or fork it.');
    });

    test('exports workflows to a file, and imports them elsewhere', async () => {
      const { fulfil, enqueue, everstep } = await setup(dialect);
      const elsewhere = { environment: { DBOS_SYSTEM_DATABASE_URL: await dialect.createURL() } };
      const folder = mkdtempSync(join(tmpdir(), 'everstep-cli-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      await fulfil('good');
      await enqueue('a');

      const exported = await everstep('workflow export -o all.jsonl --json', { folder });
      const piped = await everstep('workflow export good');
      const imported = await everstep('workflow import all.jsonl', { folder, ...elsewhere });
      const again = await everstep('workflow import -', { ...elsewhere, input: piped.out.split('\n') });
      const skipped = await everstep('workflow import all.jsonl --on-conflict skip --json', { folder, ...elsewhere });
      const listed = await everstep('workflow list --json', elsewhere);

      expect(exported.json()).toEqual({ exported: 2, file: 'all.jsonl' });
      expect(readdirSync(folder)).toEqual(['all.jsonl']);
      expect(piped.err).toBe('1 workflow exported.\n');
      expect(imported.out).toBe('2 workflows imported.\n');
      expect(again).toMatchObject({ exitCode: 1, out: '' });
      expect(skipped.json()).toEqual({ imported: 0, skipped: 2 });
      expect(listed.json<{ workflows: WorkflowStatus[] }>().workflows).toMatchObject([
        { workflowID: 'a', status: 'CANCELLED', input: ['a'] },
        { workflowID: 'good', status: 'SUCCESS', output: 'payment of good' },
      ]);
    });

    test('exports to a file that others cannot read, and never through a link', async () => {
      const { fulfil, everstep } = await setup(dialect);
      const folder = mkdtempSync(join(tmpdir(), 'everstep-cli-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      await fulfil('good');
      writeFileSync(join(folder, 'victim'), 'precious');
      symlinkSync('victim', join(folder, 'linked.jsonl.part'));

      const exported = await everstep('workflow export -o all.jsonl', { folder });
      const linked = await everstep('workflow export -o linked.jsonl', { folder });

      expect(exported.exitCode).toBe(0);
      expect(statSync(join(folder, 'all.jsonl')).mode & 0o777).toBe(0o600);
      expect(linked).toMatchObject({ exitCode: 1, out: '' });
      expect(linked.err).toContain('delete it');
      expect(readFileSync(join(folder, 'victim'), 'utf8')).toBe('precious');
    });

    test('shows nothing that a terminal would act on, as text or as JSON', async () => {
      const { DBOS, everstep } = await setup(dialect);
      const evil = '\u001b[2J\u009b31m\u202e\u200f';
      const { database } = engineOf(DBOS).runtime;
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', name: evil, queueName: evil })]));
      const workflows = table('workflow_status');
      await database.run(sql`UPDATE ${workflows} SET status = ${evil} WHERE workflow_uuid = 'w' RETURNING status`);

      for (const line of [
        'get w',
        'explain w',
        'list',
        'get w --json',
        'explain w --json',
        'list --json',
        'export w',
      ]) {
        const { out, err } = await everstep(`workflow ${line}`);
        expect([line, out + err]).toEqual([line, expect.not.stringMatching(/[\u001b\u0080-\u009f\u202e\u200f]/)]);
      }
      const [listed] = (await everstep('workflow list --json')).json<{ workflows: WorkflowStatus[] }>().workflows;
      expect(listed?.workflowName).toBe(evil);
    });

    test('tells what is wrong with an import', async () => {
      const { everstep } = await setup(dialect);

      const broken = await everstep('workflow import -', { input: ['{"workflow_status":'] });
      const missing = await everstep('workflow import nothing.jsonl');

      expect(broken).toMatchObject({ exitCode: 1, out: '' });
      expect(missing.err).toContain('Cannot read "nothing.jsonl"');
    });

    test('collects garbage and ends what is too old', async () => {
      const { fulfil, enqueue, everstep, statusOf } = await setup(dialect);
      await fulfil('good');
      await enqueue('a');

      const nothing = await everstep('gc --yes');
      const collected = await everstep('gc --older-than 0s --yes --json');
      const ended = await everstep('timeout --older-than 0s --yes');

      expect(nothing).toMatchObject({ exitCode: 2 });
      expect(collected.json()).toMatchObject({ workflows: 1 });
      expect(await statusOf('good')).toBeUndefined();
      expect(ended.out).toBe('1 workflow cancelled.\n');
      expect(await statusOf('a')).toBe('CANCELLED');
    });
  });
});
