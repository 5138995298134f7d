// A workflow that can be killed at any point around its transaction.
import { OwnerLookup } from '../../../src/run/owner-lookup.js';
import type { Run } from '../../../src/run/run.js';
import { JoinedCheckpoint } from '../../../src/plugins/transaction/transaction-step.run.js';
import { TransactionHandler } from '../../../src/plugins/transaction/handler.js';
import pg from 'pg';
import { methodsOf } from '../../crash/kill-points.js';
import type { EngineUnderTest } from './scene.js';

/**
 * In order: the function has begun, it has written, the step is recorded in its transaction, the COMMIT is on its way, it
 * has returned, the step's checkpoint is durable.
 */
export type KillPoint = 'begun' | 'written' | 'recorded' | 'commit-sent' | 'committed' | 'checkpointed';

export function registerKillable(
  { DBOS, source, run }: EngineUnderTest,
  reach: (point: KillPoint) => void = () => {},
): () => Promise<string> {
  return DBOS.registerWorkflow(
    async () => {
      const before = await DBOS.runStep(async () => 'before', { name: 'before' });
      const value = await source.runTransaction(
        async () => {
          reach('begun');
          await run(`INSERT INTO effects (workflow_id, note) VALUES ('w', 'once')`);
          reach('written');
          return 'value';
        },
        { name: 'step' },
      );
      await DBOS.runStep(async () => reach('checkpointed'), { name: 'after' });
      return `${before} ${value}`;
    },
    { name: 'killable' },
  );
}

/** Ends this process at points that no function of the application sees. */
export function armKillPoint(point: KillPoint, die: () => void): void {
  const { owns } = methodsOf(OwnerLookup.prototype, 'owns');
  const { statement } = methodsOf(JoinedCheckpoint.prototype, 'statement');
  const { performTransaction } = methodsOf(TransactionHandler.prototype, 'performTransaction');
  if (point === 'recorded') {
    // On SQLite, the look at the ownership comes between the record and the COMMIT.
    OwnerLookup.prototype.owns = function (run) {
      const { registry } = (run as Run).runtime;
      if (!registry.dataSources.get('app')?.dsType?.includes('Postgres')) die();
      return owns.call(this, run);
    };
    // On Postgres the record goes with the COMMIT; here the process ends just before both.
    JoinedCheckpoint.prototype.statement = async function (value) {
      const rendered = await statement.call(this, value);
      die();
      return rendered;
    };
    dieAtCommit('before', die);
  }
  if (point === 'commit-sent') dieAtCommit('sent', die);
  if (point !== 'committed') return;
  TransactionHandler.prototype.performTransaction = async function (...args) {
    const kept = await performTransaction.apply(this, args);
    die();
    return kept;
  };
}

/** What ends the function's transaction is the first request of ours after its own statement. */
function dieAtCommit(moment: 'before' | 'sent', die: () => void): void {
  const original = methodsOf(pg.Client.prototype, 'query').query as (...args: unknown[]) => unknown;
  let hasWritten = false;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const isEnd = hasWritten && typeof (args[0] as { submit?: unknown }).submit === 'function';
    if (isEnd && moment === 'before') die();
    const result = original.apply(this, args);
    if (String(args[0]).includes('INSERT INTO effects')) hasWritten = true;
    // The bytes are in the hands of the system by now: a write that does not block is done at once.
    if (isEnd) die();
    return result;
  } as typeof pg.Client.prototype.query;
}
