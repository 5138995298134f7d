// Exports and archived copies hold the history, and an import shows it as it was.
import { describe, expect, test } from 'vitest';
import { getHistory, type HistoryEvent, tailHistory } from '../../../src/features/history/history.js';
import { getArchivedWorkflow } from '../../../src/features/retention/archive.js';
import type { Archive } from '../../../src/features/retention/archive-target.js';
import { deleteWorkflows } from '../../../src/features/lifecycle/lifecycle.js';
import type { ExportedWorkflow } from '../../../src/features/transfer/export-format.js';
import { applyRetention } from '../../../src/features/retention/retention-policy.js';
import { exportWorkflows, importWorkflows } from '../../../src/features/transfer/transfer.js';
import type { Operator } from '../../../src/operator/operator.js';
import type { HistoryLevel } from '../../../src/features/history/event.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, postgres, sqlite, type TestDialect, wantsDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { operatorOn } from '../../rig/operators.js';

class MemoryArchive implements Archive {
  readonly #objects = new Map<string, Uint8Array>();

  async write(name: string, content: Uint8Array): Promise<void> {
    this.#objects.set(name, content);
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    return this.#objects.get(name);
  }
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of source) found.push(one);
  return found;
}

/** The history without cursors, whose numbers depend on the database, and with times in one form. */
async function historyOf(operator: Operator, workflowID: string): Promise<Omit<HistoryEvent, 'cursor'>[]> {
  const events = await all(getHistory(operator, workflowID, { payloads: true }));
  return events.map(({ cursor: _, ...event }) => {
    const at = event.details['fire_at'] ?? event.details['fired_at'];
    return {
      ...event,
      details: { ...event.details, ...(typeof at === 'string' && { at: Date.parse(at), ...HIDDEN }) },
    };
  });
}

const HIDDEN = { fire_at: null, fired_at: null };

const IDS = ['order', 'failed', 'cancelled', 'forked'];

const historiesOf = (operator: Operator) => Promise.all(IDS.map((id) => historyOf(operator, id)));

/** The other database, if it is wanted; else a second one of the same kind. */
function other(dialect: TestDialect): TestDialect {
  const twin = dialect.name === 'sqlite' ? postgres : sqlite;
  return wantsDialect(twin.name) ? twin : dialect;
}

/** Workflows with what only the journal knows: a failed attempt, reasons, what a rewind has deleted, a fork. */
async function setup(dialect: TestDialect, history: HistoryLevel) {
  const { DBOS } = await createEngine(dialect, { history, executorID: 'one' });
  let failures = 1;
  const price = DBOS.registerStep(async (item: string) => ({ item, price: 3 }), { name: 'price' });
  const order = DBOS.registerWorkflow(
    async (item: string) => {
      const message = await DBOS.recv<string>('news', 60);
      const found = await price(item);
      await DBOS.sleep(1);
      const flaky = async () => {
        if (failures > 0) throw new Error(`failure ${failures--}`);
        return 'done';
      };
      await DBOS.runStep(flaky, { name: 'flaky', retriesAllowed: true, intervalSeconds: 0.001 });
      return [found, message];
    },
    { name: 'order' },
  );
  const fail = DBOS.registerWorkflow(
    async (item: string) => {
      await price(item);
      throw new RangeError('no stock');
    },
    { name: 'fail' },
  );
  const wait = DBOS.registerWorkflow(async () => DBOS.recv('never', 3600), { name: 'wait' });
  await DBOS.launch();
  const handle = await DBOS.startWorkflow(order, { workflowID: 'order' })('pen');
  await DBOS.send('order', 'hello', 'news');
  await handle.getResult();
  await (await DBOS.rewindWorkflow('order', { startStep: 2, reason: 'again', actor: 'ann' })).getResult();
  await (await DBOS.startWorkflow(fail, { workflowID: 'failed' })('ink')).getResult().catch(() => undefined);
  const waiting = await DBOS.startWorkflow(wait, { workflowID: 'cancelled' })();
  await DBOS.cancelWorkflow('cancelled', { reason: 'out of stock', actor: 'bob' });
  await waiting.getResult().catch(() => undefined);
  await (await DBOS.forkWorkflow('order', 3, { newWorkflowID: 'forked' })).getResult();
  return { DBOS, operator: engineOf(DBOS).runtime };
}

describe('the history of exported workflows', () => {
  forEachDialect((dialect) => {
    for (const level of ['changes', 'full'] as const) {
      test(`is the same in the other database, with ${level}`, async () => {
        const { operator } = await setup(dialect, level);
        const target = operatorOn(await other(dialect).create());

        const exported = await all(exportWorkflows(operator, { workflowIDs: IDS }));
        await importWorkflows(target, exported);

        const [order, , cancelled] = await historiesOf(operator);
        expect(order?.map(({ type }) => type)).toEqual(
          expect.arrayContaining(['ActivityRetryScheduled', 'WorkflowRewound', 'WorkflowForked']),
        );
        expect(cancelled).toContainEqual(expect.objectContaining({ type: 'WorkflowCancelRequested', actor: 'bob' }));
        expect(await historiesOf(target)).toEqual(await historiesOf(operator));
        expect(await all(exportWorkflows(target, { workflowIDs: IDS }))).toEqual(exported);
      });

      test(`is back after a restore from the archive, with ${level}`, async () => {
        const { operator: engine } = await setup(dialect, level);
        const { database, applicationName } = engine;
        const operator = operatorOn(database, { applicationName, archive: new MemoryArchive() });
        await database.run(sql`
          UPDATE ${table('workflow_status')}
          SET created_at = created_at - 86400000, updated_at = updated_at - 86400000, completed_at = completed_at - 86400000`);
        const before = await historiesOf(operator);

        await applyRetention(operator, { completed: '1 hour', failed: '1 hour' }, { restFactor: 0 });
        const archived = await Promise.all(IDS.map((id) => getArchivedWorkflow(operator, id)));

        expect(await historiesOf(operator)).toEqual([[], [], [], []]);
        await importWorkflows(operator, archived as ExportedWorkflow[]);
        expect(await historiesOf(operator)).toEqual(before);
      });
    }

    test('comes with the journal that is followed, and stays append-only', async () => {
      const { operator } = await setup(dialect, 'full');
      const target = operatorOn(await dialect.create());

      await importWorkflows(target, exportWorkflows(operator, { workflowIDs: ['order'] }));

      // On Postgres, events appear when no older transaction of the server is open.
      for await (const event of tailHistory(target, { since: 0 })) {
        if (event.type === 'WorkflowForked') break;
      }
      const { database } = target;
      await expect(database.run(sql`DELETE FROM ${table('journal')}`)).rejects.toThrow('append-only');
    });

    test('is derived if the export has none, and what is not in order is refused', async () => {
      const { operator } = await setup(dialect, 'changes');
      const target = operatorOn(await dialect.create());
      const [exported] = await all(exportWorkflows(operator, { workflowIDs: ['failed'] }));
      const { journal: _, ...older } = exported as ExportedWorkflow;
      const lacking = { ...older, journal: [{ workflow_id: 'failed', at: 1 }] };
      const foreign = { ...older, journal: [{ workflow_id: 'another', at: 1, event_type: 'AttemptLost' }] };

      await expect(importWorkflows(target, [lacking])).rejects.toThrow('journal.event_type is missing');
      await expect(importWorkflows(target, [foreign])).rejects.toThrow('journal has a row of another workflow');
      await importWorkflows(target, [older]);

      expect(await historyOf(target, 'failed')).toEqual(await historyOf(operator, 'failed'));
    });

    test('keeps no characters that a database refuses', async () => {
      const target = operatorOn(await dialect.create());
      const status = { workflow_uuid: 'w', status: 'SUCCESS', name: 'f', created_at: 1, updated_at: 2 };
      const details = { 'a\u0000': 'x\u0000y', b: '\ud800' };
      const journal = [{ workflow_id: 'w', at: 1, event_type: 'AttemptLost', details }];

      await importWorkflows(target, [{ workflow_status: status, journal } as unknown as ExportedWorkflow]);

      const [lost] = await all(getHistory(target, 'w', { types: ['AttemptLost'] }));
      expect(lost?.details).toEqual({ 'a\ufffd': 'x\ufffdy', b: '\ufffd' });
    });

    test('ends with the workflow if it is deleted again', async () => {
      const { operator } = await setup(dialect, 'full');
      const target = operatorOn(await dialect.create());
      await importWorkflows(target, exportWorkflows(operator, { workflowIDs: ['order'] }));

      await deleteWorkflows(target, ['order']);

      expect(await historyOf(target, 'order')).toEqual([]);
    });
  });
});
