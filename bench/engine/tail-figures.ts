// The slowest of many workflows: how slow, and why.
import { type Measurement, printTable } from '../report.js';
import type { TailsAnswer } from './commands.js';
import type { Databases } from './databases.js';
import { ask } from './workers.js';

const DURATION_MS = 10_000;

export async function printTails(databases: Databases): Promise<void> {
  const url = await databases.postgres();
  const found = await ask<TailsAnswer>('everstep', { task: 'tails', url, steps: 1, durationMs: DURATION_MS });
  const percent = (part: number): string => `${(part * 100).toFixed(0)} %`;
  printTable(`tail of ${found.samples.toLocaleString('en')} one-step workflows, one after the other`, [
    lineOf('workflow', found.workflow),
    lineOf('a bare INSERT after each', found.insert),
    { label: 'slowest 1 %: time in commits', value: percent(found.inCommits) },
    { label: 'slowest 1 %: time in garbage collection', value: percent(found.inCollections) },
    { label: 'slowest 1 %: beside another statement of ours', value: percent(found.besideStatements) },
  ]);
}

function lineOf(label: string, values: readonly number[]): Measurement {
  const [half = NaN, , slow = NaN] = values;
  const all = values.map((value) => value.toFixed(2)).join(', ');
  return {
    label: `${label}: p50, p90, p99, p99.9 in ms`,
    value: all,
    ratio: `p99 is ${(slow / half).toFixed(1)}× the median`,
  };
}
