import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { call } from './terminals.js';

forEachDialect((dialect) => {
  async function setup() {
    const { DBOS, url } = await createEngine(dialect);
    DBOS.registerWorkflow(async (a: number, b: { c: number }) => a + b.c, { name: 'add' });
    DBOS.registerWorkflow(async () => DBOS.recv<{ ok: boolean }>('approval', '1 hour'), { name: 'ask' });
    await DBOS.launch();
    await DBOS.registerQueue('queue');
    const everstep = (...words: string[]) => call([...words, '-s', url]);
    return { DBOS, everstep };
  }

  test('workflow start runs a workflow with its arguments and prints the result', async () => {
    const { everstep } = await setup();
    const words = ['workflow', 'start', 'add', '--arg', '1', '--arg', '{"c": 2}', '--id', 'w', '--wait', '--json'];

    const called = await everstep(...words);

    expect(called.json()).toEqual({ workflowID: 'w', result: 3 });
  });

  test('workflow enqueue takes a queue, a delay and a timeout', async () => {
    const { DBOS, everstep } = await setup();
    const words = ['workflow', 'enqueue', 'add', '-q', 'queue', '--id', 'w', '--delay', '1h', '--timeout', '30s'];

    const called = await everstep(...words, '--priority', '3');

    expect(called).toMatchObject({ exitCode: 0, out: 'w\n' });
    const expected = { status: 'DELAYED', queueName: 'queue', timeoutMS: 30_000, priority: 3 };
    expect(await DBOS.getWorkflowStatus('w')).toMatchObject(expected);
  });

  test('workflow enqueue needs a queue', async () => {
    const { everstep } = await setup();

    expect(await everstep('workflow', 'enqueue', 'add')).toMatchObject({ exitCode: 2 });
  });

  test('workflow send sends JSON on a topic', async () => {
    const { DBOS, everstep } = await setup();
    await everstep('workflow', 'start', 'ask', '--id', 'w');

    await everstep('workflow', 'send', 'w', '--topic', 'approval', '--message', '{"ok": true}');

    expect(await DBOS.getResult('w')).toEqual({ ok: true });
  });

  test('workflow send to an unknown workflow fails', async () => {
    const { everstep } = await setup();

    expect(await everstep('workflow', 'send', 'none', '--message', '1')).toMatchObject({ exitCode: 3 });
  });
});

describe('completion', () => {
  test('completes groups, commands and options in bash', async () => {
    const { out } = await call('completion bash');
    const complete = (...words: string[]): string[] => {
      const script = `${out}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})\nCOMP_CWORD=${words.length - 1}\n_everstep\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
      return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
    };

    expect(complete('everstep', 'wor')).toEqual(['workflow']);
    expect(complete('everstep', 'workflow', 'enq')).toEqual(['enqueue']);
    expect(complete('everstep', 'wf', 'enq')).toEqual(['enqueue']);
    expect(complete('everstep', 'workflow', 'enqueue', '--pri')).toEqual(['--priority']);
  });

  test.each(['zsh', 'fish'])('has a script for %s', async (shell) => {
    const { out } = await call(`completion ${shell}`);

    expect(out).toContain('--deduplication-id');
  });

  test('refuses other shells', async () => {
    expect(await call('completion cmd')).toMatchObject({ exitCode: 2 });
  });
});
