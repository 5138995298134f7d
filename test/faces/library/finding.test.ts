// Finding workflows through `DBOS`, in workflow code and outside.
import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { OPTIONAL_INDEXES } from '../../../src/features/listing/index-fields.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

async function setup(dialect: TestDialect, register: (DBOS: DBOSInstance) => void = () => {}) {
  const { DBOS } = await createEngine(dialect, { applicationVersion: 'v1' });
  const work = DBOS.registerWorkflow(
    async (n: number) => {
      if (n < 0) throw new RangeError('negative');
      return new Map([['n', n]]);
    },
    { name: 'work' },
  );
  register(DBOS);
  await DBOS.launch();
  return { DBOS, work };
}

describe('DBOS', () => {
  forEachDialect((dialect) => {
    test('finds, counts and changes workflows', async () => {
      const { DBOS, work } = await setup(dialect);
      for (const n of [1, 2, 3]) await DBOS.withNextWorkflowID(`w-${n}`, () => work(n));
      await DBOS.withNextWorkflowID('w-bad', () => work(-1)).catch(() => {});

      await DBOS.setWorkflowAttributes('w-1', { a: 1 });
      await DBOS.updateWorkflowAttributes('w-1', { b: [2] });

      const [first] = await DBOS.listWorkflows({ attributes: { b: [2] } });
      expect(first).toMatchObject({ workflowID: 'w-1', output: new Map([['n', 1]]), attributes: { a: 1, b: [2] } });
      expect(await DBOS.listWorkflows({ status: 'ERROR' })).toMatchObject([{ workflowID: 'w-bad', input: [-1] }]);
      expect(await DBOS.listQueuedWorkflows()).toEqual([]);
      expect(await DBOS.countWorkflows({ workflowName: 'work' })).toBe(4);
      const page = await DBOS.listWorkflowPage({ limit: 3 });
      expect(page.workflows).toHaveLength(3);
      expect(await DBOS.listWorkflowPage({ cursor: page.nextCursor ?? '' })).toMatchObject({
        workflows: [{ workflowID: 'w-bad' }],
        nextCursor: null,
      });
      expect(await DBOS.getWorkflowAggregates({ groupByStatus: true, selectCount: true })).toMatchObject([
        { group: { status: 'ERROR' }, count: 1 },
        { group: { status: 'SUCCESS' }, count: 3 },
      ]);
      expect(await DBOS.getStepAggregates({ groupByStatus: true, selectCount: true })).toEqual([]);
      expect(await DBOS.getMetrics('2000-01-01', '2100-01-01')).toMatchObject([{ metricName: 'work', value: 4 }]);
      expect((await DBOS.listOptionalIndexes()).map(({ index }) => index)).toEqual(Object.keys(OPTIONAL_INDEXES));
    });

    test('records what it finds in workflow code, with values as they are', async () => {
      const seen: unknown[][] = [];
      const { DBOS, work } = await setup(dialect, (instance) => {
        instance.registerWorkflow(
          async () => {
            const found: unknown[] = [
              await instance.listWorkflows({ workflow_id_prefix: 'w-' }),
              await instance.listQueuedWorkflows(),
              await instance.listWorkflowPage({ workflow_id_prefix: 'w-', limit: 1 }),
              await instance.listWorkflowSteps('none'),
              await instance.countWorkflows({ workflow_id_prefix: 'w-' }),
            ];
            for await (const one of instance.iterateWorkflows({ workflow_id_prefix: 'w-' })) found.push(one.workflowID);
            await instance.updateWorkflowAttributes('w-1', { seen: true });
            seen.push(found);
            await instance.cancelWorkflow('looking');
            await instance.sleep(1);
          },
          { name: 'looking' },
        );
      });
      await DBOS.withNextWorkflowID('w-1', () => work(1));
      await DBOS.withNextWorkflowID('w-2', () => work(-2)).catch(() => {});

      const looking = await DBOS.enqueueWorkflowWithOptions({
        workflowName: 'looking',
        queueName: '_dbos_internal_queue',
        workflowID: 'looking',
      });
      await expect(looking.getResult()).rejects.toThrow();
      await DBOS.withNextWorkflowID('w-3', () => work(3));
      await (await DBOS.resumeWorkflow('looking')).getResult();

      expect(seen).toHaveLength(2);
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[0]?.[0]).toMatchObject([{ output: new Map([['n', 1]]) }, { error: { message: 'negative' } }]);
      expect(seen[0]?.slice(3)).toEqual([undefined, 2, 'w-1', 'w-2']);
      expect((await DBOS.listWorkflowSteps('looking'))?.slice(0, 7).map(({ name }) => name)).toEqual([
        'DBOS.listWorkflows',
        'DBOS.listQueuedWorkflows',
        'DBOS.listWorkflowPage',
        'DBOS.listWorkflowSteps',
        'DBOS.countWorkflows',
        'DBOS.listWorkflowPage',
        'DBOS.updateWorkflowAttributes',
      ]);
    });

    test('exports and imports outside of workflow code', async () => {
      const { DBOS, work } = await setup(dialect, (instance) => {
        instance.registerWorkflow(async () => instance.exportWorkflows().next(), { name: 'exporting' });
        instance.registerWorkflow(async () => instance.importWorkflows([]), { name: 'importing' });
      });
      await DBOS.withNextWorkflowID('w-1', () => work(1));

      const again = DBOS.importWorkflows(DBOS.exportWorkflows({ workflowIDs: ['w-1'] }), { onConflict: 'skip' });
      expect(await again).toEqual({ imported: 0, skipped: 1 });

      for (const workflowName of ['exporting', 'importing']) {
        const options = { workflowName, queueName: '_dbos_internal_queue' };
        const handle = await DBOS.enqueueWorkflowWithOptions(options);
        await expect(handle.getResult()).rejects.toThrow(/in workflow code. Call it in a step/);
      }
    });
  });
});
