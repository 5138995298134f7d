// Operations that workflow code forgets to await: those in progress when its function ends, and those that fail unnoticed.
import { DBOSUnawaitedOperationError } from '../kernel/errors/errors.js';
import type { DLogger } from '../kernel/base/log.js';
import type { FailingOperations } from './unhandled-rejections.js';

/** What they need to know of their run. */
interface Owner {
  readonly workflowID: string;
  readonly registration: { readonly name: string };
  readonly runtime: { readonly logger: DLogger };
  readonly stopReason: Error | undefined;
  stop(reason: Error): void;
}

/** An operation that code has begun. */
interface Begun {
  readonly name: string;
  readonly stepID: number;
  /** Whether it only waits. */
  readonly isWait?: boolean;
}

export class UnawaitedOperations implements FailingOperations {
  readonly #run: Owner;
  /** In progress: effects and sleeps. Other waits do not count. */
  #begun: Begun | undefined;
  /** Those beside it. Made when first needed: most workflows do one thing at a time. */
  #others: Set<Begun> | undefined;
  #hasRaced = false;
  #hasEnded = false;
  #error: unknown;

  constructor(run: Owner) {
    this.#run = run;
  }

  begin(begun: Begun): void {
    if (this.#begun) (this.#others ??= new Set()).add(begun);
    else this.#begun = begun;
  }

  end(begun: Begun): void {
    if (this.#begun === begun) this.#begun = undefined;
    else this.#others?.delete(begun);
  }

  /** Whether an operation other than this one is in progress. */
  isBeside(stepID: number): boolean {
    return (this.#begun !== undefined && this.#begun.stepID !== stepID) || (this.#others?.size ?? 0) > 0;
  }

  /** Code waits for the first of several. It leaves the losers behind on purpose, and sleeps are usually among them. */
  race(): void {
    this.#hasRaced = true;
  }

  /** The workflow's function has returned, or has thrown the error. */
  endFunction(error: unknown): void {
    this.#hasEnded = true;
    this.#error = error;
    if (this.#run.stopReason) return;
    const begun = this.#inProgress().map(({ name, stepID }) => `"${name}" (${stepID})`);
    if (begun.length === 0) return;
    this.#run.runtime.logger.warn(
      `Workflow ${this.#title} has ended while operations of it were in progress: ${begun.join(', ')}. Their outcomes are lost. ` +
        'Await every operation, or pass those of which only the first matters to DBOS.race.',
    );
  }

  #inProgress(): Begun[] {
    const all = [...(this.#begun ? [this.#begun] : []), ...(this.#others ?? [])];
    const lost = this.#hasRaced ? all.filter(({ isWait }) => !isWait) : all;
    return lost.sort((a, b) => a.stepID - b.stepID);
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
