// What a worker process does for each command.
import { OutboxDatabase } from '../../src/plugins/outbox/database.js';
import { claim } from '../../src/plugins/outbox/consume/fetching.js';
import { answer } from '../engine/commands.js';
import { ServerCounter } from '../engine/statements.js';
import { median, timed } from '../report.js';
import { type Application, BODY, fill, openApplication, publishing, TABLE, TOPIC } from './application.js';
import type {
  BulkCommand,
  Consumption,
  CostCommand,
  DrainCommand,
  FetchCommand,
  LatencyCommand,
  OutboxCommand,
  PublishCommand,
  RelayCommand,
} from './commands.js';
import { openTarget } from './targets.js';

const BATCH = 500;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runTask(command: OutboxCommand): Promise<void> {
  const application = await openApplication(command.url);
  answer(await taskOf(application, command));
  await application.close();
}

function taskOf(application: Application, command: OutboxCommand): Promise<unknown> {
  switch (command.task) {
    case 'publish':
      return publish(application, command);
    case 'bulk':
      return bulk(application, command);
    case 'drain':
      return drain(application, command);
    case 'cost':
      return cost(application, command);
    case 'latency':
      return latency(application, command);
    case 'fetch':
      return fetch(application, command);
    case 'relay':
      return relay(application, command);
  }
}

async function publish({ DBOS, source, outbox, run }: Application, { rounds }: PublishCommand) {
  await DBOS.launch();
  const json = JSON.stringify(BODY);
  const insert = (table: string): Promise<unknown> =>
    run(
      `INSERT INTO ${table} (queue, payload, headers) VALUES ('a', '${json}', '{"content-type":"application/json"}')`,
    );
  const bodies = {
    alone: () => insert('orders'),
    plain: () => insert('orders').then(() => insert('plain')),
    published: () => insert('orders').then(() => outbox.publish(TOPIC, BODY)),
  };
  const elapsed: Record<keyof typeof bodies, number[]> = { alone: [], plain: [], published: [] };
  // In turns, so that whatever else the machine does falls on all of them.
  for (let round = 0; round < rounds; round += 1) {
    for (const kind of ['alone', 'plain', 'published'] as const) {
      const elapsedMs = await timed(() =>
        source.runTransaction(() => bodies[kind]().then(() => undefined), { name: 'publish' }),
      );
      if (round >= rounds / 10) elapsed[kind].push(elapsedMs);
    }
  }
  return {
    alone: median(elapsed.alone),
    plain: median(elapsed.plain),
    published: median(elapsed.published),
  };
}

async function bulk({ DBOS, source, outbox }: Application, { messages, perTransaction }: BulkCommand) {
  await DBOS.launch();
  const publishMany = (): Promise<unknown> =>
    source.runTransaction(
      () =>
        outbox.publishAll(
          TOPIC,
          Array.from({ length: perTransaction }, () => ({ body: BODY })),
        ),
      { name: 'publish' },
    );
  for (let warmUp = 0; warmUp < 20; warmUp += 1) await publishMany();
  const elapsedMs = await timed(async () => {
    for (let done = 0; done < messages; done += perTransaction) await publishMany();
  });
  return { elapsedMs };
}

/** Consumes the topic. The result resolves when that many messages have been seen. */
function consume({ DBOS, outbox }: Application, by: Consumption, messages: number): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0;
    const see = async (): Promise<void> => {
      seen += 1;
      if (seen === messages) resolve();
    };
    if (by === 'handoff') outbox.on(TOPIC, DBOS.registerWorkflow(see, { name: 'see' }));
    else outbox.on(TOPIC, see, { batch: BATCH, workers: 100 });
  });
}

/** Until nothing is pending and, if they became workflows, all of them have ended. */
async function settled({ query }: Application, url: string, by: Consumption): Promise<void> {
  const schema = url.startsWith('sqlite') ? '' : 'dbos.';
  const open = by === 'leased' ? 'outbox' : `${schema}workflow_status WHERE status IN ('PENDING', 'ENQUEUED')`;
  while (Number(await query(`SELECT COUNT(*) FROM (SELECT 1 FROM ${open} LIMIT 1) AS o`)) > 0) await pause(5);
}

async function drain(application: Application, { by, messages, url }: DrainCommand) {
  await fill(url, messages);
  const seen = consume(application, by, messages);
  const elapsedMs = await timed(async () => {
    await application.DBOS.launch();
    await seen;
    await settled(application, url, by);
  });
  return { elapsedMs };
}

async function cost(application: Application, { by, messages, url }: CostCommand) {
  const { DBOS, query } = application;
  const counter = await ServerCounter.connect(url);
  const measure = async (body: () => Promise<unknown>) => {
    const [lsn, statements] = [await query('SELECT pg_current_wal_insert_lsn()'), await counter.statements()];
    await body();
    const walBytes = Number(await query(`SELECT pg_current_wal_insert_lsn() - '${String(lsn)}'::pg_lsn`));
    return { walBytes: walBytes / messages, statements: ((await counter.statements()) - statements) / messages };
  };
  await query('CHECKPOINT');
  let published: unknown;
  await publishing(url, async ({ source, outbox }) => {
    published = await measure(async () => {
      for (let n = 0; n < messages; n += 1) {
        await source.runTransaction(() => outbox.publish(TOPIC, BODY), { name: 'publish' });
      }
    });
  });
  const seen = consume(application, by, messages);
  const consuming = await measure(async () => {
    await DBOS.launch();
    await seen;
    await settled(application, url, by);
  });
  await counter.close();
  return { publishing: published, consuming };
}

async function latency({ DBOS, source, outbox }: Application, { samples }: LatencyCommand) {
  let started: (at: number) => void = () => {};
  outbox.on(TOPIC, () => started(performance.now()));
  await DBOS.launch();
  const waits: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    await pause(10 + 20 * Math.random());
    const handled = new Promise<number>((resolve) => (started = resolve));
    const calledAt = performance.now();
    await source.runTransaction(() => outbox.publish(TOPIC, BODY), { name: 'publish' });
    waits.push((await handled) - calledAt);
  }
  const counted = waits.slice(samples / 10).sort((a, b) => a - b);
  return { median: median(counted), p95: counted[Math.floor(counted.length * 0.95)] };
}

/** The table is not analysed, as after a sudden backlog. */
async function fetch({ DBOS, source, query }: Application, { pending, rounds, url }: FetchCommand) {
  await DBOS.launch();
  const columns = 'INSERT INTO outbox (queue, payload, headers, message_id)';
  await query(
    url.startsWith('sqlite')
      ? `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${pending})
         ${columns} SELECT '${TOPIC}', x'31', '{}', 'm' || n FROM n`
      : `${columns} SELECT '${TOPIC}', '1', '{}', gen_random_uuid() FROM generate_series(1, ${pending})`,
  );
  const database = new OutboxDatabase(source);
  const pick = { table: TABLE, stateTable: undefined, topic: TOPIC, queue: TOPIC, max: 100, leaseMs: 60_000 };
  const elapsed: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const undo = new Error('undo');
    await database
      .transact(async (tx) => {
        elapsed.push(await timed(() => tx.run(claim({ ...pick, isOrdered: false }, crypto.randomUUID()))));
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
  }
  return { elapsedMs: median(elapsed.slice(rounds / 5)) };
}

async function relay(application: Application, { broker, port, messages, url }: RelayCommand) {
  const { DBOS, outbox, query } = application;
  await fill(url, messages);
  const place = await openTarget(broker, port, TOPIC);
  outbox.relay(TOPIC, place.target, { batch: BATCH });
  const elapsedMs = await timed(async () => {
    await DBOS.launch();
    while (Number(await query('SELECT COUNT(*) FROM (SELECT 1 FROM outbox LIMIT 1) AS o')) > 0) await pause(5);
  });
  await DBOS.shutdown();
  await place.close();
  return { elapsedMs };
}
