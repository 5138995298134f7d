import { describe, expect, test } from 'vitest';
import { exposition } from '../../../src/faces/http/metrics/exposition.js';
import { forEachDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { setup } from './scene.js';

interface Sample {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

/** Reads the text format, and refuses what is not well-formed: each metric has its help, its type and its samples. */
function parse(text: string): Sample[] {
  expect(text.endsWith('\n')).toBe(true);
  const samples: Sample[] = [];
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) \S.*$/.exec(line);
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) gauge$/.exec(line);
    const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+|NaN|[+-]Inf)$/.exec(line);
    if (help) {
      expect(samples.some(({ name }) => name === help[1])).toBe(false);
      current = help[1] ?? '';
    } else if (type) expect(type[1]).toBe(current);
    else {
      expect(sample?.[1], line).toBe(current);
      samples.push({ name: current, labels: parseLabels(sample?.[2] ?? ''), value: Number(sample?.[3]) });
    }
  }
  return samples;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text;
  while (rest !== '') {
    const match = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)",?/.exec(rest);
    if (!match) throw new Error(`Not a label: ${rest}`);
    labels[match[1] ?? ''] = (match[2] ?? '').replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
    rest = rest.slice(match[0].length);
  }
  return labels;
}

describe('metrics', () => {
  test('escape what would break their format', () => {
    const labels = { queue: 'a"b\\c\nd,e}f {x="1"}' };

    const text = exposition([
      { name: 'x', help: 'Two\nlines \\ and more', samples: [{ labels, value: 1 }, { value: Infinity }] },
      { name: 'empty', help: 'Nothing', samples: [] },
    ]);

    expect(text).toBe(
      '# HELP x Two\\nlines \\\\ and more\n# TYPE x gauge\nx{queue="a\\"b\\\\c\\nd,e}f {x=\\"1\\"}"} 1\nx +Inf\n',
    );
    expect(parse(text)[0]?.labels).toEqual(labels);
  });

  forEachDialect((dialect) => {
    test('tell of workflows, queues, executors and the process', async () => {
      const { call, DBOS, enqueue } = await setup(dialect);
      const name = 'we"ird\\\nqueue';
      await DBOS.registerQueue(name);
      await DBOS.pauseQueue(name);
      await enqueue('add', { queueName: name, args: [1, 2] });
      await enqueue('add', { queueName: name, args: [1, 2] });
      await enqueue('add', { queueName: name, args: [1, 2], delaySeconds: 1000 });
      await call('GET', '/metrics');

      const { status, headers, body } = await call('GET', '/metrics');

      expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
      const samples = parse(body as string);
      const valueOf = (metric: string, labels: Record<string, string> = {}) =>
        samples.find(
          (sample) =>
            sample.name === metric && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
        )?.value;
      expect(valueOf('everstep_workflows', { queue: name, status: 'ENQUEUED' })).toBe(2);
      expect(valueOf('everstep_workflows', { queue: name, status: 'DELAYED' })).toBe(1);
      expect(valueOf('everstep_workflows', { queue: 'q', status: 'ENQUEUED' })).toBe(0);
      expect(valueOf('everstep_workflows', { queue: '', status: 'PENDING' })).toBe(0);
      expect(valueOf('everstep_queue_oldest_wait_seconds', { queue: name })).toBeGreaterThanOrEqual(0);
      expect(valueOf('everstep_executors')).toBe(1);
      expect(valueOf('everstep_runs')).toBe(0);
      expect(valueOf('everstep_info', { database: dialect.name, application: 'test' })).toBe(1);
      if (dialect.name === 'postgres') {
        expect(valueOf('everstep_database_connections', { state: 'waited_for' })).toBe(0);
      }
    });

    test('count the workflows that run here', async () => {
      const { call, DBOS } = await setup(dialect);
      const handle = await DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'receive' });
      const running = async () => {
        const { body } = await call('GET', '/metrics');
        return parse(body as string).find(({ name }) => name === 'everstep_runs')?.value;
      };
      await until(async () => (await running()) === 1);

      await DBOS.send(handle.workflowID, 'x', 'topic');
      await handle.getResult();

      expect(await running()).toBe(0);
    });

    test('are ready when the database answers', async () => {
      const { call, DBOS } = await setup(dialect);

      expect((await call('GET', '/readyz')).status).toBe(200);
      await DBOS.shutdown();
      expect((await call('GET', '/readyz')).status).toBe(503);
      expect((await call('GET', '/healthz')).status).toBe(200);
    });
  });
});
