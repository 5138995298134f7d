// Transaction steps against those of DBOS 5.3.0 with its published data sources, on one Postgres server in one run.
import pg from 'pg';
import type { Databases } from '../engine/databases.js';
import { peerFolder, workerPath } from '../engine/preparations.js';
import { ScriptProcess } from '../engine/workers.js';
import { median, printTable, times } from '../report.js';
import { IN_FLIGHT, type TransactionAnswer, type TransactionCommand } from './transaction-commands.js';

const PASSES = 3;
const ROUNDS = 2;
const ROUND_MS = 1500;

const CASES = [
  { label: 'Everstep, node-postgres', engine: 'everstep', adapter: 'node-postgres', isShared: false },
  {
    label: 'Everstep, node-postgres, in the system database',
    engine: 'everstep',
    adapter: 'node-postgres',
    isShared: true,
  },
  { label: 'DBOS 5.3.0, knex', engine: 'dbos', adapter: 'knex', isShared: false },
  { label: 'DBOS 5.3.0, postgres', engine: 'dbos', adapter: 'postgres', isShared: false },
] as const;
type Case = (typeof CASES)[number];

/** Everybody takes turns, so that all meet the same moments of a busy machine. */
export async function printTransactions(databases: Databases): Promise<void> {
  for (const steps of [1, 5]) {
    const answers = new Map<Case, TransactionAnswer[]>(CASES.map((one) => [one, []]));
    for (let pass = 0; pass < PASSES; pass += 1) {
      for (const one of CASES) answers.get(one)?.push(await measure(databases, one, steps));
    }
    const figure = (one: Case): number => median(answers.get(one)?.flatMap(({ rates }) => rates) ?? []);
    const statements = (one: Case): number =>
      median(answers.get(one)?.map(({ statementsPerTransaction }) => statementsPerTransaction) ?? []);
    const cpu = (one: Case): number =>
      median(answers.get(one)?.map(({ cpuMicrosPerTransaction }) => cpuMicrosPerTransaction) ?? []);
    const peers = CASES.filter(({ engine }) => engine === 'dbos');
    const best = (one: Case, figureOf: (of: Case) => number, isMoreBetter: boolean): string =>
      one.engine === 'dbos'
        ? ''
        : peers
            .map((peer) => {
              const ratio = figureOf(one) / figureOf(peer);
              return `${times(isMoreBetter ? ratio : 1 / ratio)} ${peer.label}`;
            })
            .join(', ');
    const title = `transactions of one INSERT, ${steps} in each workflow, ${IN_FLIGHT} workflows in flight`;
    printTable(
      `${title}, medians of rounds`,
      CASES.map((one) => ({
        label: one.label,
        value: `${Math.round(figure(one)).toLocaleString('en')}/s`,
        ratio: best(one, figure, true),
      })),
    );
    // Not every server counts them.
    if (CASES.every((one) => statements(one) > 0)) {
      printTable(
        `${title}, statements a transaction, with its share of the workflow`,
        CASES.map((one) => ({
          label: one.label,
          value: statements(one).toFixed(1),
          ratio: best(one, statements, false),
        })),
      );
    }
    printTable(
      `${title}, CPU time of the process for a transaction, with its share of the workflow`,
      CASES.map((one) => ({
        label: one.label,
        value: `${Math.round(cpu(one)).toLocaleString('en')} µs`,
        ratio: best(one, cpu, false),
      })),
    );
  }
}

async function measure(databases: Databases, one: Case, steps: number): Promise<TransactionAnswer> {
  const systemURL = await databases.postgres({ isCounted: true });
  const url = one.isShared ? systemURL : await databases.postgres({ isCounted: true });
  await createTable(url);
  const command: TransactionCommand = {
    url,
    systemURL,
    adapter: one.adapter,
    steps,
    rounds: ROUNDS,
    roundMs: ROUND_MS,
  };
  const worker = new ScriptProcess(workerPath('plugins', one.engine), [JSON.stringify(command), peerFolder()]);
  try {
    return await worker.next<TransactionAnswer>();
  } finally {
    worker.kill();
    await worker.gone;
  }
}

async function createTable(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('CREATE TABLE effects (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note TEXT NOT NULL)');
  await client.end();
}
