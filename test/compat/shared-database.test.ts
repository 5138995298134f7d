// One database under both libraries at once: a worker and a client of DBOS 5.3.0, a worker and a client of ours, each a process
// that is killed at random. Nothing is lost, nothing is repeated after its checkpoint, and none takes what it cannot run.
// SHARED_SECONDS makes it longer, CRASH_SEED another one.
import { describe, expect, onTestFinished, test } from 'vitest';
import { type RandomSource, randomSource } from '../crash/random.js';
import { wantsDialect } from '../rig/dialects.js';
import { createSharedDatabase, launchPeer, type Peer, type SharedDatabase, startPeer } from './peers.js';

const SECONDS = Number(process.env['SHARED_SECONDS'] ?? 25);
const SETTLE_MS = 240_000;
/** A slow machine is given longer. */
const STEPS_MIN = 100;
const SEED = 20_261_116;
const KINDS = ['dbos-5', 'everstep'] as const;
type Kind = (typeof KINDS)[number];

const QUEUES = [
  ['both', {}],
  ['dbos-5', {}],
  ['everstep', {}],
] as const;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A process that is started again whenever it was killed. */
interface Station {
  readonly kind: Kind;
  readonly isWorker: boolean;
  peer: Peer;
}

interface Started {
  readonly id: string;
  readonly workflow: string;
}

class Campaign {
  readonly accepted: Started[] = [];
  /** When each checkpoint was first seen in the database, by its clock. */
  readonly durableAt = new Map<string, number>();
  readonly #shared: SharedDatabase;
  readonly #random: RandomSource;
  readonly #stations: Station[] = [];
  #number = 0;
  kills = 0;
  isOver = false;

  constructor(shared: SharedDatabase, random: RandomSource) {
    this.#shared = shared;
    this.#random = random;
  }

  async start(): Promise<void> {
    for (const kind of KINDS) {
      for (const isWorker of [true, false]) {
        this.#stations.push({ kind, isWorker, peer: await this.#begin(kind, isWorker) });
      }
    }
  }

  #begin(kind: Kind, isWorker: boolean): Promise<Peer> {
    const { url } = this.#shared;
    if (!isWorker) return startPeer({ kind, url });
    // DBOS claims whatever is on a queue that it serves. We claim what is registered.
    const listenQueues = kind === 'dbos-5' ? ['both', 'dbos-5'] : undefined;
    const config = { applicationVersion: 'v', executorID: kind, listenQueues };
    return launchPeer({ kind, url, queues: QUEUES, config });
  }

  /** Starts workflows through a random process until the end. What was not accepted may exist or not. */
  async load(): Promise<void> {
    while (!this.isOver) {
      await pause(20 + this.#random.below(60));
      const station = this.#pick(this.#stations);
      await this.#startOne(station).catch(() => {});
    }
  }

  async #startOne({ isWorker, peer }: Station): Promise<void> {
    this.#number += 1;
    const target = this.#pick(KINDS);
    const [workflow = '', queue = ''] = this.#pick([
      ['steps', 'both'],
      ['steps', target],
      ['mixed', 'both'],
      [`only-${target}`, target],
    ]);
    const id = `${workflow}-${this.#number}`;
    const args = workflow === 'mixed' ? ['hello'] : [3];
    const isDirect = isWorker && workflow === 'steps' && this.#random.below(2) === 0;
    if (isDirect) await peer.perform('start', { workflow, args, workflowID: id });
    else {
      const client = { workflowName: workflow, queueName: queue, workflowID: id, appVersion: 'v' };
      await peer.perform('call', { on: 'client', method: 'enqueue', args: [client, ...args] });
    }
    this.accepted.push({ id, workflow });
    if (workflow === 'mixed') await this.#send(peer, id);
  }

  async #send(peer: Peer, id: string): Promise<void> {
    await peer.perform('call', { on: 'client', method: 'send', args: [id, 'ping', 'topic', `key-${id}`] });
  }

  /** Kills a process every now and then, and starts it again. */
  async strikeUntil(end: number): Promise<void> {
    while (Date.now() < end || this.durableAt.size <= STEPS_MIN) {
      await pause(300 + this.#random.below(1200));
      const station = this.#pick(this.#stations);
      await station.peer.kill();
      this.kills += 1;
      await pause(this.#random.below(800));
      station.peer = await this.#begin(station.kind, station.isWorker);
    }
  }

  async observe(): Promise<void> {
    while (!this.isOver) {
      const rows = await this.#shared.query<{ key: string; now: string }>(`
        SELECT workflow_uuid || ' ' || function_name AS key, EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS now
        FROM dbos.operation_outputs`);
      for (const { key, now } of rows) if (!this.durableAt.has(key)) this.durableAt.set(key, Number(now));
      await pause(250);
    }
  }

  async settle(): Promise<void> {
    const giveUpAt = Date.now() + SETTLE_MS;
    const { query } = this.#shared;
    const [client] = this.#stations.filter(({ isWorker }) => !isWorker);
    for (;;) {
      const left = await query<{ id: string; name: string }>(
        `SELECT workflow_uuid AS id, name FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')`,
      );
      if (left.length === 0) return;
      if (Date.now() > giveUpAt) throw new Error(`${left.length} workflows do not end: ${JSON.stringify(left)}`);
      // The sender may have been killed. A second message is not received.
      for (const { id, name } of left) if (name === 'mixed' && client) await this.#send(client.peer, id);
      await pause(500);
    }
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)] as T;
  }
}

async function expectAllEnded({ query }: SharedDatabase, accepted: readonly Started[]): Promise<void> {
  const rows = await query<{ id: string; status: string; error: string | null; names: string[] | null }>(`
    SELECT w.workflow_uuid AS id, w.status, COALESCE(w.error, o.error) AS error,
      (SELECT array_agg(s.function_name ORDER BY s.function_id)
       FROM dbos.operation_outputs AS s WHERE s.workflow_uuid = w.workflow_uuid) AS names
    FROM dbos.workflow_status AS w LEFT JOIN dbos.workflow_output AS o USING (workflow_uuid)`);
  expect(rows.filter(({ status }) => status !== 'SUCCESS')).toEqual([]);
  const ended = new Map(rows.map((row) => [row.id, row.names ?? []]));
  expect(accepted.filter(({ id }) => !ended.has(id))).toEqual([]);
  for (const { id, workflow } of accepted) {
    const wanted = workflow === 'mixed' ? ['before', 'after'] : ['s0', 's1', 's2'];
    expect([id, ...(ended.get(id) ?? []).filter((name) => wanted.includes(name))]).toEqual([id, ...wanted]);
  }
}

interface Effect {
  readonly workflow: string;
  readonly step: string;
  readonly kind: Kind;
  readonly at: number;
}

describe.skipIf(!wantsDialect('postgres'))('a database under both libraries', () => {
  test(
    'random kills lose nothing, repeat nothing after its checkpoint, and lead to no theft',
    { timeout: SECONDS * 1000 + SETTLE_MS + 60_000 },
    async () => {
      const shared = await createSharedDatabase();
      const random = randomSource(SEED);
      const campaign = new Campaign(shared, random);
      onTestFinished(() => void (campaign.isOver = true));
      await campaign.start();

      const background = Promise.all([campaign.load(), campaign.observe()]);
      await campaign.strikeUntil(Date.now() + SECONDS * 1000);
      campaign.isOver = true;
      await background;
      await campaign.settle();

      await expectAllEnded(shared, campaign.accepted);
      const effects = await shared.query<Effect>(
        'SELECT workflow, step, kind, (EXTRACT(EPOCH FROM at) * 1000)::float8 AS at FROM public.effects',
      );
      const repeated = effects.filter(({ workflow, step, at }) => {
        return at > (campaign.durableAt.get(`${workflow} ${step}`) ?? Infinity);
      });
      expect(repeated, `CRASH_SEED=${random.seed}`).toEqual([]);
      const stolen = effects.filter(({ workflow, kind }) => workflow.startsWith('only-') && !workflow.includes(kind));
      expect(stolen).toEqual([]);
      expect(new Set(effects.map(({ kind }) => kind))).toEqual(new Set(KINDS));
      console.log(`shared database: ${campaign.kills} kills, ${campaign.accepted.length} workflows`);
    },
  );
});
