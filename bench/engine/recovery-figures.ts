// After a crash: how soon another process goes on, and how fast a new one gets through what was left.
import { median, printTable } from '../report.js';
import type { Moment, RecoverAnswer } from './commands.js';
import type { Databases } from './databases.js';
import { compare } from './engines.js';
import { ask, type Engine, WorkerProcess } from './workers.js';
import { PAUSE_AT, PAUSING_STEPS } from './workload.js';

const TAKE_OVER_ROUNDS = 10;
const TAKEN_OVER = 10;
const RECOVERY_ROUNDS = 3;
const RECOVERED = 1000;
/** The steps of a taken-over workflow that are run anew, each of which the other process tells. */
const STEPS_LEFT = PAUSING_STEPS - PAUSE_AT;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;

export async function printTakeOver(databases: Databases): Promise<void> {
  const onPostgres = await takeOvers(await databases.postgres());
  const onSqlite = await takeOvers(databases.sqlite());
  const lines = (label: string, measured: readonly number[]) => [
    { label: `${label}: median`, value: seconds(median(measured)) },
    { label: `${label}: slowest`, value: seconds(Math.max(...measured)) },
  ];
  printTable(`take-over by another process on the machine after SIGKILL, ${TAKE_OVER_ROUNDS} rounds`, [
    ...lines('Postgres', onPostgres),
    ...lines('SQLite', onSqlite),
  ]);
}

async function takeOvers(url: string): Promise<number[]> {
  const other = new WorkerProcess('everstep', { task: 'watch', url });
  const measured: number[] = [];
  try {
    await other.next<Moment>();
    for (let round = 0; round < TAKE_OVER_ROUNDS; round += 1) measured.push(await takeOver(url, other));
  } finally {
    other.kill();
  }
  return measured;
}

/** Milliseconds from the death of a process until the other runs the first step of one of its workflows. */
async function takeOver(url: string, other: WorkerProcess): Promise<number> {
  const victim = new WorkerProcess('everstep', { task: 'hold', url, workflows: TAKEN_OVER });
  try {
    await victim.next<Moment>();
  } catch (error) {
    victim.kill();
    throw error;
  }
  const killedAt = victim.kill();
  const first = await other.next<Moment>();
  for (let rest = 1; rest < TAKEN_OVER * STEPS_LEFT; rest += 1) await other.next<Moment>();
  return first.at - killedAt;
}

export async function printRecovery(databases: Databases): Promise<void> {
  const rounds: RecoverAnswer[] = [];
  for (let round = 0; round < RECOVERY_ROUNDS; round += 1) {
    rounds.push(await recover('everstep', await databases.postgres()));
  }
  const everstep = rounds.sort((a, b) => a.allDoneMs - b.allDoneMs)[Math.floor(rounds.length / 2)] as RecoverAnswer;
  // Once: it takes long.
  const dbos = await recover('dbos-5', await databases.postgres());
  const perSecond = ({ allDoneMs }: RecoverAnswer): number => (RECOVERED / allDoneMs) * 1000;
  printTable(`recovery: launch with ${RECOVERED} workflows left at step ${PAUSE_AT} of ${PAUSING_STEPS}`, [
    ...compare({
      label: 'until all are done',
      figures: { everstep: perSecond(everstep), 'dbos-5': perSecond(dbos) },
      isMoreBetter: true,
      format: (rate) => `${Math.round(rate).toLocaleString('en')}/s`,
    }),
    ...compare({
      label: 'until the first step runs',
      figures: { everstep: everstep.firstStepMs, 'dbos-5': dbos.firstStepMs },
      isMoreBetter: false,
      format: seconds,
    }),
    {
      label: 'statements from launch until all run: Everstep',
      value: String(everstep.statements ?? NaN),
      ratio: 'without the group commits of those that run already',
    },
  ]);
}

async function recover(engine: Engine, url: string): Promise<RecoverAnswer> {
  const victim = new WorkerProcess(engine, { task: 'hold', url, workflows: RECOVERED });
  try {
    await victim.next<Moment>();
  } finally {
    victim.kill();
  }
  await victim.ended();
  return ask<RecoverAnswer>(engine, { task: 'recover', url, workflows: RECOVERED });
}
