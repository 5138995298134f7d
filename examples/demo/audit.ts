// Checks the demo's claim: which steps had a durable checkpoint when process 1 was killed, and how often did each run?
import { createDBOS } from '../../src/index.js';
import { paint } from './board.js';
import { effectsOf, type Entry, ORDERS } from './orders.js';

export interface Audit {
  readonly ordersDone: number;
  readonly steps: number;
  /** Steps whose checkpoint was in the database when process 1 died. */
  readonly durable: number;
  /** Those of them that ran again anyway. Must be empty. */
  readonly durableRunAgain: readonly string[];
  /** Steps that started in process 1 without reaching a durable checkpoint, and ran again in process 2. */
  readonly repeated: number;
  /** Steps that only process 2 ran. */
  readonly continued: number;
  /** Steps that never ran, or have no checkpoint at the end. */
  readonly unaccounted: readonly string[];
}

/** Compares the log with the checkpoints. Opens the database itself instead of trusting either process. */
export async function audit(url: string, entries: readonly Entry[], diedAt: number): Promise<Audit> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'demo', systemDatabaseUrl: url, logLevel: 'error' });
  await DBOS.launch();
  const durableRunAgain: string[] = [];
  const unaccounted: string[] = [];
  const count = { ordersDone: 0, steps: 0, durable: 0, repeated: 0, continued: 0 };
  for (const order of ORDERS) {
    const status = await DBOS.getWorkflowStatus(order.id);
    if (status?.status === 'SUCCESS' && status.output === order.parcels) count.ordersDone += 1;
    const checkpoints = (await DBOS.listWorkflowSteps(order.id)) ?? [];
    for (const effect of effectsOf(order)) {
      const name = `${effect} of ${order.id}`;
      const begun = entries.filter(
        (entry) => entry.order === order.id && entry.effect === effect && entry.event === 'begin',
      );
      const checkpoint = checkpoints.find((step) => step.functionID === begun[0]?.stepID);
      count.steps += 1;
      if (!checkpoint || checkpoint.output !== name) {
        unaccounted.push(name);
        continue;
      }
      // A checkpoint is never overwritten, so one written before the kill is from process 1.
      if ((checkpoint.completedAtEpochMs ?? Infinity) <= diedAt) {
        count.durable += 1;
        if (begun.length !== 1) durableRunAgain.push(name);
      } else if (begun.length > 1) count.repeated += 1;
      else count.continued += 1;
    }
  }
  await DBOS.shutdown();
  return { ...count, durableRunAgain, unaccounted };
}

/** Prints the summary. Returns true if every check passed. */
export function printAudit(result: Audit): boolean {
  const { ordersDone, steps, durable, durableRunAgain, repeated, continued, unaccounted } = result;
  const isProven = ordersDone === ORDERS.length && durableRunAgain.length === 0 && unaccounted.length === 0;
  console.log('');
  console.log(`  orders done                  ${ordersDone} of ${ORDERS.length}`);
  console.log(`  steps                        ${steps}`);
  console.log(`    durable at the kill        ${durable}, run again: ${durableRunAgain.length}`);
  console.log(`    interrupted and repeated   ${repeated}`);
  console.log(`    started after the kill     ${continued}`);
  for (const name of durableRunAgain) console.log(paint('red', `  ran again: ${name}`));
  for (const name of unaccounted) console.log(paint('red', `  checkpoint missing or wrong: ${name}`));
  console.log('');
  console.log(
    isProven
      ? paint('green', '  OK: no step ran again once its checkpoint was durable.')
      : paint('red', '  FAILED: see above.'),
  );
  return isProven;
}
