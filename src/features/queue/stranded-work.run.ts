// Says which enqueued workflows no live process can run, and why: their version, function, application or queue is not
// served. They would wait silently.
import { explainWorkflow, type ExplanationReason } from '../diagnosis/explain.js';
import { findFirstWaiting, findQueuesInUse, type Waiting } from './waiting-work.sql.js';
import { isFirstOfApplication } from '../liveness/first-engine.run.js';
import { Periodic } from '../../run/periodic.js';
import type { Runtime } from '../../run/runtime.js';

/** After a launch, when all processes of a deployment have had time to start. */
const FIRST_MS = 5000;
const INTERVAL_MS = 60_000;
/** A workflow that has waited for less may be claimed any moment. */
const MIN_AGE_MS = 5000;
/** What is looked at each time: the heads of this many queues, and of each kind of workflow one. */
const QUEUES_MAX = 50;
const HEAD_MAX = 20;
const KINDS_MAX = 20;

const STRANDED: ReadonlySet<ExplanationReason> = new Set<ExplanationReason>([
  'queue-not-served',
  'no-partition-key',
  'no-executor-of-application',
  'no-executor-of-version',
  'function-not-registered',
  'format-not-readable',
]);

export class StrandedWork extends Periodic {
  constructor(runtime: Runtime) {
    super(runtime, { firstMs: FIRST_MS, everyMs: INTERVAL_MS, hasJitter: true });
  }

  protected override reportFailure(error: unknown): void {
    this.runtime.logger.debug(`Cannot look for stranded work: ${String(error)}`);
  }

  protected override async look(): Promise<void> {
    const queueNames = await findQueuesInUse(this.runtime.database, QUEUES_MAX);
    if (queueNames.length === 0 || !(await isFirstOfApplication(this.runtime))) return;
    for (const { first, count, queueName } of await this.#findKinds(queueNames)) {
      const { reason, message } = await explainWorkflow(this.runtime, first.workflowID);
      if (!STRANDED.has(reason)) continue;
      const many = count === HEAD_MAX ? `${count} or more` : `${count}`;
      this.runtime.logger.warn(
        `${many} workflow(s) "${first.name}" in queue "${queueName}" cannot start, such as "${first.workflowID}". ${message}`,
      );
    }
  }

  /** The kinds of workflows of this application at the heads of queues. */
  async #findKinds(queueNames: readonly string[]): Promise<{ first: Waiting; count: number; queueName: string }[]> {
    const { database, applicationName } = this.runtime;
    const kinds = new Map<string, { first: Waiting; count: number; queueName: string }>();
    for (const queueName of queueNames) {
      for (const waiting of await findFirstWaiting(database, queueName, HEAD_MAX)) {
        const isOurs = waiting.applicationName === null || waiting.applicationName === applicationName;
        if (!isOurs || waiting.ageMs < MIN_AGE_MS) continue;
        const key = JSON.stringify([queueName, waiting.version, waiting.className, waiting.name, waiting.format]);
        const kind = kinds.get(key) ?? { first: waiting, count: 0, queueName };
        kind.count += 1;
        if (kinds.size < KINDS_MAX) kinds.set(key, kind);
      }
    }
    return [...kinds.values()];
  }
}
