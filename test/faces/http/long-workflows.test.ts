// Workflows with thousands of steps and values are served in pages.
import { describe, expect, test } from 'vitest';
import { internals } from '../../../src/kernel/base/internals.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { forEachDialect } from '../../rig/dialects.js';
import { type Call, setup } from './scene.js';

const STEPS = 5000;
const VALUES = 10_000;
/** Thousands of rows take a while on a busy machine. */
const LONG = { timeout: 180_000 };

function numbers({ dialect }: Database, count: number) {
  return dialect.name === 'postgres'
    ? sql`generate_series(0, CAST(${count - 1} AS INTEGER)) AS g(n)`
    : sql`(WITH RECURSIVE g(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM g WHERE n < ${count - 1}) SELECT n FROM g) AS g`;
}

async function addSteps(database: Database, workflowID: string): Promise<void> {
  await database.run(sql`
    INSERT INTO ${table('operation_outputs')}
      (workflow_uuid, function_id, function_name, output, started_at_epoch_ms, completed_at_epoch_ms)
    SELECT ${workflowID}, g.n + 100, 'step', '{"json":1}', 1700000000000 + g.n, 1700000000001 + g.n
    FROM ${numbers(database, STEPS)}`);
}

async function addValues(database: Database, workflowID: string, key: string): Promise<void> {
  await database.run(sql`
    INSERT INTO ${table('streams')} (workflow_uuid, key, value, "offset", serialization)
    SELECT ${workflowID}, ${key}, CAST(g.n AS TEXT), g.n, 'portable_json'
    FROM ${numbers(database, VALUES)}`);
}

type Cursor = string | number | null | undefined;

/** All pages of a route: `after` of each is what the one before says. */
async function allPages<Page>(call: Call, path: string, afterOf: (page: Page) => Cursor): Promise<Page[]> {
  const pages: Page[] = [];
  for (let after: Cursor = ''; after !== undefined && after !== null;) {
    const suffix = after === '' ? '' : `&after=${encodeURIComponent(String(after))}`;
    const { status, body } = await call('GET', `/api/v1/workflows/${path}${suffix}`);
    expect(status).toBe(200);
    pages.push(body as Page);
    after = afterOf(body as Page);
  }
  return pages;
}

async function setupLong(dialect: Parameters<typeof setup>[0]) {
  const scene = await setup(dialect);
  const workflowID = await scene.run('add', { args: [1, 2] });
  return { ...scene, workflowID, database: scene.DBOS[internals].operator.database };
}

describe('a long workflow', () => {
  forEachDialect((dialect) => {
    test('has its streams listed, and their values page by page', LONG, async () => {
      const { call, database, workflowID } = await setupLong(dialect);
      const key = 'a key/with ? & ..';
      await addValues(database, workflowID, key);
      await addValues(database, workflowID, 'other');
      await database.run(sql`
        INSERT INTO ${table('streams')} (workflow_uuid, key, value, "offset", serialization)
        VALUES (${workflowID}, ${key}, '"__DBOS_STREAM_CLOSED__"', ${VALUES}, 'portable_json')`);
      interface Page {
        values: { offset: number; value: { json: number } }[];
        nextAfter: number | null;
      }

      const { body } = await call('GET', `/api/v1/workflows/${workflowID}/streams`);
      const query = `stream-values?key=${encodeURIComponent(key)}`;
      const pages = await allPages<Page>(call, `${workflowID}/${query}`, ({ nextAfter }) => nextAfter);
      const small = await call('GET', `/api/v1/workflows/${workflowID}/${query}&limit=2&after=9997`);

      expect(body.streams).toEqual([
        { key, length: VALUES, isClosed: true },
        { key: 'other', length: VALUES, isClosed: false },
      ]);
      expect(pages.map(({ values }) => values.length)).toEqual(Array.from({ length: 10 }, () => 1000));
      const values = pages.flatMap((page) => page.values);
      expect(values.every(({ offset, value }, index) => offset === index && value.json === index)).toBe(true);
      expect(small.body).toMatchObject({ values: [{ offset: 9998 }, { offset: 9999 }], nextAfter: null });
    });

    test('has its steps, timeline and history page by page', LONG, async () => {
      const { call, database, workflowID } = await setupLong(dialect);
      await addSteps(database, workflowID);

      const steps: { functionID: number }[] = [];
      for (let offset = 0; offset <= STEPS; offset += 1000) {
        const { body } = await call('GET', `/api/v1/workflows/${workflowID}/steps?limit=1000&offset=${offset}`);
        steps.push(...(body.steps as { functionID: number }[]));
      }
      const timeline = await allPages<{ rows: { step: number }[]; nextAfter: number | null }>(
        call,
        `${workflowID}/timeline?limit=1000`,
        ({ nextAfter }) => nextAfter,
      );
      const history = await allPages<{ events: { cursor: string; step?: number }[] }>(
        call,
        `${workflowID}/history?limit=1000`,
        ({ events }) => (events.length === 1000 ? events.at(-1)?.cursor : undefined),
      );

      const expected = Array.from({ length: STEPS }, (_, index) => index + 100);
      const added = (numbers: readonly (number | undefined)[]) => [
        ...new Set(numbers.filter((number): number is number => number !== undefined && number >= 100)),
      ];
      expect(added(steps.map(({ functionID }) => functionID))).toEqual(expected);
      expect(added(timeline.flatMap(({ rows }) => rows.map(({ step }) => step)))).toEqual(expected);
      expect(added(history.flatMap(({ events }) => events.map(({ step }) => step)))).toEqual(expected);
      expect(timeline.every(({ rows }) => rows.length <= 1000)).toBe(true);
    });

    test('that is delayed is due now with a delay of 0', async () => {
      const { call, enqueue, DBOS } = await setup(dialect);
      const workflowID = await enqueue('add', { args: [1, 2], delaySeconds: 100_000 });

      const delayed = await call('PUT', `/api/v1/workflows/${workflowID}/delay`, { delaySeconds: 0 });
      const unclear = await call('PUT', `/api/v1/workflows/${workflowID}/delay`, {
        delaySeconds: 0,
        delayUntilEpochMS: 1,
      });

      expect(delayed).toMatchObject({ status: 200, body: { changed: true } });
      expect(unclear.status).toBe(400);
      expect(await DBOS.retrieveWorkflow(workflowID).getResult()).toBe(3);
    });
  });
});
