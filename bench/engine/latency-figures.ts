// One workflow after the other: how long a caller waits.
import { printTable } from '../report.js';
import type { LatencyAnswer } from './commands.js';
import type { Databases } from './databases.js';
import { compare, measureEach, pick } from './engines.js';
import { ask } from './workers.js';

const CASES = [0, 1, 10] as const;
const CASE_MS = 2500;

const milliseconds = (value: number): string => `${value.toFixed(2)} ms`;

export async function printLatency(databases: Databases): Promise<void> {
  const answers = await measureEach(async (engine) =>
    ask<LatencyAnswer>(engine, {
      task: 'latency',
      url: await databases.postgres(),
      steps: CASES,
      caseMs: CASE_MS,
    }),
  );
  const lines = CASES.flatMap((steps, index) =>
    (['median', 'p99'] as const).flatMap((figure) =>
      compare({
        label: `${steps} step${steps === 1 ? '' : 's'}, ${figure}`,
        figures: pick(answers, ({ cases }) => cases[index]?.[figure] ?? NaN),
        isMoreBetter: false,
        format: milliseconds,
      }),
    ),
  );
  printTable('latency on Postgres: one workflow after the other', lines);
}
