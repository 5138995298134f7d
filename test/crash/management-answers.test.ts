// The answer to the commit of a fork or a rewind is lost, and it is tried again.
import { expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/base/clock.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { forkWorkflows } from '../../src/features/lifecycle/forks.js';
import { rewindWorkflow } from '../../src/features/lifecycle/rewind.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { withRetry } from '../../src/database/retry.js';
import { findWorkflows } from '../../src/run/rows/workflows.js';
import { addWithHistory } from '../features/lifecycle/histories.js';
import { onlyOn } from '../rig/dialects.js';
import { operatorOn } from '../rig/operators.js';
import { startProxy } from '../rig/proxy.js';

onlyOn('postgres', (dialect) => {
  async function setup() {
    const proxy = await startProxy(await dialect.createURL());
    const database = await dialect.open(proxy.url, { poolSize: 2 });
    const workflowID = await addWithHistory(database);
    const failures: string[] = [];
    const operator = operatorOn(database, {
      retrying: (operation) => {
        const attempt = () =>
          operation().catch((error: Error) => {
            failures.push(error.name);
            throw error;
          });
        return withRetry(attempt, { clock: systemClock, logger: silentLogger, isIdempotent: true });
      },
    });
    const transaction = database.transaction.bind(database);
    let isLost = false;
    /** The statements of the next transaction arrive, and so does its COMMIT, but nobody hears of it. */
    database.transaction = (body) =>
      transaction(async (tx) => {
        const result = await body(tx);
        if (!isLost) proxy.loseNextAnswer();
        isLost = true;
        return result;
      });
    return { database, operator, workflowID, failures };
  }

  test('a fork that was made although nobody heard of it is not made again', async () => {
    const { database, operator, workflowID, failures } = await setup();

    const requests = [2, 3].map((startStep) => ({ workflowID, startStep }));
    const forkIDs = await forkWorkflows(operator, requests);

    const rows = await database.read(sql`
      SELECT w.workflow_uuid AS id FROM ${table('workflow_status')} AS w WHERE w.forked_from = ${workflowID}`);
    expect(failures).toEqual(['CommitUnknownError']);
    expect(rows.map((row) => row['id']).sort()).toEqual(forkIDs.toSorted());
  });

  test('a rewind that was made although nobody heard of it is not refused', async () => {
    const { database, operator, workflowID, failures } = await setup();

    await rewindWorkflow(operator, workflowID, { startStep: 2 });

    expect(failures).toEqual(['CommitUnknownError']);
    expect(await findWorkflows(database, [workflowID])).toMatchObject([{ status: 'ENQUEUED' }]);
  });
});
