// The checker of queue limits finds each kind of violation, and nothing where there is none.
import { describe, expect, test } from 'vitest';
import type { QueueSettings } from '../../src/features/queue/queue.js';
import { excessesOf, idlenessOf, type JobTimes, jobsByJournal } from './queue-checker.js';
import type { Line } from './journal.js';

const rate = { limitPerPeriod: 2, periodSec: 1 };

/** A job: its times, where it ran, and its partition. All wait from time 0. */
function job(startedAt: number, endedAt: number, process = 1, partitionKey: string | null = null): JobTimes {
  return { workflowID: `${partitionKey}-${startedAt}`, partitionKey, process, waitsFrom: 0, startedAt, endedAt };
}

describe('an excess is found', () => {
  const cases: [rule: string, limits: QueueSettings, jobs: JobTimes[], text: string][] = [
    [
      'of global concurrency',
      { globalConcurrency: 2 },
      [job(0, 30), job(1, 20), job(19, 25)],
      'the queue ran 3 instead of 2 at 19',
    ],
    [
      'of worker concurrency',
      { workerConcurrency: 1 },
      [job(0, 10, 1), job(5, 10, 2), job(9, 20, 1)],
      'a process ran 2 instead of 1 at 9',
    ],
    [
      'of partition concurrency',
      { partitionConcurrency: 1 },
      [job(0, 10, 1, 'a'), job(3, 10, 1, 'b'), job(5, 15, 2, 'a')],
      'a partition ran 2 instead of 1 at 5',
    ],
    [
      'of partition worker concurrency',
      { partitionWorkerConcurrency: 1 },
      [job(0, 10, 1, 'a'), job(3, 10, 2, 'a'), job(5, 15, 2, 'a')],
      'a partition in a process ran 2 instead of 1 at 5',
    ],
    ['of a rate', { rateLimit: rate }, [job(0, 1), job(500, 501), job(999, 1001)], 'the queue started 3 instead of 2'],
    [
      'of a partition rate',
      { partitionRateLimit: rate },
      [job(0, 1, 1, 'a'), job(5, 6, 1, 'b'), job(500, 501, 2, 'a'), job(999, 1001, 1, 'a')],
      'a partition started 3 instead of 2',
    ],
  ];
  test.each(cases)('%s', (_, limits, jobs, text) => {
    expect(excessesOf(jobs, limits)).toMatchObject([expect.stringContaining(text)]);
  });
});

test('what ends when the next one starts, and what starts when a period is over, exceeds nothing', () => {
  const jobs = [job(0, 10, 1, 'a'), job(10, 1000, 1, 'a'), job(1000, 1010, 1, 'a'), job(1010, 1010, 1, 'a')];
  const limits = {
    globalConcurrency: 1,
    workerConcurrency: 1,
    partitionConcurrency: 1,
    partitionWorkerConcurrency: 1,
    rateLimit: rate,
    partitionRateLimit: rate,
  };

  expect(excessesOf(jobs, limits)).toEqual([]);
});

describe('idle room is found', () => {
  const cases: [rule: string, limits: QueueSettings, jobs: JobTimes[]][] = [
    ['of the queue', { globalConcurrency: 1 }, [job(0, 10), job(1100, 1200)]],
    ['beside a long job', { globalConcurrency: 2 }, [job(0, 5000), job(0, 10), job(1100, 1200)]],
    ['of a process', { workerConcurrency: 1 }, [job(0, 5000, 1), job(1100, 1200, 2)]],
    ['of a rate', { rateLimit: rate }, [job(0, 1), job(1, 2), job(2500, 2501)]],
    [
      'of a partition that is left out',
      { partitionConcurrency: 1 },
      [...[0, 500, 1000, 1500].map((at) => job(at, at + 499, 1, 'a')), job(1600, 1700, 1, 'b')],
    ],
    [
      'of a partition rate',
      { partitionRateLimit: rate },
      [job(0, 1, 1, 'a'), job(0, 1, 1, 'a'), job(2100, 2101, 1, 'a')],
    ],
    ['before a job that never starts', { globalConcurrency: 1 }, [job(0, 10), job(Infinity, Infinity)]],
  ];
  test.each(cases)('%s', (_, limits, jobs) => {
    expect(idlenessOf(jobs, limits, { processes: [1, 2] }).length).toBeGreaterThan(0);
  });
});

test('room that is full, or taken again within the time, is not idle', () => {
  const full = [job(0, 5000, 1), job(0, 5000, 2), job(5001, 6000, 1)];
  const slow = [job(0, 10), job(900, 910), job(1800, 1810)];
  const rated = [job(0, 1), job(0, 1), job(1900, 1901), job(1900, 1901)];

  expect(idlenessOf(full, { globalConcurrency: 2 }, { processes: [1, 2, 3] })).toEqual([]);
  expect(idlenessOf(full, { workerConcurrency: 1 }, { processes: [1, 2] })).toEqual([]);
  expect(idlenessOf(slow, { globalConcurrency: 2 }, { processes: [1] })).toEqual([]);
  expect(idlenessOf(rated, { rateLimit: rate }, { processes: [1] })).toEqual([]);
});

test('the journal shows each execution of a job by itself', () => {
  const step = { kind: 'step', stepID: 0, name: 'job', token: '', workflowID: 'null-50' } as const;
  const lines: Line[] = [
    { ...step, pid: 1, at: 10 },
    { ...step, pid: 1, at: 30, workflowID: 'another' },
    { ...step, pid: 2, at: 60 },
    { kind: 'ended', workflowID: 'null-50', pid: 2, at: 70 },
  ];

  const executions = jobsByJournal([job(50, 80, 2)], lines);

  expect(executions).toMatchObject([
    { process: 1, startedAt: 10, endedAt: 30 },
    { process: 2, startedAt: 60, endedAt: 70 },
  ]);
});
