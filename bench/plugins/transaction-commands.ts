// What the parent asks of a worker process that measures transactions, and what it answers.
import { answer } from '../engine/commands.js';
import type { Library } from '../engine/library.js';
import { configure, ratePerSecond } from '../engine/workload.js';

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
}

export const IN_FLIGHT = 20;
const WARM_UP_MS = 1000;

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
  for (let round = 0; round < command.rounds; round += 1) rates.push(await run(command.roundMs));
  answer({ rates } satisfies TransactionAnswer);
  await library.shutdown();
  process.exit();
}

export const INSERT = `INSERT INTO effects (note) VALUES ('a note')`;
