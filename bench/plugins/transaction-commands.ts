// What the parent asks of a worker process that measures transactions, and what it answers.
import { answer } from '../engine/commands.js';
import type { Library } from '../engine/library.js';
import { ServerCounter } from '../engine/statements.js';
import { configure, pause, ratePerSecond } from '../engine/workload.js';

export interface TransactionCommand {
  /** The application's database. */
  readonly url: string;
  readonly systemURL: string;
  /** Which data source of DBOS; Everstep has its own. */
  readonly adapter: 'knex' | 'postgres' | 'node-postgres';
  /** Transactions in each workflow. */
  readonly steps: number;
  readonly rounds: number;
  readonly roundMs: number;
}

export interface TransactionAnswer {
  /** Transactions per second in each round. */
  readonly rates: readonly number[];
  /** As the server has counted them in both databases. */
  readonly statementsPerTransaction: number;
  /** CPU time of the worker process. Other programs on the machine change it far less than the rates. */
  readonly cpuMicrosPerTransaction: number;
}

export const IN_FLIGHT = 20;
const WARM_UP_MS = 1000;
const SETTLE_MS = 1500;

/** Inserts a row in a transaction of whichever data source. */
export type Insert = () => Promise<unknown>;

export async function measureTransactions(
  library: Library,
  command: TransactionCommand,
  insert: Insert,
): Promise<void> {
  process.stdin.on('end', () => process.exit()).resume();
  configure(library, command.systemURL);
  const workflow = library.registerWorkflow(
    async () => {
      for (let step = 0; step < command.steps; step += 1) await insert();
    },
    { name: 'workflow' },
  );
  await library.launch();
  const run = async (durationMs: number): Promise<number> =>
    (await ratePerSecond(IN_FLIGHT, durationMs, () => workflow())).rate * command.steps;
  await run(WARM_UP_MS);
  const rates: number[] = [];
  const cpuBefore = process.cpuUsage();
  for (let round = 0; round < command.rounds; round += 1) rates.push(await run(command.roundMs));
  const { user, system } = process.cpuUsage(cpuBefore);
  const measured = rates.reduce((sum, rate) => sum + (rate * command.roundMs) / 1000, 0);
  const urls = [...new Set([command.url, command.systemURL])];
  const counters = await Promise.all(urls.map((url) => ServerCounter.connect(url)));
  const statements = async (): Promise<number> =>
    (await Promise.all(counters.map((counter) => counter.statements()))).reduce((sum, count) => sum + count);
  const before = await statements();
  const counted = 10 * IN_FLIGHT;
  for (let started = 0; started < counted; started += IN_FLIGHT) {
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => workflow()));
  }
  // What comes after the workflows belongs to them as well.
  await pause(SETTLE_MS);
  const statementsPerTransaction = ((await statements()) - before) / (counted * command.steps);
  const cpuMicrosPerTransaction = (user + system) / measured;
  answer({ rates, statementsPerTransaction, cpuMicrosPerTransaction } satisfies TransactionAnswer);
  process.exit();
}

export const INSERT = `INSERT INTO effects (note) VALUES ('a note')`;
