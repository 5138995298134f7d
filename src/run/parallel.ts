// `DBOS.parallel`: branches of several operations that run side by side and are replayed whatever their timing was.
import { abortable } from '../kernel/base/abortable.js';
import { positiveInteger } from '../kernel/check/validation.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import { inBranch, Numbers } from './numbers.js';
import type { Run } from './run.js';

export interface ParallelOptions {
  /** How many operations a branch may call. Default: 1000. */
  readonly stepsPerBranch?: number;
}

const STEPS_PER_BRANCH = 1000;

type Branch = () => Promise<unknown>;

/** Runs the branches and resolves to their results. If any fail, throws the error of the first of them in the list. */
export async function parallel(branches: readonly Branch[], options: ParallelOptions = {}): Promise<unknown[]> {
  const { stepsPerBranch = STEPS_PER_BRANCH } = options;
  positiveInteger.read(stepsPerBranch, 'options.stepsPerBranch');
  const context = currentContext();
  const results = isWorkflowCode(context)
    ? await abortable(runNumbered(context.run, branches, stepsPerBranch), context.run.signal)
    : await Promise.allSettled(branches.map(call));
  // In the order of the list: which one failed first depends on timing.
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value);
}

/** Reserves all numbers before the first await. */
function runNumbered(run: Run, branches: readonly Branch[], size: number): Promise<PromiseSettledResult<unknown>[]> {
  const first = run.reserveStepIDs(branches.length * size);
  return Promise.allSettled(
    branches.map((branch, index) => {
      const start = first + index * size;
      return inBranch(run, new Numbers(start, start + size), () => call(branch));
    }),
  );
}

/** Turns a synchronous throw into a rejection. */
async function call(branch: Branch): Promise<unknown> {
  return branch();
}
