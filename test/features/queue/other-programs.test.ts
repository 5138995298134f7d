// Queues with limits that an engine serves together with another program, which polls. The program is scripted: it sends the
// statements by which DBOS claims.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { QueueParameters } from '../../../src/features/queue/queue.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';

const POLL_MS = 10;
const RUN_MS = 15;
/** How many workflows wait for each side, and how many starts are looked at. */
const BACKLOG = 100;
const LOOKED_AT = 100;

interface TheirLimits {
  readonly concurrency?: number;
  readonly partition?: string;
  readonly rate?: { readonly max: number; readonly periodMs: number };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Claims and runs workflows of version `v2` until the test ends. */
async function serve(url: string, { concurrency, partition, rate }: TheirLimits): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'some worker' });
  const ending = new AbortController();
  await pool.query(
    `INSERT INTO dbos.application_versions (version_id, version_name, application_name) VALUES ('2', 'v2', 'test')`,
  );
  const within = partition === undefined ? '' : `AND queue_partition_key = '${partition}'`;
  const count = async (client: pg.ClientBase, condition: string) => {
    const { rows } = await client.query<{ n: number }>(
      `SELECT COUNT(*)::INT AS n FROM dbos.workflow_status WHERE queue_name = 'q' ${within} AND ${condition}`,
    );
    return rows[0]?.n ?? 0;
  };
  const claim = async (client: pg.ClientBase): Promise<string[]> => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    let room = Infinity;
    if (rate) {
      const now = `(EXTRACT(epoch FROM now()) * 1000)::BIGINT`;
      const recent = `rate_limited AND status <> 'ENQUEUED' AND started_at_epoch_ms > ${now} - ${rate.periodMs}`;
      room = Math.min(room, rate.max - (await count(client, recent)));
    }
    if (concurrency !== undefined) room = Math.min(room, concurrency - (await count(client, `status = 'PENDING'`)));
    if (room <= 0) return [];
    const { rows } = await client.query<{ id: string }>(
      `SELECT workflow_uuid AS id FROM dbos.workflow_status
       WHERE queue_name = 'q' ${within} AND status = 'ENQUEUED' AND application_version = 'v2'
       ORDER BY priority ASC, created_at ASC LIMIT $1 FOR UPDATE NOWAIT`,
      [room],
    );
    const ids = rows.map(({ id }) => id);
    await client.query(
      `UPDATE dbos.workflow_status
       SET status = 'PENDING', owner_xid = gen_random_uuid()::TEXT, executor_id = 'theirs', rate_limited = $2,
         started_at_epoch_ms = (EXTRACT(epoch FROM now()) * 1000)::BIGINT
       WHERE workflow_uuid = ANY ($1) AND status = 'ENQUEUED'`,
      [ids, rate !== undefined],
    );
    return ids;
  };
  const run = async (id: string): Promise<void> => {
    await pause(RUN_MS);
    await pool.query(`UPDATE dbos.workflow_status SET status = 'SUCCESS' WHERE workflow_uuid = $1`, [id]);
  };
  const poll = async (): Promise<void> => {
    const client = await pool.connect();
    const runs: Promise<void>[] = [];
    while (!ending.signal.aborted) {
      try {
        const ids = await claim(client);
        await client.query('COMMIT');
        runs.push(...ids.map(run));
      } catch (error) {
        await client.query('ROLLBACK');
        // It tries again, as after a clash with another worker of its own.
        if (!['40001', '55P03'].includes(String((error as { code?: string }).code))) throw error;
      }
      await pause(POLL_MS);
    }
    client.release();
    await Promise.all(runs);
  };
  const served = poll();
  onTestFinished(async () => {
    ending.abort();
    await served;
    await pool.end();
  });
}

/** An engine and another program on a queue, with a backlog for each. Looks at what runs until enough has started. */
async function race(dialect: TestDialect, limits: QueueParameters, theirs: TheirLimits) {
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', executorID: 'ours' });
  DBOS.registerWorkflow(() => pause(RUN_MS), { name: 'work' });
  await DBOS.launch();
  await DBOS.registerQueue('q', limits);
  const watcher = new pg.Client({ connectionString: url });
  await watcher.connect();
  onTestFinished(() => watcher.end());
  await serve(url, theirs);
  await watcher.query(
    `SELECT dbos.enqueue_workflow('work', 'q', app_version => v.name, queue_partition_key => $2)
     FROM generate_series(1, $1) AS i, unnest(ARRAY['v1', 'v2']) AS v(name)`,
    [BACKLOG, theirs.partition ?? null],
  );
  let most = 0;
  await until(async () => {
    const { rows } = await watcher.query<{ running: number; started: number }>(`
      SELECT COUNT(*) FILTER (WHERE status = 'PENDING')::INT AS running, COUNT(started_at_epoch_ms)::INT AS started
      FROM dbos.workflow_status WHERE queue_name = 'q'`);
    most = Math.max(most, rows[0]?.running ?? 0);
    return (rows[0]?.started ?? 0) >= LOOKED_AT;
  });
  const { rows } = await watcher.query<{ version: string; at: string }>(
    `SELECT application_version AS version, started_at_epoch_ms AS at FROM dbos.workflow_status
     WHERE started_at_epoch_ms IS NOT NULL ORDER BY started_at_epoch_ms LIMIT $1`,
    [LOOKED_AT],
  );
  const starts = rows.map(({ version, at }) => ({ isOurs: version === 'v1', at: Number(at) }));
  return { most, starts };
}

type Starts = readonly { readonly isOurs: boolean; readonly at: number }[];

/** The part of one side. */
const shareOf = (starts: Starts, isOurs: boolean): number =>
  starts.filter((start) => start.isOurs === isOurs).length / starts.length;

/** The longest time for which one side started nothing while the other did. */
function longestWait(starts: Starts): number {
  let longest = 0;
  for (const side of [true, false]) {
    const times = starts.filter(({ isOurs }) => isOurs === side).map(({ at }) => at);
    const edges = [starts[0]?.at ?? 0, ...times, starts.at(-1)?.at ?? 0];
    for (let i = 1; i < edges.length; i += 1) longest = Math.max(longest, (edges[i] ?? 0) - (edges[i - 1] ?? 0));
  }
  return longest;
}

function mostWithin(starts: Starts, periodMs: number): number {
  return Math.max(...starts.map(({ at }) => starts.filter((o) => o.at > at - periodMs && o.at <= at).length));
}

describe('an engine and another program that polls', () => {
  onlyOn('postgres', (dialect) => {
    test.each([1, 2, 10])('share %i slots, and keep to them', async (globalConcurrency) => {
      const limits = { globalConcurrency, minPollingIntervalMs: POLL_MS };

      const { most, starts } = await race(dialect, limits, { concurrency: globalConcurrency });

      expect(most).toBeLessThanOrEqual(globalConcurrency);
      for (const isOurs of [true, false]) expect(shareOf(starts, isOurs)).toBeGreaterThanOrEqual(0.3);
      expect(longestWait(starts)).toBeLessThan(5000);
    });

    test('share the slot of a partition, and keep to it', async () => {
      const limits = { partitionQueue: true, partitionConcurrency: 1, minPollingIntervalMs: POLL_MS };

      const { most, starts } = await race(dialect, limits, { concurrency: 1, partition: 'p' });

      expect(most).toBe(1);
      // Nobody counts the starts of a partition, so the slot is left for a random time.
      for (const isOurs of [true, false]) expect(shareOf(starts, isOurs)).toBeGreaterThanOrEqual(0.15);
      expect(longestWait(starts)).toBeLessThan(5000);
    });

    test('share a rate, and keep to it', async () => {
      const rateLimit = { limitPerPeriod: 10, periodSec: 0.3 };

      const { starts } = await race(
        dialect,
        { rateLimit, minPollingIntervalMs: POLL_MS },
        { rate: { max: 10, periodMs: 300 } },
      );

      expect(mostWithin(starts, 300)).toBeLessThanOrEqual(10);
      for (const isOurs of [true, false]) expect(shareOf(starts, isOurs)).toBeGreaterThanOrEqual(0.3);
      expect(longestWait(starts)).toBeLessThan(5000);
    });
  });
});
