// Recovers the workflows of dead engines: puts them back on their queues and tells the dispatchers.
import type { Peer } from './executors.sql.js';
import { topics } from '../../database/notify/topics.js';
import { type Changed, recoverExecutor, recoverIncarnation, takeOver } from '../../run/rows/lifecycle.js';
import { findUnlisted } from '../../run/rows/owner-tokens.js';
import type { Runtime } from '../../run/runtime.js';

/** How many workflows without a function here are named in the log. */
const UNKNOWN_MAX = 10;

export class Recovery {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /**
   * Recovers a peer's workflows and removes its lease; `byLease`: not if the peer has renewed it since. False if there was
   * nothing to do.
   */
  async takeOver(peer: Peer, { byLease }: { readonly byLease: boolean }): Promise<boolean> {
    const { database } = this.#runtime;
    const leaseUntil = byLease ? peer.leaseUntil : undefined;
    const changed = await takeOver(database, peer.incarnationID, leaseUntil).catch((error: unknown) => {
      // It may have happened, and then the peer may not be listed when the next attempt is due.
      this.#announce([]);
      throw error;
    });
    if (!changed) return false;
    if (changed.length > 0) {
      this.#runtime.logger.info(
        `Recovering ${changed.length} workflow(s) of executor "${peer.executorID}" (process ${peer.pid} on ${peer.host}), which is dead.`,
      );
    }
    this.#announce(changed);
    return true;
  }

  /**
   * Recovers the workflows of engines that are not registered, one engine after the other. A statement of a dead engine may
   * reach the server after its workflows were recovered.
   */
  async takeOverUnlisted(unlisted?: readonly string[]): Promise<void> {
    const { database, logger } = this.#runtime;
    for (const incarnationID of unlisted ?? (await findUnlisted(database))) {
      const changed = await recoverIncarnation(database, incarnationID);
      if (changed.length === 0) continue;
      logger.info(`Recovering ${changed.length} workflow(s) whose executor has no lease.`);
      this.#announce(changed);
    }
  }

  /** Puts the running workflows of an executor ID back on their queues. The caller knows that its process is dead. */
  async recoverExecutor(executorID: string): Promise<string[]> {
    const { applicationVersion, bus, database, incarnationID } = this.#runtime;
    const changed = await recoverExecutor(database, { executorID, applicationVersion, keptPrefix: incarnationID });
    this.#logUnregistered(changed);
    bus.publishAll(topics.work, changed);
    return changed.map(({ workflowID }) => workflowID);
  }

  #announce(changed: readonly Changed[]): void {
    const { bus } = this.#runtime;
    this.#logUnregistered(changed);
    bus.publishAll(topics.work, changed);
    // If the answer to a recovery is lost, it is not known what to announce. And an engine that died just after it
    // finished a workflow has not announced the free slot.
    bus.publish(topics.queueChanges, '');
    bus.publish(topics.delays, '');
  }

  /** Log workflows that we can't run, or they would wait silently. */
  #logUnregistered(changed: readonly Changed[]): void {
    const { logger, registry } = this.#runtime;
    const unknown = changed.filter(({ className, name }) => !registry.findWorkflow(className, name));
    for (const { workflowID, className, name } of unknown.slice(0, UNKNOWN_MAX)) {
      const fullName = className === null ? name : `${className}.${name}`;
      logger.warn(
        `Workflow "${workflowID}" was recovered, but "${fullName}" is not registered here. It waits for an executor that has it.`,
      );
    }
  }
}
