// Verdicts under faults: what a run is credited with is what its own token has written.
import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { CommitUnknownError } from '../../../src/kernel/errors/database-errors.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { listStreamValues } from '../../../src/features/message/streams.sql.js';
import { findWorkflows } from '../../../src/run/rows/workflows.js';
import { Writer } from '../../../src/run/writer/writer.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { newWorkflow, step } from '../../rig/records.js';

async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
  const workflow = newWorkflow({ workflowID: 'w', owner: 'old' });
  await writer.start(workflow);
  const checkpoint = (owner: string, stepID: number, fields = {}) => ({ owner, step: step('w', stepID, fields) });
  const outcome = (owner: string, output = 'o') =>
    ({ workflowID: 'w', owner, status: 'SUCCESS', output, error: null }) as const;
  const value = (owner: string, offset: number) => ({
    value: { workflowID: 'w', owner, key: 's', offset, stepID: 9, text: '1', serialization: 'portable_json' },
  });
  return { database, writer, checkpoint, outcome, value };
}

/** What a resume and a claim do. */
function takeOver(database: Database): Promise<unknown> {
  return database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'new' WHERE workflow_uuid = 'w'`);
}

/** The next commit takes place, but its answer is lost. */
function loseNextAnswer(database: Database): void {
  const commit = database.commit.bind(database);
  vi.spyOn(database, 'commit').mockImplementationOnce(async (...given) => {
    await commit(...given);
    throw new CommitUnknownError('The answer was lost.');
  });
}

describe('verdicts', () => {
  forEachDialect((dialect) => {
    test('an outcome that another run wrote is not ours, although it is equal', async () => {
      const { database, writer, outcome } = await setup(dialect);
      await takeOver(database);

      expect(await writer.finish(outcome('new'))).toBe('recorded');
      expect(await writer.finish(outcome('old'))).toBe('lost');
    });

    test('a checkpoint and a value that another run wrote are not ours, although they are equal', async () => {
      const { database, writer, checkpoint, value } = await setup(dialect);
      await takeOver(database);
      const writeAll = (owner: string) =>
        Promise.all([
          writer.checkpoint(checkpoint(owner, 0)),
          writer.append(value(owner, 0)),
          writer.append({ ...value(owner, 1), checkpoint: checkpoint(owner, 1) }),
        ]);

      expect(await writeAll('new')).toEqual(['recorded', 'recorded', 'recorded']);
      expect(await writeAll('old')).toEqual(['lost', 'lost', 'lost']);
    });

    test('what the run itself wrote is recognised after a lost answer, and after its end', async () => {
      const { database, writer, checkpoint, outcome, value } = await setup(dialect);

      loseNextAnswer(database);
      const verdicts = await Promise.all([
        writer.checkpoint(checkpoint('old', 0)),
        writer.append({ ...value('old', 0), checkpoint: checkpoint('old', 1) }),
        writer.finish(outcome('old')),
      ]);

      expect(verdicts).toEqual(['recorded', 'recorded', 'recorded']);
      expect((await findWorkflows(database, ['w']))[0]).toMatchObject({ status: 'SUCCESS', owner: 'old' });
    });

    test('of two runs of a workflow in one batch, only the owner is credited, whatever the order', async () => {
      const { database, writer, checkpoint, outcome, value } = await setup(dialect);
      await takeOver(database);

      const verdicts = await Promise.all([
        writer.checkpoint(checkpoint('old', 0, { output: 'from the old run' })),
        writer.checkpoint(checkpoint('new', 0, { output: 'from the new run' })),
        writer.append(value('old', 0)),
        writer.append(value('new', 0)),
        writer.finish(outcome('old', 'of the old run')),
        writer.finish(outcome('new', 'of the new run')),
      ]);

      expect(verdicts).toEqual(['lost', 'recorded', 'lost', 'recorded', 'lost', 'recorded']);
      expect((await findWorkflows(database, ['w']))[0]).toMatchObject({ output: 'of the new run', owner: 'new' });
      expect(await listStreamValues(database, 'w')).toHaveLength(1);
    });

    test('a lost answer makes the writer read the rows in question, not whole histories or inputs', async () => {
      const { database, writer, checkpoint, value } = await setup(dialect);
      for (let stepID = 0; stepID < 20; stepID += 1) await writer.checkpoint(checkpoint('old', stepID));
      const child = newWorkflow({ parentWorkflowID: 'w', parentOwner: 'old', inputs: 'x'.repeat(1000) });
      const read = vi.spyOn(database, 'read');

      loseNextAnswer(database);
      await Promise.all([
        writer.checkpoint(checkpoint('old', 20)),
        writer.append(value('old', 0)),
        writer.startChild({ start: child, checkpoint: { ...checkpoint('old', 21), child } }),
      ]);

      const rows = (await Promise.all(read.mock.results.map(({ value: found }) => found as Promise<object[]>))).flat();
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.length).toBeLessThan(10);
      expect(JSON.stringify(rows).length).toBeLessThan(4000);
    });
  });
});
