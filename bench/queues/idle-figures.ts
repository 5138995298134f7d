// What queues cost while nothing happens.
import type { Databases } from '../engine/databases.js';
import { printTable, times } from '../report.js';
import type { IdleAnswer, QueueEngine } from './commands.js';
import { NAMES, whole } from './figures.js';
import { askQueue, attempt } from './processes.js';

const QUEUES = 5;
const IDLE_MS = 30_000;

/** Statements a minute of Everstep and DBOS, as the server counts them. */
export interface IdleStatements {
  readonly everstep: number | undefined;
  readonly dbos: number | undefined;
}

/** Both at the same time: an idle engine disturbs nobody. */
export async function measureIdle(databases: Databases): Promise<IdleStatements> {
  const measure = async (engine: QueueEngine): Promise<number | undefined> => {
    const url = await databases.postgres({ isCounted: true });
    const command = { task: 'idle', url, queues: QUEUES, windowMs: IDLE_MS } as const;
    const found = await attempt(`idle with ${QUEUES} queues: ${NAMES[engine]}`, () =>
      askQueue<IdleAnswer>(engine, command),
    );
    return found?.statementsPerMinute;
  };
  const [everstep, dbos] = await Promise.all([measure('everstep'), measure('dbos-5')]);
  return { everstep, dbos };
}

export function printIdle({ everstep, dbos }: IdleStatements): void {
  printTable(`idle with ${QUEUES} queues: statements a minute on Postgres, from ${IDLE_MS / 1000} s`, [
    {
      label: NAMES.everstep,
      value: whole(everstep),
      ratio: everstep && dbos ? `${times(dbos / everstep)} fewer than DBOS` : '',
    },
    { label: NAMES['dbos-5'], value: whole(dbos) },
  ]);
}
