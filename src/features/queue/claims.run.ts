// From a claim to runs: loads the histories and inputs of all claimed workflows at once, dead-letters those that were
// recovered too often, fails those that cannot be claimed, and runs the rest.
import { abortable } from '../../kernel/base/abortable.js';
import { withTimeLimit } from '../../kernel/base/time-limit.js';
import { isPromise } from '../../kernel/codec/maybe-promise.js';
import { DatabaseClosedError, DBOSMaxRecoveryAttemptsExceededError } from '../../kernel/errors/errors.js';
import { UNLIMITED } from './queue.js';
import type { ClaimRemainder } from './claim-limits.sql.js';
import {
  type Claim,
  type Claimed,
  type ClaimOptions,
  claimPartitions,
  claimWorkflows,
  compareClaimOrder,
  findSeparateInputs,
  type PartitionClaimOptions,
  type RefusedRow,
} from './claims.sql.js';
import type { RefillTerms } from './refills.sql.js';
import { classifyFailure } from '../../database/retry.js';
import { findLost } from '../../run/rows/owners.js';
import { findOwnedWith, deadLetterIfOwned, failIfEnqueued, handBack, type Owned } from '../../run/rows/lifecycle.js';
import { topics } from '../../database/notify/topics.js';
import { countRunning, findWaitingPartitions } from './waiting-work.sql.js';
import { History } from '../../run/history/history.js';
import { batchHistories, loadHistories, measureHistories } from '../../run/history/load-histories.js';
import type { Deadlines } from '../../run/deadlines.js';
import type { Ownership } from '../../run/ownership.js';
import type { Runs } from '../../run/runs.js';
import type { SlotHolder } from '../../run/slots.js';
import type { Standing } from '../liveness/lease.run.js';
import type { Runtime } from '../../run/runtime.js';
import type { Queue } from './known-queues.run.js';
import type { ClaimManner, ClaimSource } from './queue-claims.run.js';
import { maxRecoveryAttempts } from '../../run/registration/registry.js';
import type { Run } from '../../run/run.js';
import type { Invocation } from '../../run/execute.js';
import { type Beginning, Beginnings } from './beginnings.run.js';
import { invocationOf } from './claimed-run.run.js';

/** How many workflows a claim got, and what it left. */
export interface ClaimResult {
  readonly taken: number;
  readonly left: ClaimRemainder;
  /** Of a partition: whether the queue had a slot for it when it was its turn. */
  readonly hadRoom?: boolean | undefined;
}

/** A claim that is made in the commit of an outcome. */
export interface RefillClaim {
  readonly terms: RefillTerms;
  readonly standing: Standing;
  /** Whether workflows were changed from outside since the terms were made. */
  readonly hasChanged: () => boolean;
}

export interface LaunchOptions {
  readonly owner: string;
  /** What was claimed may have been taken meanwhile. */
  readonly isDoubtful?: boolean;
}

/** A claim whose workflows do not run yet. */
export interface NewClaim extends ClaimResult {
  /** Runs them. Resolves when all have begun. If that fails, they have been handed back. */
  readonly begin: () => Promise<unknown>;
}

interface PreparationParts {
  /** Of the histories, by workflow. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Inputs that are not in the row, by workflow. */
  readonly separate: ReadonlyMap<string, string>;
  readonly standing: Standing;
}

export interface ClaimsOptions {
  readonly runtime: Runtime;
  readonly runs: Runs;
  readonly ownership: Ownership;
  readonly deadlines: Deadlines;
  /** Aborts at shutdown, when claiming stops. */
  readonly stopping: AbortSignal;
}

/** How long to wait for runs that do not get on with their replay. */
const REPLAY_MAX_MS = 5_000;
/** How often to look who owns workflows that are changed over and over. After that each run asks for itself. */
const LOOKS_MAX = 5;

type Terms = Omit<ClaimOptions, 'queueName' | 'limit' | 'limits' | 'share' | 'isInsisting'>;

export class Claims implements ClaimSource {
  readonly #options: ClaimsOptions;
  readonly #runtime: Runtime;
  readonly #beginnings = new Beginnings();
  /** Rises when workflows are changed from outside. */
  #changeCount = 0;

  constructor(options: ClaimsOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
  }

  async claim(queue: Queue, limit: number, { share, isInsisting }: ClaimManner): Promise<NewClaim> {
    const options = { queueName: queue.name, limits: queue.limits.whole, limit, share, isInsisting };
    const { results, begin } = await this.#claimWith(async (terms) => [
      await claimWorkflows(this.#runtime.database, { ...terms, ...options }),
    ]);
    return { ...(results[0] as ClaimResult), begin };
  }

  async claimPartitions(
    { name, limits }: Queue,
    partitions: PartitionClaimOptions['partitions'],
    { isInsisting }: ClaimManner,
  ): Promise<ClaimResult[]> {
    const partitionLimits = limits.partition ?? UNLIMITED;
    const options = { queueName: name, limits: limits.whole, partitionLimits, partitions, isInsisting };
    const { results, begin } = await this.#claimWith((terms) =>
      claimPartitions(this.#runtime.database, { ...terms, ...options }),
    );
    await begin();
    return results;
  }

  findPartitions(queueName: string, after: string, limit: number): Promise<string[]> {
    return findWaitingPartitions(this.#runtime.database, { queueName, after, limit });
  }

  countRunning(queueName: string): Promise<number> {
    return countRunning(this.#runtime.database, queueName);
  }

  /** The terms of a claim that is made in the commit of an outcome. */
  newTerms({ name, limits }: Queue, isInsisting: boolean): RefillClaim {
    const { standing } = this.#runtime.lease;
    const changeCount = this.#changeCount;
    return {
      terms: { ...this.#newTerms(), queueName: name, limits: limits.whole, isInsisting },
      standing,
      hasChanged: () => this.#changeCount !== changeCount,
    };
  }

  /** Runs workflows that were claimed with this token. Returns how many run. */
  async launch(
    claimed: readonly Claimed[],
    standing: Standing,
    { owner, isDoubtful = false }: LaunchOptions,
  ): Promise<number> {
    const beginning = this.#beginnings.add(owner, idsOf(claimed));
    if (isDoubtful) beginning.noteChange('');
    this.#fillSlots(claimed);
    return this.#begin(beginning, { claimed, standing });
  }

  /** Returns how many run. */
  async #begin(
    beginning: Beginning,
    what: { readonly claimed: readonly Claimed[]; readonly standing: Standing },
  ): Promise<number> {
    try {
      return await this.#runAll(beginning, what).finally(() => this.#beginnings.end(beginning));
    } catch (error) {
      await this.handBack(beginning.owner);
      throw error;
    } finally {
      this.#releaseSlots(what.claimed);
    }
  }

  #fillSlots(claimed: readonly Claimed[]): void {
    for (const { workflow } of claimed) this.#options.runs.slots.fill(holderOf(workflow));
  }

  /** Of those that have no run. */
  #releaseSlots(claimed: readonly Claimed[]): void {
    const { runs } = this.#options;
    for (const { workflow } of claimed) {
      const [run] = runs.of([workflow.workflowID]);
      if (run?.owner !== workflow.owner) runs.slots.release(holderOf(workflow));
    }
  }

  /** Whether the workflow was claimed and is about to run here. It is no orphan then. */
  isBeginning(owned: Owned): boolean {
    return this.#beginnings.hold(owned);
  }

  /** Workflows were changed from outside; '' stands for any. */
  noteChanges(workflowIDs: readonly string[]): void {
    this.#changeCount += 1;
    this.#beginnings.noteChanges(workflowIDs);
  }

  /**
   * Hands back what was claimed with this token and does not run: the claim may have committed although its answer was lost,
   * or its rows could not be loaded. The session fence keeps a claim that is still on its way from taking effect after this
   * look; without a fence, what it takes is found as an orphan. At a shutdown they are left to the peers, who recover them
   * once this engine is gone.
   */
  async handBack(owner: string): Promise<void> {
    const { database } = this.#runtime;
    const requeue = async () => this.#options.ownership.requeue(await findOwnedWith(database, owner));
    await this.#runtime.retrying(requeue, this.#options.stopping);
  }

  #newTerms(): Terms {
    const { applicationName, applicationVersion, codec, config, registry } = this.#runtime;
    const { workflowKeys: functions, instanceKeys: instances } = registry;
    const owner = this.#runtime.newOwner();
    const { formats } = codec;
    return { owner, executorID: config.executorID, applicationVersion, applicationName, functions, instances, formats };
  }

  async #claimWith(claim: (terms: Terms) => Promise<readonly Claim[]>) {
    const { standing } = this.#runtime.lease;
    const terms = this.#newTerms();
    const beginning = this.#beginnings.add(terms.owner);
    try {
      const claims = await claim(terms);
      const claimed = claims.flatMap((one) => one.claimed);
      beginning.expect(idsOf(claimed));
      this.#beginnings.noteChanges(idsOf(claimed), beginning);
      await this.#failRefused(claims.flatMap(({ refused = [] }) => refused));
      this.#fillSlots(claimed);
      return { results: claims.map(resultOf), begin: () => this.#begin(beginning, { claimed, standing }) };
    } catch (error) {
      this.#beginnings.end(beginning);
      await this.handBack(terms.owner);
      throw error;
    }
  }

  /** Returns how many run. */
  async #runAll(
    beginning: Beginning,
    { claimed, standing }: { readonly claimed: readonly Claimed[]; readonly standing: Standing },
  ): Promise<number> {
    if (claimed.length === 0) return 0;
    const { database } = this.#runtime;
    const alive = await this.#deadLetterExhausted(claimed);
    // DBOS stores inputs in a separate table, even when it postpones a debounced workflow of ours.
    const lacking = alive
      .filter(({ workflow }) => workflow.inputs === null || workflow.isDebounced)
      .map(({ workflow }) => workflow.workflowID);
    const separate = lacking.length === 0 ? new Map<string, string>() : await findSeparateInputs(database, lacking);
    // RETURNING guarantees no order.
    alive.sort((a, b) => compareClaimOrder(a.workflow, b.workflow));
    const sizes = await measureHistories(this.#runtime, idsWithSteps(alive));
    const batches = batchHistories(alive, ({ workflow }) => sizes.get(workflow.workflowID) ?? 0);
    let count = 0;
    for (const [index, batch] of batches.entries()) {
      const invocations = await this.#prepare(batch, { sizes, separate, standing });
      const runs = await this.#launchAll(beginning, invocations);
      count += runs.length;
      if (index < batches.length - 1 && !(await this.#haveReplayed(runs))) break;
    }
    return count;
  }

  /** Reads what the workflows have left. One that cannot be read is dead-lettered, and is not in the way of the others. */
  async #prepare(batch: readonly Claimed[], parts: PreparationParts): Promise<Invocation[]> {
    try {
      return await this.#read(batch, parts);
    } catch (error) {
      if (classifyFailure(error) !== 'final' || error instanceof DatabaseClosedError) throw error;
      if (batch.length > 1) {
        const each = [];
        for (const one of batch) each.push(await this.#prepare([one], parts));
        return each.flat();
      }
      await this.#deadLetter(
        batch,
        (workflowID) =>
          `What workflow "${workflowID}" has stored cannot be read. It is a dead letter: repair its rows, then resume it. ${String(error)}`,
      );
      return [];
    }
  }

  async #read(batch: readonly Claimed[], { sizes, separate, standing }: PreparationParts): Promise<Invocation[]> {
    const histories = await loadHistories(this.#runtime, idsWithSteps(batch), sizes);
    const invocations: Invocation[] = [];
    for (const one of batch) {
      const { workflow } = one;
      const history = histories.get(workflow.workflowID) ?? new History();
      const inputs = separate.get(workflow.workflowID) ?? workflow.inputs;
      const starting = invocationOf(this.#runtime, workflow, { history, inputs, standing });
      const invocation = isPromise(starting) ? await starting : starting;
      if (invocation) invocations.push(invocation);
      else await handBack(this.#runtime.database, [ownedOf(one)]);
    }
    return invocations;
  }

  /**
   * Waits until the runs have replayed their histories, which are out of memory then, or for some time. False at a
   * shutdown: the workflows that are left go back with all others that this engine owns.
   */
  async #haveReplayed(runs: readonly Run[]): Promise<boolean> {
    const { stopping } = this.#options;
    const replayed = Promise.all(runs.flatMap((run) => run.history?.replayed ?? []));
    await withTimeLimit(this.#runtime.clock, REPLAY_MAX_MS, abortable(replayed, stopping), () => {}).catch(() => {});
    return !stopping.aborted;
  }

  /** Dead-letters the workflows that were recovered too often, and returns the rest. */
  async #deadLetterExhausted(claimed: readonly Claimed[]): Promise<Claimed[]> {
    const { registry } = this.#runtime;
    const isExhausted = ({ workflow }: Claimed): boolean => {
      const registration = registry.findWorkflow(workflow.className, workflow.name);
      return registration !== undefined && workflow.recoveryAttempts > maxRecoveryAttempts(registration) + 1;
    };
    const exhausted = claimed.filter(isExhausted);
    if (exhausted.length === 0) return [...claimed];
    await this.#deadLetter(exhausted, (workflowID) => new DBOSMaxRecoveryAttemptsExceededError(workflowID));
    return claimed.filter((one) => !isExhausted(one));
  }

  async #deadLetter(claimed: readonly Claimed[], reasonFor: (workflowID: string) => unknown): Promise<void> {
    const { bus, database, logger } = this.#runtime;
    for (const workflowID of await deadLetterIfOwned(database, claimed.map(ownedOf))) {
      logger.error(reasonFor(workflowID));
      bus.publish(topics.outcomes, workflowID);
    }
  }

  /** Launches the runs whose workflows have not been taken meanwhile, and returns them. */
  async #launchAll(beginning: Beginning, invocations: readonly Invocation[]): Promise<Run[]> {
    const { deadlines, runs, stopping } = this.#options;
    const { bus, database } = this.#runtime;
    const taken = new Set<Run>();
    const all = invocations.map(({ run }) => run);
    let doubtful = beginning.takeDoubtful(all);
    for (let looks = 0; doubtful.length > 0 && looks < LOOKS_MAX; looks += 1) {
      const looked = doubtful;
      for (const run of await this.#runtime.retrying(() => findLost(database, looked), stopping)) taken.add(run);
      doubtful = beginning.takeDoubtful(all);
    }
    for (const run of doubtful) run.doubtOwnership();
    // Those who took them saw their slots in use here.
    const queueNames = new Set([...taken].flatMap(({ queueName }) => queueName ?? []));
    for (const queueName of queueNames) bus.publish(topics.work, { queueName });
    const launched = invocations.filter(({ run }) => !taken.has(run));
    for (const invocation of launched) {
      deadlines.watch(invocation.run);
      runs.launch(invocation);
    }
    return launched.map(({ run }) => run);
  }

  /** Ends workflows that cannot be claimed because of what their rows hold. They would be in the way of all others. */
  async #failRefused(refused: readonly RefusedRow[]): Promise<void> {
    const { bus, codec, database, logger } = this.#runtime;
    for (const { workflowID, serialization, cause } of refused) {
      logger.error(`Workflow "${workflowID}" cannot be claimed, and fails: ${String(cause)}`);
      const { text } = await codec.encodeError(cause, {
        format: serialization === 'portable_json' ? 'portable' : undefined,
      });
      if (await failIfEnqueued(database, workflowID, text)) bus.publish(topics.outcomes, workflowID);
    }
  }
}

function idsOf(claimed: readonly Claimed[]): string[] {
  return claimed.map(({ workflow }) => workflow.workflowID);
}

function idsWithSteps(claimed: readonly Claimed[]): string[] {
  return claimed.filter(({ hasSteps }) => hasSteps).map(({ workflow }) => workflow.workflowID);
}

function holderOf({ workflowID, owner, queueName, queuePartitionKey }: Claimed['workflow']): SlotHolder {
  return { workflowID, owner: owner ?? '', queueName, partitionKey: queuePartitionKey };
}

function ownedOf({ workflow }: Claimed): Owned {
  return { workflowID: workflow.workflowID, owner: workflow.owner ?? '' };
}

function resultOf({ claimed, remainder, hadRoom }: Claim): ClaimResult {
  return { taken: claimed.length, left: remainder, hadRoom };
}
