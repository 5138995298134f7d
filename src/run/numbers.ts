// The numbers of a run's operations. Workflow code takes them in program order. Branches of `DBOS.parallel` run side by
// side, so each has a block of numbers of its own: which of them is faster changes nothing.
import { AsyncLocalStorage } from 'node:async_hooks';
import { processWide } from './process-wide.js';
import { DBOSInvalidArgumentError } from '../kernel/errors/errors.js';

/** Numbers are stored in a 4-byte integer. */
const NUMBER_MAX = 2_147_483_647;

export class Numbers {
  #next: number;
  readonly #end: number;

  /** `end` is the first number that is not part of it. */
  constructor(first = 0, end = NUMBER_MAX) {
    this.#next = first;
    this.#end = end;
  }

  /** The number that will be taken next. */
  get upcoming(): number {
    return this.#next;
  }

  get end(): number {
    return this.#end;
  }

  take(count = 1): number {
    const first = this.#next;
    if (first + count > this.#end) {
      throw new DBOSInvalidArgumentError(
        `There are no numbers left for ${count} more operation(s) here. A branch of DBOS.parallel has as many as ` +
          'stepsPerBranch says, including those of the branches inside it. Start the workflow anew with more, or with children.',
        'stepsPerBranch',
      );
    }
    this.#next += count;
    return first;
  }
}

interface Branch {
  /** The run that it belongs to: a workflow that is started in a branch has numbers of its own. */
  readonly run: object;
  readonly numbers: Numbers;
}

const branches = processWide('branches', () => new AsyncLocalStorage<Branch>());

/** The numbers of the branch of this run that the code is in, if any. */
export function branchNumbers(run: object): Numbers | undefined {
  const branch = branches.getStore();
  return branch?.run === run ? branch.numbers : undefined;
}

export function inBranch<T>(run: object, numbers: Numbers, body: () => T): T {
  return branches.run({ run, numbers }, body);
}
