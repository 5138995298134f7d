// Workflows whose runs here have diverged: their code does not fit their history. Another run of the same code would diverge as
// well, so the workflow stays with this engine, without a run and without a slot, until an operator acts or the process ends:
// the next one may have other code. Callers in this process that wait for the outcome get the error; workflows do not.
import type { DLogger } from '../../kernel/base/log.js';
import type { Database } from '../../database/database.js';
import { markDiverged, type Owned } from '../rows/lifecycle.js';
import { divergedToken } from '../rows/owner-tokens.js';
import { findOwners } from '../rows/owners.js';

export interface DivergencesOptions {
  readonly database: Database;
  readonly logger: DLogger;
  /** Repeats a statement until the database is back, or the engine stops. */
  retrying<T>(operation: () => Promise<T>): Promise<T>;
}

/** A run that has diverged. */
interface DivergedRun extends Owned {
  readonly registration: { readonly name: string };
  /** Resolves when what the run has written is stored. */
  readonly lastWrite: Promise<void> | undefined;
}

interface Divergence {
  /** The token of the workflow for as long as nothing else has happened to it. */
  readonly token: string;
  readonly error: Error;
}

/** How many to remember. Callers of older ones wait as they would in another process. */
const REMEMBERED_MAX = 10_000;

export class Divergences {
  readonly #options: DivergencesOptions;
  readonly #known = new Map<string, Divergence>();
  /** Those who wait for the outcome, by workflow. */
  readonly #waiting = new Map<string, Set<AbortController>>();

  constructor(options: DivergencesOptions) {
    this.#options = options;
  }

  /** Logs the divergence, and marks the workflow. Never rejects. */
  async note(run: DivergedRun, error: Error): Promise<void> {
    const { database, logger } = this.#options;
    const { workflowID, owner } = run;
    const cause =
      error.cause instanceof Error ? ` It has failed with: ${error.cause.stack ?? error.cause.message}` : '';
    logger.error(
      `Workflow "${workflowID}" (${run.registration.name}) was stopped, because its code does not fit its history. ${error.message} ` +
        `It stays PENDING, and is tried again by a process that starts. Deploy code that fits, fork it, or cancel it.${cause}`,
    );
    try {
      await run.lastWrite;
      const isMarked = await this.#options.retrying(() => markDiverged(database, run));
      if (isMarked) this.#remember(workflowID, { token: divergedToken(owner), error });
    } catch (failure) {
      // At a shutdown, which hands the workflow back.
      logger.debug(`Workflow "${workflowID}" was not marked as diverged: ${String(failure)}`);
    }
  }

  #remember(workflowID: string, divergence: Divergence): void {
    this.#known.delete(workflowID);
    this.#known.set(workflowID, divergence);
    const [oldest = workflowID] = this.#known.keys();
    if (this.#known.size > REMEMBERED_MAX) this.#known.delete(oldest);
    for (const waiting of this.#waiting.get(workflowID) ?? []) waiting.abort(divergence.error);
  }

  /** Waits for an outcome. Rejects if the workflow has diverged here, or does so meanwhile. */
  async orDivergence<T>(workflowID: string, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#known.has(workflowID)) await this.#throwIfDiverged(workflowID);
    const waiting = new AbortController();
    const all = this.#waiting.get(workflowID) ?? new Set();
    this.#waiting.set(workflowID, all.add(waiting));
    try {
      return await wait(waiting.signal);
    } finally {
      all.delete(waiting);
      if (all.size === 0) this.#waiting.delete(workflowID);
    }
  }

  async #throwIfDiverged(workflowID: string): Promise<void> {
    const { database } = this.#options;
    const owners = await this.#options.retrying(() => findOwners(database, [workflowID]));
    const known = this.#known.get(workflowID);
    const row = owners.get(workflowID);
    if (known && row?.status === 'PENDING' && row.owner === known.token) throw known.error;
    this.#known.delete(workflowID);
  }
}
