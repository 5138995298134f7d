import { describe, expect, test } from 'vitest';
import type { Schemas, Workflow } from '../src/api/client';
import { timelineOf } from '../src/workflow/timeline/rows';
import { pan, percentOf, ticksOf, zoom } from '../src/workflow/timeline/scale';

type ServerRow = Schemas['TimelineRow'];

// The page reads a few of the columns only.
const workflow = (fields: Partial<Workflow> = {}): Workflow =>
  ({ workflowID: 'order-17', workflowName: 'fulfil', status: 'SUCCESS', createdAt: 1000, ...fields }) as Workflow;

const row = (fields: Partial<ServerRow>): ServerRow =>
  ({
    step: 0,
    name: 'reserve',
    kind: 'step',
    state: 'done',
    startedAt: 1100,
    endedAt: 1200,
    retries: [],
    ...fields,
  }) as ServerRow;

const timeline = (rows: ServerRow[], fields: object = {}): Schemas['Timeline'] =>
  ({
    createdAt: 1000,
    completedAt: 2000,
    rows,
    marks: [],
    nextAfter: null,
    ...fields,
  }) as unknown as Schemas['Timeline'];

describe('rows of the timeline', () => {
  test('a workflow that has ended spans all its rows', () => {
    const late = row({ step: 1, name: 'DBOS.sleep', kind: 'sleep', startedAt: 1200, endedAt: 2600 });

    const { from, to, rows } = timelineOf(workflow(), timeline([row({}), late]));

    expect([from, to]).toEqual([1000, 2600]);
    expect(rows.map(({ label, tone }) => [label, tone])).toEqual([
      ['reserve', 'done'],
      ['sleep', 'done'],
    ]);
  });

  test('what goes on has no end, and a wait is not work', () => {
    const rows = [
      row({ state: 'running', endedAt: null }),
      row({ step: 1, kind: 'wait', state: 'running', endedAt: null, dueAt: 9000 }),
    ];

    const shown = timelineOf(workflow({ status: 'PENDING' }), timeline(rows, { completedAt: null }));

    expect(shown.to).toBeUndefined();
    expect(shown.rows.map(({ tone, to, dueAt }) => [tone, to, dueAt])).toEqual([
      ['running', undefined, undefined],
      ['waiting', undefined, 9000],
    ]);
  });

  test('the time on a queue comes first', () => {
    const queued = timelineOf(workflow({ queueName: 'mail', dequeuedAt: 1500 }), timeline([row({ startedAt: 1500 })]));
    const waiting = timelineOf(workflow({ status: 'ENQUEUED', queueName: 'mail' }), timeline([]));

    expect(queued.rows[0]).toMatchObject({ label: 'queue mail', from: 1000, to: 1500 });
    expect(waiting.rows[0]).toMatchObject({ label: 'queue mail', from: 1000, to: undefined });
  });

  test('failed attempts are ticks, and only known marks are shown', () => {
    const retries = [{ at: 1120, attempt: 1, error: null }] as unknown as ServerRow['retries'];
    const marks = [
      { type: 'AttemptLost', at: 1300 },
      { type: 'WorkflowStarted', at: 1000 },
    ];

    const shown = timelineOf(workflow(), timeline([row({ startedAt: null, retries })], { marks }));

    expect(shown.rows[0]).toMatchObject({ from: 1120, ticks: [{ at: 1120, attempt: 1, error: 'failed' }] });
    expect(shown.marks).toEqual([{ at: 1300, label: 'process lost' }]);
  });
});

describe('the scale of the timeline', () => {
  const whole = { from: 0, to: 1000 };

  test('zooms around a point, which stays where it is', () => {
    const view = zoom(whole, whole, 0.5, 250);

    expect(view).toEqual({ from: 125, to: 625 });
    expect(percentOf(250, view)).toBe(percentOf(250, whole));
  });

  test('never leaves the whole, nor shrinks to nothing', () => {
    expect(zoom({ from: 100, to: 200 }, whole, 100)).toEqual(whole);
    expect(pan({ from: 100, to: 200 }, whole, -500)).toEqual({ from: 0, to: 100 });
    expect(pan({ from: 100, to: 200 }, whole, 5000)).toEqual({ from: 900, to: 1000 });
    const smallest = zoom({ from: 500, to: 501 }, whole, 0.001);
    expect(smallest.to - smallest.from).toBe(2);
  });

  test('has round ticks, counted from the start of the workflow', () => {
    expect(ticksOf({ from: 5000, to: 6000 }, 5000, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(ticksOf({ from: 5130, to: 5630 }, 5000, 5)).toEqual([200, 300, 400, 500, 600]);
    expect(ticksOf({ from: 0, to: 30 * 86_400_000 }, 0, 10)).toHaveLength(11);
  });
});
