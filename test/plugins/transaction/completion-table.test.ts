import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { createTransactionCompletionTablePG } from '../../../src/plugins/transaction/completion-schema.js';
import { CompletionTable } from '../../../src/plugins/transaction/completion-table.js';
import type { TransactionDriver } from '../../../src/plugins/transaction/driver.js';
import { OpenTransaction } from '../../../src/plugins/transaction/open-transaction.js';
import type { TransactionStep } from '../../../src/run/plugin.js';
import { onlyOn, postgres } from '../../rig/dialects.js';

/** A step whose run owns its workflow, so far as it knows. */
const step = {
  workflowID: 'w',
  stepID: 0,
  assertCommitAllowed: async () => {},
  assertOwned: async () => {},
  encode: async () => ({ text: '{"json":1}', serialization: 'js_superjson', value: 1 }),
} as unknown as TransactionStep;

onlyOn('postgres', () => {
  describe('a record', () => {
    async function setup(recordWithinSeconds: number) {
      const client = new pg.Client(await postgres.createURL());
      await client.connect();
      await client.query(createTransactionCompletionTablePG());
      const driver = {
        dialect: 'postgres',
        query: async (on: pg.Client, text: string, values: readonly unknown[]) =>
          (await on.query<Record<string, unknown>>(text, [...values])).rows,
      } as unknown as TransactionDriver<pg.Client>;
      return { client, table: new CompletionTable(driver, 'dbos', { recordWithinSeconds }) };
    }

    test.each([
      [20, true],
      [0.02, false],
    ])('that is to be written within %s s of the beginning of its transaction is: %s', async (seconds, isWritten) => {
      const { client, table } = await setup(seconds);
      try {
        await client.query('BEGIN');
        await client.query('SELECT pg_sleep(0.05)');

        const recorded = table.record(step, new OpenTransaction(client, systemClock), 1).then(
          () => true,
          (error: { code?: string }) => error.code,
        );

        expect(await recorded).toBe(isWritten || 'STEP_ALREADY_RECORDED');
        await client.query('COMMIT');
        const { rows } = await client.query('SELECT workflow_id FROM dbos.transaction_completion');
        expect(rows).toHaveLength(isWritten ? 1 : 0);
      } finally {
        await client.end();
      }
    });
  });
});
