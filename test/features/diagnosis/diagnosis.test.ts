import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { diagnose } from '../../../src/features/diagnosis/diagnosis.js';
import type { Operator } from '../../../src/operator/operator.js';
import { pauseQueue } from '../../../src/features/queue/queues.js';
import type { Database } from '../../../src/database/database.js';
import { insertIncarnation } from '../../../src/features/liveness/executors.sql.js';
import { parkWorkflows } from '../../../src/features/parking/parking.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';

const START = Date.parse('2026-01-31T12:00:00Z');

/** A database whose clock the test moves, and an operator with the same clock. */
async function setup(dialect: TestDialect) {
  let now = START;
  const database = await dialect.create({ now: () => now });
  const operator = (fields: Partial<Operator> = {}): Operator =>
    operatorOn(database, { clock: { ...systemClock, now: () => now }, ...fields });
  return { database, operator, pass: (ms: number) => void (now += ms), now: () => now };
}

function enter(database: Database, executorID: string, leaseMs: number): Promise<void> {
  const fields = { applicationName: 'test', applicationVersion: '1', host: 'web-1', pid: 7, metadata: null };
  return insertIncarnation(database, { incarnationID: executorID, executorID, ...fields }, { leaseMs: leaseMs });
}

describe('a diagnosis', () => {
  forEachDialect((dialect) => {
    test('finds nothing in an empty database', async () => {
      const { operator } = await setup(dialect);

      expect(await diagnose(operator())).toEqual({
        clockAheadMs: 0,
        capabilities: dialect.name === 'sqlite' ? [] : expect.arrayContaining([]),
        executors: [],
        queues: [],
        deadLetters: 0,
        oldest: [],
        findings: [],
      });
    });

    test('finds a clock that is off', async () => {
      const { operator, now } = await setup(dialect);

      const { clockAheadMs, findings } = await diagnose(
        operator({ clock: { ...systemClock, now: () => now() - 60_000 } }),
      );

      expect(clockAheadMs).toBe(-60_000);
      expect(findings).toMatchObject([{ kind: 'problem', subject: 'clock' }]);
      expect(findings[0]?.message).toContain('60 s behind');
    });

    test('finds executors that nobody has taken over from', async () => {
      const { database, operator, pass } = await setup(dialect);
      await enter(database, 'live', 60_000);
      await enter(database, 'gone', 1000);
      pass(31_000);

      const { executors, findings } = await diagnose(operator());

      expect(executors).toMatchObject([
        { executorID: 'gone', isLeaseOver: true, leaseUntil: START + 1000 },
        { executorID: 'live', isLeaseOver: false, startedAt: START },
      ]);
      expect(findings).toMatchObject([{ kind: 'problem', subject: 'executor' }]);
      expect(findings[0]?.message).toContain('executor "gone" (process 7 on web-1)');
    });

    test('finds dead letters', async () => {
      const { database, operator } = await setup(dialect);
      await database.run(insertWorkflows([newWorkflow({ status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', owner: null })]));

      const { deadLetters, findings } = await diagnose(operator());

      expect(deadLetters).toBe(1);
      expect(findings).toMatchObject([{ kind: 'problem', subject: 'dead-letters' }]);
    });

    test('finds no fault with a queue that is paused, but mentions it', async () => {
      const { database, operator } = await setup(dialect);
      await database.run(insertWorkflows([newWorkflow({ status: 'ENQUEUED', queueName: 'q' })]));
      await pauseQueue(operator(), 'q');

      const { findings } = await diagnose(operator());

      expect(findings).toMatchObject([{ kind: 'notice', subject: 'queue' }]);
    });

    test('finds workflows that nobody will take, once they have waited for a while', async () => {
      const { database, operator, pass } = await setup(dialect);
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', status: 'ENQUEUED', queueName: 'nowhere' })]));

      const before = await diagnose(operator());
      pass(60_000);
      const after = await diagnose(operator());

      expect(before.oldest).toEqual([]);
      expect(before.findings).toMatchObject([{ subject: 'queue' }]);
      expect(after.oldest).toMatchObject([{ workflowID: 'w', reason: 'queue-not-served' }]);
      expect(after.findings).toMatchObject([{ subject: 'queue' }, { kind: 'problem', subject: 'workflow' }]);
    });

    test('finds a workflow of a dead executor among older ones that are parked', async () => {
      const { database, operator, pass } = await setup(dialect);
      const parked = [1, 2, 3, 4, 5, 6].map((n) => newWorkflow({ workflowID: `parked-${n}`, owner: 'engine.1' }));
      await database.run(insertWorkflows(parked));
      const parks = parked.map(({ workflowID }) => ({ workflowID, owner: 'engine.1', dueAt: START * 2, awaited: [] }));
      await parkWorkflows(database, parks);
      pass(1000);
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'gone.1' })]));
      pass(60_000);

      const { oldest } = await diagnose(operator());

      expect(oldest).toMatchObject([{ workflowID: 'w', reason: 'executor-gone' }]);
    });
  });
});
