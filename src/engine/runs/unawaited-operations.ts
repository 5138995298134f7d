// Operations that workflow code forgets to await: those in progress when its function ends, and those that fail unnoticed.
import { DBOSUnawaitedOperationError } from '../../model/errors/errors.js';
import type { DLogger } from '../../base/log.js';
import type { FailingOperations } from '../unhandled-rejections.js';

/** What they need to know of their run. */
interface Owner {
  readonly workflowID: string;
  readonly registration: { readonly name: string };
  readonly runtime: { readonly logger: DLogger };
  readonly stopReason: Error | undefined;
  stop(reason: Error): void;
}

interface Effect {
  readonly name: string;
  readonly stepID: number;
}

export class UnawaitedOperations implements FailingOperations {
  readonly #run: Owner;
  /** In progress. Waits do not count: code may leave one behind on purpose, as the loser of a race. */
  #effect: Effect | undefined;
  /** Those beside it. Made when first needed: most workflows do one thing at a time. */
  #others: Set<Effect> | undefined;
  #hasEnded = false;
  #error: unknown;

  constructor(run: Owner) {
    this.#run = run;
  }

  begin(effect: Effect): void {
    if (this.#effect) (this.#others ??= new Set()).add(effect);
    else this.#effect = effect;
  }

  end(effect: Effect): void {
    if (this.#effect === effect) this.#effect = undefined;
    else this.#others?.delete(effect);
  }

  /** The workflow's function has returned, or has thrown the error. */
  endFunction(error: unknown): void {
    this.#hasEnded = true;
    this.#error = error;
    if (this.#run.stopReason) return;
    const effects = this.#inProgress();
    if (effects.length === 0) return;
    const begun = effects.map(({ name, stepID }) => `"${name}" (${stepID})`);
    this.#run.runtime.logger.warn(
      `Workflow ${this.#title} has ended while operations of it were in progress: ${begun.join(', ')}. Their outcomes are lost. ` +
        'Await every step, transaction and start.',
    );
  }

  #inProgress(): Effect[] {
    const effects = [...(this.#effect ? [this.#effect] : []), ...(this.#others ?? [])];
    return effects.sort((a, b) => a.stepID - b.stepID);
  }

  fail(error: unknown): boolean {
    if (this.#hasEnded && this.#error === error) return false;
    const description = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const what = this.#hasEnded
      ? `An operation of workflow ${this.#title} failed after the end.`
      : `Workflow ${this.#title} fails because of an operation that it does not await.`;
    this.#run.runtime.logger.error(`${what} Await or catch every operation. ${description}`);
    if (!this.#hasEnded) this.#run.stop(new DBOSUnawaitedOperationError(this.#run.workflowID, error));
    return true;
  }

  get #title(): string {
    return `"${this.#run.workflowID}" (${this.#run.registration.name})`;
  }
}
