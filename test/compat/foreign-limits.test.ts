// Queues with limits that a real DBOS worker and ours serve together.
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { until } from '../rig/manual-clock.js';
import { onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { createNotes, isInstalled, startWorker } from './foreign.js';

const WORKFLOWS = 120;

interface Scene {
  readonly notes: pg.Pool;
  readonly run: (queue: object, versions: readonly string[]) => Promise<void>;
}

/** Two workers of DBOS and one of ours, on one queue. */
async function setup(dialect: TestDialect, { ours, theirs }: { ours: string; theirs: string }): Promise<Scene> {
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: ours, executorID: 'ours' });
  const notes = await createNotes(url);
  DBOS.registerWorkflow(
    async (ms: number) => {
      await DBOS.runStep(
        async () => {
          const begun = await notes.query<{ id: number }>(
            `INSERT INTO spans (kind, begun) VALUES ('everstep', clock_timestamp()) RETURNING id`,
          );
          await new Promise((resolve) => setTimeout(resolve, ms));
          await notes.query(`UPDATE spans SET ended = clock_timestamp() WHERE id = $1`, [begun.rows[0]?.id]);
        },
        { name: 'span' },
      );
    },
    { name: 'span' },
  );
  await DBOS.launch();
  const run = async (queue: object, versions: readonly string[]): Promise<void> => {
    await DBOS.registerQueue('q', { minPollingIntervalMs: 20, ...queue });
    await Promise.all(
      ['one', 'two'].map((executorID) => startWorker('dbos-5', url, { applicationVersion: theirs, executorID })),
    );
    do {
      for (let i = 0; i < WORKFLOWS; i += 1) {
        await notes.query(
          `SELECT dbos.enqueue_workflow('span', 'q', ARRAY['25'::JSON], class_name => '', app_version => $1)`,
          [versions[i % versions.length]],
        );
      }
      await until(async () => {
        const { rows } = await notes.query(
          `SELECT 1 FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') LIMIT 1`,
        );
        return rows.length === 0;
      });
    } while (!(await haveBothRun(notes)));
  };
  return { notes, run };
}

/** Whether workers of both kinds have run a workflow. */
async function haveBothRun(notes: pg.Pool): Promise<boolean> {
  const { rows } = await notes.query('SELECT DISTINCT kind FROM spans');
  return rows.length === 2;
}

/** The most spans that were open at one time. */
async function countMost(notes: pg.Pool): Promise<number> {
  const { rows } = await notes.query<{ most: number }>(`
    SELECT MAX(n)::INT AS most FROM (
      SELECT (SELECT COUNT(*) FROM spans AS o WHERE o.begun <= s.begun AND o.ended > s.begun) AS n FROM spans AS s
    ) AS counted`);
  return rows[0]?.most ?? 0;
}

describe.skipIf(!isInstalled)('a queue that DBOS and Everstep serve', () => {
  onlyOn('postgres', (dialect) => {
    test.each([
      ['of one version', { ours: 'v1', theirs: 'v1' }, ['v1']],
      ['of two versions', { ours: 'v1', theirs: 'd1' }, ['v1', 'd1']],
    ] as const)('runs no more workflows %s at once than its concurrency', async (_, kinds, versions) => {
      const { notes, run } = await setup(dialect, kinds);

      await run({ concurrency: 2, workerConcurrency: 1 }, versions);

      expect(await countMost(notes)).toBeLessThanOrEqual(2);
    });

    test('starts no more workflows in a period than its rate limit', async () => {
      const { notes, run } = await setup(dialect, { ours: 'v1', theirs: 'v1' });

      await run({ rateLimit: { limitPerPeriod: 10, periodSec: 0.5 } }, ['v1']);

      const { rows } = await notes.query<{ most: number }>(`
        SELECT MAX(n)::INT AS most FROM (
          SELECT (SELECT COUNT(*) FROM dbos.workflow_status AS o
            WHERE o.started_at_epoch_ms > s.started_at_epoch_ms - 500 AND o.started_at_epoch_ms <= s.started_at_epoch_ms) AS n
          FROM dbos.workflow_status AS s) AS starts`);
      expect(rows[0]?.most).toBeLessThanOrEqual(10);
    });
  });
});
