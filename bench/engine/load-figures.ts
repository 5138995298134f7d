// Many workflows at once: how many a second, against the peers, a loop by hand and SQLite, and what they cost the server.
import { type Measurement, median, printTable, times } from '../report.js';
import type { LoadAnswer, LoneAnswer } from './commands.js';
import type { Databases } from './databases.js';
import { compare, ENGINES, measureEach, pick } from './engines.js';
import { ask, type Engine } from './workers.js';

const PASSES = 3;
const ROUNDS = 2;
const ROUND_MS = 1500;

const rate = (perSecond: number): string => `${Math.round(perSecond).toLocaleString('en')}/s`;
const decimal = (value: number): string => value.toFixed(2);

/** Everybody takes turns, so that all meet the same moments of a busy machine. */
export async function printThroughput(databases: Databases): Promise<void> {
  const onPostgres: Record<Engine, number[]> = { everstep: [], 'dbos-5': [], 'dbos-4': [] };
  const byHand: number[] = [];
  const onSqlite: number[] = [];
  const measure = (engine: Engine, url: string): Promise<LoadAnswer> =>
    ask(engine, {
      task: 'load',
      url,
      steps: 3,
      rounds: ROUNDS,
      roundMs: ROUND_MS,
      byHand: url.startsWith('postgresql:'),
    });
  for (let pass = 0; pass < PASSES; pass += 1) {
    for (const engine of ENGINES) {
      const { rates, byHandRates } = await measure(engine, await databases.postgres());
      onPostgres[engine].push(...rates);
      byHand.push(...byHandRates);
    }
    onSqlite.push(...(await measure('everstep', databases.sqlite())).rates);
  }
  const figures = pick(onPostgres, median);
  printTable('throughput: workflows of 3 no-op steps, 100 in flight, medians of rounds', [
    ...compare({ label: 'Postgres', figures, isMoreBetter: true, format: rate }),
    {
      label: 'Postgres: guarded group commits by hand',
      value: rate(median(byHand)),
      ratio: `Everstep: ${Math.round((figures.everstep / median(byHand)) * 100)} % of it`,
    },
    {
      label: 'SQLite: Everstep',
      value: rate(median(onSqlite)),
      ratio: `${times(median(onSqlite) / figures.everstep)} Postgres`,
    },
  ]);
}

export async function printStatements(databases: Databases): Promise<void> {
  const answers = await measureEach(async (engine) =>
    ask<LoadAnswer>(engine, {
      task: 'load',
      url: await databases.postgres({ isCounted: true }),
      steps: 10,
      rounds: 1,
      roundMs: ROUND_MS,
    }),
  );
  const { cases } = await ask<LoneAnswer>('everstep', {
    task: 'lone',
    url: await databases.postgres(),
    steps: [0, 1, 3, 10],
  });
  printTable('statements per workflow, as the server counts them (BEGIN and COMMIT included)', [
    ...compare({
      label: '10 steps, 100 in flight',
      figures: pick(answers, ({ statementsPerWorkflow }) => statementsPerWorkflow),
      isMoreBetter: false,
      format: decimal,
    }),
    ...cases.map(({ steps, commits, reads }): Measurement => ({
      label: `alone, ${steps} step${steps === 1 ? '' : 's'}: Everstep`,
      value: `${commits} + ${reads}`,
      ratio: 'commits + reads',
    })),
  ]);
}
