import { describe, expect, test } from 'vitest';
import {
  iterateWorkflows,
  listWorkflowPage,
  listWorkflows,
  type WorkflowPageInput,
} from '../../../src/features/listing/listing.js';
import type { Operator } from '../../../src/operator/operator.js';
import { oneOf, sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { insert, workflow } from './rows.js';

const name = (n: number): string => `w-${String(n).padStart(3, '0')}`;
const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** Forty workflows, ten of them in each millisecond. */
async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  await insert(
    database,
    range(1, 40).map((n) => workflow(name(n), { createdAt: 1000 + Math.floor((n - 1) / 10), queueName: `q${n % 3}` })),
  );
  return { database, operator: operatorOn(database) };
}

/** All pages from a cursor on. `between` is called after each page. */
async function pages(
  operator: Operator,
  input: WorkflowPageInput,
  between: (page: number) => Promise<unknown> = async () => {},
): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await listWorkflowPage(operator, { ...input, cursor });
    found.push(page.workflows.map(({ workflowID }) => workflowID));
    cursor = page.nextCursor ?? undefined;
    await between(found.length);
  } while (cursor !== undefined);
  return found;
}

describe('pages of workflows', () => {
  forEachDialect((dialect) => {
    test('hold each workflow once, in order, whatever the size of a page and however many have one time', async () => {
      const { operator } = await setup(dialect);
      const all = range(1, 40).map(name);

      const found: string[][][] = [];
      for (const limit of [1, 7, 10, 40, 41]) found.push(await pages(operator, { limit }));
      const descending = await pages(operator, { limit: 7, sortDesc: true });
      const ofQueues = await pages(operator, { limit: 4, queueName: ['q1', 'q2'] });

      expect(found.map((list) => list.flat())).toEqual(Array(5).fill(all));
      expect(found.map((list) => list.length)).toEqual([40, 6, 4, 1, 1]);
      expect(descending.flat()).toEqual(all.toReversed());
      expect(ofQueues.flat()).toEqual(
        range(1, 40)
          .filter((n) => n % 3 !== 0)
          .map(name),
      );
    });

    test('neither repeat nor hide others when workflows come and go meanwhile', async () => {
      const { database, operator } = await setup(dialect);
      let added = 100;
      const change = async (page: number): Promise<void> => {
        // One at a place that was passed, one at the place that was just reached, one at the end; and two go.
        await insert(database, [
          workflow(`a-${(added += 1)}`, { createdAt: 1000 }),
          workflow(`w-${String(page * 7).padStart(3, '0')}-new`, { createdAt: 1000 + Math.floor((page * 7 - 1) / 10) }),
          workflow(`z-${added}`, { createdAt: 2000 + page }),
        ]);
        const gone = [name(page * 7), name(40 - page)];
        await database.run(sql`DELETE FROM ${table('workflow_status')} WHERE workflow_uuid ${oneOf(gone)}`);
        if (page === 5) await database.run(sql`DELETE FROM ${table('workflow_status')} WHERE created_at >= 2000`);
      };

      const found = (await pages(operator, { limit: 7, endTime: new Date(1999).toISOString() }, change)).flat();

      expect(new Set(found).size).toBe(found.length);
      expect(found).toEqual(found.toSorted());
      const untouched = range(1, 34)
        .filter((n) => n % 7 !== 0)
        .map(name);
      expect(found).toEqual(expect.arrayContaining(untouched));
      expect(found).toEqual(expect.arrayContaining(['w-007-new', 'w-014-new', 'w-021-new']));
    });

    test('a loop passes all of them, up to a limit', async () => {
      const { operator } = await setup(dialect);

      const collect = async (input: WorkflowPageInput): Promise<string[]> => {
        const ids: string[] = [];
        for await (const { workflowID } of iterateWorkflows(operator, input)) ids.push(workflowID);
        return ids;
      };

      expect(await collect({})).toEqual(range(1, 40).map(name));
      expect(await collect({ limit: 12, sortDesc: true })).toEqual(range(29, 40).map(name).toReversed());
      expect(await collect({ limit: 0 })).toEqual([]);
      expect(await collect({ workflowName: 'none' })).toEqual([]);
    });

    test('a cursor that is none, or of the opposite order, is refused', async () => {
      const { operator } = await setup(dialect);
      const { nextCursor } = await listWorkflowPage(operator, { limit: 1 });
      const bad = [
        'x',
        '',
        nextCursor?.slice(1),
        `${nextCursor}'`,
        Buffer.from('[1,"a"]').toString('base64url'),
        Buffer.from('["1","a",false]').toString('base64url'),
        Buffer.from('[1,"a\\u0000",false]').toString('base64url'),
        17,
      ];

      for (const cursor of bad) {
        await expect(listWorkflowPage(operator, { cursor: cursor as string })).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
        });
      }
      await expect(listWorkflowPage(operator, { cursor: nextCursor ?? '', sortDesc: true })).rejects.toThrow(
        /opposite order/,
      );
      await expect(listWorkflowPage(operator, { offset: 1 } as WorkflowPageInput)).rejects.toThrow(/no offset/);
      await expect(listWorkflowPage(operator, { limit: 0 })).rejects.toThrow(/from 1 to 10000/);
      await expect(listWorkflowPage(operator, { limit: 10_001 })).rejects.toThrow(/from 1 to 10000/);
    });

    test('10,000 IDs are looked up at once', async () => {
      const database = await dialect.create();
      const ids = range(1, 10_000).map((n) => `w-${n}`);
      await insert(
        database,
        ids.map((id, index) => workflow(id, { createdAt: 1000 + index, status: index % 2 ? 'ERROR' : 'SUCCESS' })),
      );
      const operator = operatorOn(database);

      const all = await listWorkflows(operator, { workflowIDs: [...ids, 'none'], loadInput: false, loadOutput: false });
      const failed = await listWorkflows(operator, { workflowIDs: ids, status: 'ERROR', limit: 3 });

      expect(all.map(({ workflowID }) => workflowID)).toEqual(ids);
      expect(failed.map(({ workflowID }) => workflowID)).toEqual(['w-2', 'w-4', 'w-6']);
    });
  });
});
