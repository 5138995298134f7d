// Asks worker processes and prints what they have found. Each command has a fresh database.
import { hasPrograms, startNats, startRabbitMQ, startRedis } from '../../test/plugins/receiver/servers.js';
import type { Databases } from '../engine/databases.js';
import { compiledPath } from '../engine/preparations.js';
import { ScriptProcess } from '../engine/workers.js';
import { milliseconds, NAMES, rate } from '../queues/figures.js';
import { askQueue, attempt, withProcesses } from '../queues/processes.js';
import type { ServeAnswer } from '../queues/commands.js';
import { type Measurement, printTable, times } from '../report.js';
import type {
  Consumption,
  Cost,
  CostAnswer,
  ElapsedAnswer,
  LatencyAnswer,
  OutboxCommand,
  PublishAnswer,
} from './commands.js';

const DRAINED = 100_000;
const PEER_NOTES = {
  'pg-boss': '5 workers with batches of 1,000, poll every 0.5 s',
  'graphile-worker': '24 at once, local queue of 500, completed in batches',
} as const;

type On = 'Postgres' | 'SQLite';
const DIALECTS: readonly On[] = ['Postgres', 'SQLite'];
type WithoutURL<C> = C extends unknown ? Omit<C, 'url'> : never;

/** Has a worker process carry out a command on a fresh database; undefined if that fails. */
async function ask<Answer>(
  databases: Databases,
  on: On,
  command: WithoutURL<OutboxCommand>,
  options?: { readonly isCounted: boolean },
): Promise<Answer | undefined> {
  return attempt(`outbox ${command.task} on ${on}`, async () => {
    const url = on === 'Postgres' ? await databases.postgres(options) : databases.sqlite();
    const script = compiledPath(new URL('./worker.ts', import.meta.url));
    const worker = new ScriptProcess(script, [JSON.stringify({ ...command, url })]);
    try {
      return await worker.next<Answer>();
    } finally {
      worker.kill();
      await worker.gone;
    }
  });
}

const perSecond = (count: number, answer: ElapsedAnswer | undefined): number | undefined =>
  answer && (count / answer.elapsedMs) * 1000;

export async function printPublish(databases: Databases): Promise<void> {
  const lines: Measurement[] = [];
  for (const on of DIALECTS) {
    const found = await ask<PublishAnswer>(databases, on, { task: 'publish', rounds: on === 'Postgres' ? 2000 : 1000 });
    const bulk = await ask<ElapsedAnswer>(databases, on, { task: 'bulk', messages: 50_000, perTransaction: 100 });
    lines.push(
      { label: `${on}: insert of the user's row`, value: milliseconds(found?.alone) },
      { label: `${on}: and of a row in a plain table`, value: milliseconds(found?.plain) },
      {
        label: `${on}: and a message instead`,
        value: milliseconds(found?.published),
        ...(found && { ratio: `${times(found.published / found.plain)} the plain insert` }),
      },
      { label: `${on}: 100 messages per transaction`, value: rate(perSecond(50_000, bulk)) },
    );
  }
  printTable('publish: median of a transaction, BEGIN and COMMIT included', lines);
}

export async function printDrain(databases: Databases): Promise<void> {
  const lines: Measurement[] = [];
  const labels: Readonly<Record<Consumption, string>> = {
    handoff: 'to workflows without steps, until they have ended',
    leased: 'to a handler that does nothing, batches of 500',
  };
  for (const on of DIALECTS) {
    for (const by of ['handoff', 'leased'] as const) {
      const found = await ask<ElapsedAnswer>(databases, on, { task: 'drain', by, messages: DRAINED });
      lines.push({ label: `${on}: ${labels[by]}`, value: rate(perSecond(DRAINED, found)) });
    }
  }
  for (const engine of ['pg-boss', 'graphile-worker'] as const) {
    const found = await attempt(`drain by ${NAMES[engine]}`, async () => {
      const url = await databases.postgres();
      await askQueue(engine, { task: 'fill', url, jobs: DRAINED, workMs: 0 });
      return withProcesses(async (start) => {
        const worker = start(engine, { task: 'serve', url, isTuned: true, jobs: DRAINED, processes: 1 });
        await worker.next();
        return (await worker.next<ServeAnswer>()).drainMs;
      });
    });
    const drained = perSecond(DRAINED, found === undefined ? undefined : { elapsedMs: found });
    lines.push({ label: `Postgres: ${NAMES[engine]}`, value: rate(drained), ratio: PEER_NOTES[engine] });
  }
  printTable(`drain of ${DRAINED.toLocaleString('en')} messages by one process, launch included`, lines);
}

export async function printLatency(databases: Databases): Promise<void> {
  const lines: Measurement[] = [];
  for (const on of DIALECTS) {
    const found = await ask<LatencyAnswer>(databases, on, { task: 'latency', samples: 300 });
    lines.push({ label: on, value: milliseconds(found?.median), ratio: `p95 ${milliseconds(found?.p95)}` });
  }
  printTable('publish → handler on an idle topic: from the call, the transaction included', lines);
}

export async function printFetch(databases: Databases): Promise<void> {
  const lines: Measurement[] = [];
  for (const on of DIALECTS) {
    const few = await ask<ElapsedAnswer>(databases, on, { task: 'fetch', pending: 1000, rounds: 100 });
    const many = await ask<ElapsedAnswer>(databases, on, { task: 'fetch', pending: 1_000_000, rounds: 100 });
    lines.push(
      { label: `${on}: 1,000 pending`, value: milliseconds(few?.elapsedMs) },
      {
        label: `${on}: 1,000,000 pending`,
        value: milliseconds(many?.elapsedMs),
        ...(few && many && { ratio: times(many.elapsedMs / few.elapsedMs) }),
      },
    );
  }
  printTable('fetch of 100 messages under a lease, table not analysed: median', lines);
}

const BROKERS = {
  rabbitmq: { name: 'RabbitMQ', programs: ['rabbitmq-server', 'epmd'], start: startRabbitMQ },
  nats: { name: 'NATS JetStream', programs: ['nats-server'], start: startNats },
  redis: { name: 'Redis Streams', programs: ['redis-server'], start: startRedis },
} as const;

export async function printRelays(databases: Databases): Promise<void> {
  const messages = 30_000;
  const lines: Measurement[] = [];
  for (const broker of ['rabbitmq', 'nats', 'redis'] as const) {
    const { name, programs, start } = BROKERS[broker];
    if (!hasPrograms(...programs)) continue;
    const server = await start();
    try {
      const command = { task: 'relay', broker, port: server.port, messages } as const;
      const found = await ask<ElapsedAnswer>(databases, 'Postgres', command);
      lines.push({ label: name, value: rate(perSecond(messages, found)) });
    } finally {
      await server.remove();
    }
  }
  printTable(`relay of ${messages.toLocaleString('en')} messages from Postgres, launch included`, lines);
}

export async function printCosts(databases: Databases): Promise<void> {
  const shown = (cost: Cost | undefined): Omit<Measurement, 'label'> => ({
    value: cost ? `${(cost.walBytes / 1000).toFixed(2)} kB` : '–',
    ...(cost && { ratio: `${cost.statements.toFixed(2)} statements` }),
  });
  const lines: Measurement[] = [];
  for (const by of ['leased', 'handoff'] as const) {
    const found = await ask<CostAnswer>(
      databases,
      'Postgres',
      { task: 'cost', by, messages: 5000 },
      { isCounted: true },
    );
    if (by === 'leased') lines.push({ label: 'publishing, BEGIN and COMMIT included', ...shown(found?.publishing) });
    const label = by === 'leased' ? 'handling under a lease' : 'handing over to a workflow and running it';
    lines.push({ label, ...shown(found?.consuming) });
  }
  lines.push({ label: 'faststream-outbox: publishing and handling', value: '1.29 kB', ratio: '3 statements' });
  printTable('WAL and statements per message, published one by one', lines);
}
