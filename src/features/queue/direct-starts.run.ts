// Workflows of a queue that run here from the commit that creates them, without being enqueued and claimed first. Only for
// queues without limits, and while this process has slots for them.
//
// Their rows look like claimed ones: PENDING, with an owner token of this engine. If the process dies after the commit,
// they are recovered like claimed ones.
import { isPromise } from '../../kernel/codec/maybe-promise.js';
import { findOwnedWith, handBack } from '../../run/rows/lifecycle.js';
import type { NewWorkflow } from '../../run/rows/workflows.js';
import { History } from '../../run/history/history.js';
import type { Ownership } from '../../run/ownership.js';
import type { Runs } from '../../run/runs.js';
import type { Standing } from '../liveness/lease.run.js';
import type { Runtime } from '../../run/runtime.js';
import { invocationOf } from './claimed-run.run.js';

export interface DirectStartsOptions {
  readonly runtime: Runtime;
  readonly runs: Runs;
  readonly ownership: Ownership;
  /** Reserves slots. Undefined if the workflows have to be enqueued. */
  readonly reserve: (queueName: string, count: number) => (() => void) | undefined;
}

/** Workflows to create, and what to do when they are. */
export interface DirectStart {
  readonly workflows: readonly NewWorkflow[];
  /** Runs those that were created, by their creator tokens. */
  committed(creators: ReadonlySet<string>): Promise<void>;
  /** The commit has failed, or its outcome is unknown. */
  failed(): Promise<void>;
}

export class DirectStarts {
  readonly #options: DirectStartsOptions;

  constructor(options: DirectStartsOptions) {
    this.#options = options;
  }

  /** Makes running workflows of enqueued ones. Undefined if they have to be enqueued. */
  begin(enqueued: readonly NewWorkflow[]): DirectStart | undefined {
    const { runtime, reserve } = this.#options;
    const queueName = enqueued[0]?.queueName;
    if (queueName == null || !enqueued.every((workflow) => this.#isEligible(workflow, queueName))) return undefined;
    const release = reserve(queueName, enqueued.length);
    if (!release) return undefined;
    const owner = runtime.newOwner();
    const { standing } = runtime.lease;
    const { executorID } = runtime.config;
    const running = { status: 'PENDING', owner, executorID, recoveryAttempts: 1 } as const;
    const workflows = enqueued.map((workflow): NewWorkflow => ({ ...workflow, ...running }));
    return {
      workflows,
      committed: (creators) =>
        this.#launch(
          workflows.filter(({ creator }) => creators.has(creator)),
          standing,
        ).finally(release),
      failed: () => this.#handBack(owner).finally(release),
    };
  }

  #isEligible({ queueName, applicationVersion, delayMs, timeoutMs }: NewWorkflow, expected: string): boolean {
    const isPlain = delayMs === null && timeoutMs === null;
    return queueName === expected && isPlain && applicationVersion === this.#options.runtime.applicationVersion;
  }

  async #launch(workflows: readonly NewWorkflow[], standing: Standing): Promise<void> {
    const { runtime, runs } = this.#options;
    for (const workflow of workflows) {
      const { workflowID, inputs, owner } = workflow;
      const starting = invocationOf(runtime, workflow, { history: new History(), inputs, standing });
      const invocation = isPromise(starting) ? await starting : starting;
      if (invocation) runs.launch(invocation);
      else await handBack(runtime.database, [{ workflowID, owner: owner ?? '' }]);
    }
  }

  /** The rows may be there although the answer was lost. What this look misses is found as an orphan. */
  async #handBack(owner: string): Promise<void> {
    const { runtime, ownership } = this.#options;
    await ownership.requeue(await findOwnedWith(runtime.database, owner));
  }
}
