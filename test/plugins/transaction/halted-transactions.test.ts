// Functions in transactions of runs that were halted: they must not keep a connection for a promise that never settles.
import { expect, test } from 'vitest';
import { registerDataSource, registerTransaction } from '../../../src/plugins/transaction/datasource.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

const MINUTE = 60_000;

forEachDialect((dialect) => {
  /** A workflow with a transaction whose function awaits a sleep of the workflow. Notes how the transactions end. */
  async function setup() {
    const clock = new ManualClock();
    const { DBOS } = await createEngine(dialect, { leaseSeconds: 86_400 }, clock.settings);
    const ends: string[] = [];
    const handler = {
      name: 'source',
      dsType: 'test',
      initialize: () => Promise.resolve(),
      destroy: () => Promise.resolve(),
      async invokeTransactionFunction<This, Args extends unknown[], Return>(
        _: unknown,
        target: This,
        func: (this: This, ...args: Args) => Promise<Return>,
        ...args: Args
      ): Promise<Return> {
        ends.push('begun');
        try {
          return await func.apply(target, args);
        } catch (error) {
          ends.push(`rolled back: ${(error as { code?: string }).code}`);
          throw error;
        }
      },
    };
    registerDataSource(handler, DBOS);
    const heard: string[] = [];
    const awaiting = registerTransaction('source', (promise: Promise<void>) => promise, { name: 'awaiting' }, DBOS);
    const workflow = DBOS.registerWorkflow(
      () => awaiting(DBOS.sleep(10 * MINUTE)).finally(() => heard.push('finally')),
      {
        name: 'workflow',
      },
    );
    await DBOS.launch();
    await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await until(() => ends.length > 0);
    return { DBOS, clock, ends, heard };
  }

  test('a function that awaits an operation of a run that has lost its workflow is given up after a minute', async () => {
    const { DBOS, clock, ends, heard } = await setup();
    const { ownership, runtime } = engineOf(DBOS);
    await runtime.database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'other'`);
    await ownership.verify();

    clock.advance(MINUTE - 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ends).toEqual(['begun']);
    clock.advance(1);

    await until(() => ends.length > 1);
    expect(ends).toEqual(['begun', 'rolled back: WORKFLOW_CONFLICT']);
    expect(heard).toEqual([]);
  });

  test('a shutdown does not wait for it', async () => {
    const { DBOS, clock, heard } = await setup();

    await DBOS.shutdown();

    expect(clock.isArmed(MINUTE)).toBe(false);
    expect(heard).toEqual([]);
  });
});
