// A process that publishes a message and works on it until it is killed at the point that its first argument names.
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { OutboxDatabase } from '../../../src/plugins/outbox/database.js';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import { type Adapter, type AdapterName, ADAPTERS } from '../transaction/adapters.js';
import { methodsOf } from '../../crash/kill-points.js';
import { ALL_TABLES } from './tables.js';
import { type KillPoint, publishOne, type Scenario, subscribe } from './scenario.js';

export interface OutboxKill {
  readonly adapter: AdapterName;
  readonly url: string;
  readonly systemURL: string;
  readonly scenario: Scenario;
  readonly point: KillPoint;
  readonly folder: string;
}

const settings = JSON.parse(process.argv[2] ?? '{}') as OutboxKill;
const die = (): void => void process.kill(process.pid, 'SIGKILL');

/** The statement after which the scenario's work is only to be committed. */
const LAST: Readonly<Record<Scenario, RegExp>> = {
  publish: /(?!)/,
  handler: /^\s*DELETE FROM/,
  transactional: /INSERT INTO effects/,
  reject: /RETURNING original_id/,
  workflow: /DELETE FROM/,
};

function arm(): void {
  // The methods that commit.
  const { transact, inTransaction } = methodsOf(OutboxDatabase.prototype, 'transact', 'inTransaction');
  const isLast = (text: string): boolean => LAST[settings.scenario].test(text);
  const watch = (around: typeof transact): typeof transact =>
    async function (this: OutboxDatabase, body, ...rest) {
      let isReached = settings.scenario === 'transactional' && around === (inTransaction as unknown);
      const result = await around.call(
        this,
        async (tx) => {
          const value = await body({
            ...tx,
            run: async (statement) => {
              const rows = await tx.run(statement);
              if (rows.length > 0 && isLast(statement.strings.join(' '))) isReached = true;
              return rows;
            },
          });
          if (isReached && settings.point === 'before') die();
          return value;
        },
        ...rest,
      );
      if (isReached) die();
      return result as never;
    };
  OutboxDatabase.prototype.transact = watch(transact);
  OutboxDatabase.prototype.inTransaction = watch(inTransaction);
}

async function main(): Promise<void> {
  const DBOS = createDBOS();
  const { systemURL: systemDatabaseUrl, scenario, point } = settings;
  DBOS.setConfig({ name: 'test', applicationVersion: 'v1', executorID: 'one', systemDatabaseUrl });
  const adapter: Adapter = ADAPTERS[settings.adapter];
  const engine = { DBOS, ...(await adapter.create(settings.url, DBOS, settings.folder)) };
  const outbox = new OutboxBroker(engine.source as never, ALL_TABLES);
  subscribe(scenario, engine, outbox);
  arm();
  await DBOS.launch();
  await publishOne(engine, outbox, () => scenario === 'publish' && point === 'before' && die());
  if (scenario === 'publish') die();
  await new Promise((resolve) => setTimeout(resolve, 200_000));
}

void main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  },
);
