// Our `dbos` prints what that of DBOS prints, on one database.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { DBOS_COMMANDS } from '../../src/faces/cli/commands/dbos.js';
import { call } from '../faces/cli/terminals.js';
import { forEachDialect, postgres, type TestDialect, wantsDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

const THEIRS = fileURLToPath(new URL('./node_modules/dbos-5/dist/src/cli/cli.js', import.meta.url));

interface Ended {
  readonly code: number;
  readonly out: string;
}

function execute(args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, out: out || err }),
    );
  });
}

/** A workflow that has ended, one that has failed, and one in a queue that no process serves. */
async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', listenQueues: [] });
  const order = DBOS.registerWorkflow(
    async (item: unknown) => {
      await DBOS.runStep(async () => ({ item }), { name: 'pack' });
      return item === 'bad' ? Promise.reject(new Error('no')) : { sent: new Date(0) };
    },
    { name: 'order' },
  );
  await DBOS.launch();
  await (await DBOS.startWorkflow(order, { workflowID: 'good' })({ pen: 1n })).getResult();
  await (await DBOS.startWorkflow(order, { workflowID: 'failed' })('bad')).getResult().catch(() => {});
  await DBOS.startWorkflow(order, { workflowID: 'waiting', queueName: 'unserved' })('ink');
  const ours = async (...words: string[]): Promise<Ended> => {
    const { exitCode: code, out, err } = await call([...words, '-s', url], { commands: DBOS_COMMANDS });
    return { code, out: out || err };
  };
  const theirs = (...words: string[]) => execute([THEIRS, ...words, '-s', url]);
  return { DBOS, ours, theirs };
}

describe.skipIf(!existsSync(THEIRS) || !wantsDialect('postgres'))('beside DBOS', () => {
  test('prints the same lists, workflows and steps', async () => {
    const { ours, theirs } = await setup(postgres);
    const lines = [
      ['workflow', 'list'],
      ['wf', 'list', '-n', 'order', '-S', 'ERROR', '-l', '5', '-v', 'v1', '--start-time', '2020-01-01T00:00:00Z'],
      ['workflow', 'get', 'good'],
      ['workflow', 'steps', 'good'],
      ['workflow', 'queue', 'list', '-q', 'unserved', '-l', '3'],
    ];

    const others = await Promise.all(lines.map((words) => theirs(...words)));
    for (const [index, words] of lines.entries()) {
      const own = await ours(...words);
      const other = others[index] as Ended;
      expect.soft(other.code, words.join(' ')).toBe(0);
      // Some fields are ours alone.
      expect.soft(JSON.parse(own.out), words.join(' ')).toMatchObject(JSON.parse(other.out) as object);
    }
  });
});

forEachDialect((dialect) => {
  test('cancels, resumes and forks without a word', async () => {
    const { DBOS, ours } = await setup(dialect);
    const statusOf = async (id: string) => (await DBOS.getWorkflowStatus(id))?.status;

    expect(await ours('workflow', 'cancel', 'waiting')).toEqual({ code: 0, out: '' });
    expect(await statusOf('waiting')).toBe('CANCELLED');
    expect(await ours('workflow', 'resume', 'waiting')).toEqual({ code: 0, out: '' });
    expect(await statusOf('waiting')).not.toBe('CANCELLED');
    const fork = ['workflow', 'fork', 'good', '--step', '0', '--forked-workflow-id', 'copy'];
    expect(await ours(...fork)).toEqual({ code: 0, out: '' });
    expect(await DBOS.getResult('copy')).toEqual({ sent: new Date(0) });
    expect(await ours('workflow', 'get', 'absent')).toEqual({ code: 0, out: 'null\n' });
    expect((await ours('workflow', 'list', '-S', 'WRONG')).code).toBe(2);
  });
});
