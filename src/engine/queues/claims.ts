// From a claim to runs: loads the histories and inputs of all claimed workflows at once, dead-letters those that were
// recovered too often, and runs the rest.
import { abortable } from '../../base/abortable.js';
import { withTimeLimit } from '../../base/time-limit.js';
import { creatorOf } from '../../model/creator.js';
import { DBOSMaxRecoveryAttemptsExceededError } from '../../model/errors/errors.js';
import { UNLIMITED } from '../../model/queues.js';
import type { StepRecord, WorkflowRecord } from '../../model/records.js';
import type { ClaimRemainder, Share } from '../../store/queues/claim-limits.js';
import {
  type Claim,
  type Claimed,
  type ClaimOptions,
  claimPartitions,
  claimWorkflows,
  findSeparateInputs,
  type PartitionClaimOptions,
} from '../../store/queues/claims.js';
import { findOwnedWith, deadLetterIfOwned, handBack, type Owned } from '../../store/runs/lifecycle.js';
import { topics } from '../../store/notify/topics.js';
import { findWaitingPartitions } from '../../store/queues/waiting-work.js';
import { findCrossedBranches } from '../history/crossed-branches.js';
import { History } from '../history/history.js';
import { batchesBySize, HISTORY_BATCH_BYTES } from '../history/batches.js';
import { loadSteps, measureSteps } from '../../store/runs/steps.js';
import type { Context } from '../runs/ambient.js';
import type { Deadlines } from '../runs/deadlines.js';
import type { Ownership } from '../runs/ownership.js';
import type { Runs } from '../runs/runs.js';
import type { Runtime } from '../runtime.js';
import type { Queue } from './known-queues.js';
import type { ClaimSource } from './queue-claims.js';
import { maxRecoveryAttempts, type WorkflowRegistration } from '../registration/registry.js';
import { Run } from '../runs/run.js';
import { argumentsOf } from '../runs/arguments.js';

interface Callee {
  readonly registration: WorkflowRegistration;
  /** What the function is called on: a configured instance, or the class of a static method. */
  readonly target: unknown;
}

/** How many workflows a claim got, and what it left. */
export interface ClaimResult {
  readonly taken: number;
  readonly left: ClaimRemainder;
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

type Terms = Omit<ClaimOptions, 'queueName' | 'limit' | 'limits' | 'share'>;

export class Claims implements ClaimSource {
  readonly #options: ClaimsOptions;
  readonly #runtime: Runtime;

  constructor(options: ClaimsOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
  }

  async claim(queue: Queue, limit: number, share: Share | undefined): Promise<ClaimResult> {
    const options = { queueName: queue.name, limits: queue.limits.whole, limit, share };
    const [result] = await this.#claimWith(async (terms) => [
      await claimWorkflows(this.#runtime.database, { ...terms, ...options }),
    ]);
    return result as ClaimResult;
  }

  claimPartitions({ name, limits }: Queue, partitions: PartitionClaimOptions['partitions']): Promise<ClaimResult[]> {
    const partitionLimits = limits.partition ?? UNLIMITED;
    const options = { queueName: name, limits: limits.whole, partitionLimits, partitions };
    return this.#claimWith((terms) => claimPartitions(this.#runtime.database, { ...terms, ...options }));
  }

  findPartitions(queueName: string, after: string, limit: number): Promise<string[]> {
    return findWaitingPartitions(this.#runtime.database, { queueName, after, limit });
  }

  async #claimWith(claim: (terms: Terms) => Promise<readonly Claim[]>): Promise<ClaimResult[]> {
    const { applicationName, applicationVersion, config, database, registry } = this.#runtime;
    const owner = this.#runtime.newOwner();
    const { workflowKeys: functions, instanceKeys: instances } = registry;
    const terms = { owner, executorID: config.executorID, applicationVersion, applicationName, functions, instances };
    try {
      const claims = await claim(terms);
      await this.#runAll(claims.flatMap(({ claimed }) => claimed));
      return claims.map(({ claimed, remainder }) => ({ taken: claimed.length, left: remainder }));
    } catch (error) {
      // The claim may have committed although its answer was lost, or its rows could not be loaded. The session fence
      // keeps a claim that is still on its way from taking effect after this look; without a fence, what it takes is
      // found as an orphan. At a shutdown they are left to the peers, who recover them once this engine is gone.
      const requeue = async () => this.#options.ownership.requeue(await findOwnedWith(database, owner));
      await this.#runtime.retrying(requeue, this.#options.stopping);
      throw error;
    }
  }

  async #runAll(claimed: readonly Claimed[]): Promise<void> {
    if (claimed.length === 0) return;
    const { database } = this.#runtime;
    const alive = await this.#deadLetterExhausted(claimed);
    // DBOS stores inputs in a separate table, even when it postpones a debounced workflow of ours.
    const lacking = alive
      .filter(({ workflow }) => workflow.inputs === null || workflow.isDebounced)
      .map(({ workflow }) => workflow.workflowID);
    const separate = lacking.length === 0 ? new Map<string, string>() : await findSeparateInputs(database, lacking);
    // RETURNING guarantees no order.
    alive.sort((a, b) => compareClaimOrder(a.workflow, b.workflow));
    const batches = await this.#batchesOf(alive);
    for (const [index, batch] of batches.entries()) {
      const started = idsWithSteps(batch);
      const histories = groupSteps(started.length === 0 ? [] : await loadSteps(database, started));
      const runs: (Run | undefined)[] = [];
      for (const one of batch) {
        const { workflow } = one;
        const history = histories.get(workflow.workflowID) ?? new Map<number, StepRecord>();
        runs.push(await this.#run(one, history, separate.get(workflow.workflowID) ?? workflow.inputs));
      }
      if (index < batches.length - 1 && !(await this.#haveReplayed(runs))) return;
    }
  }

  /** Those whose histories fit into memory together. */
  async #batchesOf(claimed: readonly Claimed[]): Promise<Claimed[][]> {
    const started = idsWithSteps(claimed);
    if (started.length === 0) return [[...claimed]];
    const sizes = await measureSteps(this.#runtime.database, started);
    return batchesBySize(claimed, ({ workflow }) => sizes.get(workflow.workflowID) ?? 0, HISTORY_BATCH_BYTES);
  }

  /**
   * Waits until the runs have replayed their histories, which are out of memory then, or for some time. False at a
   * shutdown: the workflows that are left go back with all others that this engine owns.
   */
  async #haveReplayed(runs: readonly (Run | undefined)[]): Promise<boolean> {
    const { stopping } = this.#options;
    const replayed = Promise.all(runs.flatMap((run) => run?.history?.replayed ?? []));
    await withTimeLimit(this.#runtime.clock, REPLAY_MAX_MS, abortable(replayed, stopping), () => {}).catch(() => {});
    return !stopping.aborted;
  }

  /** Dead-letters the workflows that were recovered too often, and returns the rest. */
  async #deadLetterExhausted(claimed: readonly Claimed[]): Promise<Claimed[]> {
    const { bus, database, logger, registry } = this.#runtime;
    const isExhausted = ({ workflow }: Claimed): boolean => {
      const registration = registry.findWorkflow(workflow.className, workflow.name);
      return registration !== undefined && workflow.recoveryAttempts > maxRecoveryAttempts(registration) + 1;
    };
    const exhausted = claimed.filter(isExhausted);
    if (exhausted.length === 0) return [...claimed];
    for (const workflowID of await deadLetterIfOwned(database, exhausted.map(ownedOf))) {
      logger.error(new DBOSMaxRecoveryAttemptsExceededError(workflowID));
      bus.publish(topics.outcomes, workflowID);
    }
    return claimed.filter((one) => !isExhausted(one));
  }

  async #run(claimed: Claimed, history: Map<number, StepRecord>, inputs: string | null): Promise<Run | undefined> {
    const runtime = this.#runtime;
    const { workflow } = claimed;
    const callee = findCallee(runtime, workflow);
    if (!callee) {
      await handBack(runtime.database, [ownedOf(claimed)]);
      return undefined;
    }
    const run = new Run({
      runtime,
      registration: callee.registration,
      workflowID: workflow.workflowID,
      owner: workflow.owner ?? '',
      creator: creatorOf(workflow),
      history: new History(history),
      deadlineAt: workflow.deadlineAt,
      isPortable: workflow.serialization === 'portable_json',
      queueName: workflow.queueName,
      partitionKey: workflow.queuePartitionKey,
    });
    this.#warnOfCrossedBranches(workflow, history);
    const args = await readArguments(runtime, workflow, inputs);
    this.#options.deadlines.watch(run);
    void this.#options.runs.launch({ run, target: callee.target, args, context: contextOf(runtime, run, workflow) });
    return run;
  }

  /** The replay cannot tell, so say it here. */
  #warnOfCrossedBranches({ workflowID }: WorkflowRecord, history: ReadonlyMap<number, StepRecord>): void {
    const crossed = findCrossedBranches(history);
    if (!crossed) return;
    const { name, stepIDs, besideID } = crossed;
    this.#runtime.logger.warn(
      `Workflow "${workflowID}" is recovered, and its operations ${stepIDs.join(' and ')}, both "${name}", ran beside operation ` +
        `${besideID} in an order that depended on timing. If they are in different branches under Promise.all, they may ` +
        "get each other's results. Use DBOS.parallel for branches of several operations.",
    );
  }
}

function idsWithSteps(claimed: readonly Claimed[]): string[] {
  return claimed.filter(({ hasSteps }) => hasSteps).map(({ workflow }) => workflow.workflowID);
}

function ownedOf({ workflow }: Claimed): Owned {
  return { workflowID: workflow.workflowID, owner: workflow.owner ?? '' };
}

/** The order in which a claim takes workflows from a queue. */
function compareClaimOrder(a: WorkflowRecord, b: WorkflowRecord): number {
  const byTime = a.priority - b.priority || a.createdAt - b.createdAt;
  if (byTime !== 0) return byTime;
  const [first, second] = [a.creator ?? a.workflowID, b.creator ?? b.workflowID];
  return first < second ? -1 : 1;
}

function groupSteps(steps: readonly StepRecord[]): Map<string, Map<number, StepRecord>> {
  const groups = new Map<string, Map<number, StepRecord>>();
  for (const step of steps) {
    const group = groups.get(step.workflowID) ?? new Map<number, StepRecord>();
    groups.set(step.workflowID, group.set(step.stepID, step));
  }
  return groups;
}

function findCallee(runtime: Runtime, workflow: WorkflowRecord): Callee | undefined {
  const registration = runtime.registry.findWorkflow(workflow.className, workflow.name);
  const target =
    registration?.isInstance === true
      ? runtime.registry.findInstance(workflow.className ?? '', workflow.configName ?? '')
      : registration?.ownerClass;
  if (registration && (target !== undefined || !registration.isInstance)) {
    return { registration, target };
  }
  runtime.logger.warn(
    `Workflow "${workflow.workflowID}" needs ${workflow.className ?? ''}.${workflow.name} of instance ` +
      `"${workflow.configName ?? ''}", which is not registered here. It goes back to its queue for another executor.`,
  );
  return undefined;
}

/** The decoded arguments, or the error of decoding them. */
async function readArguments(
  runtime: Runtime,
  workflow: WorkflowRecord,
  inputs: string | null,
): Promise<unknown[] | Error> {
  try {
    if (inputs === null) return [];
    return argumentsOf(await runtime.codec.decodeInputs(inputs, workflow.serialization));
  } catch (error) {
    return error as Error;
  }
}

function contextOf(runtime: Runtime, run: Run, workflow: WorkflowRecord): Context {
  return {
    runtime,
    run,
    authenticatedUser: workflow.authenticatedUser ?? '',
    authenticatedRoles: JSON.parse(workflow.authenticatedRoles || '[]') as string[],
    assumedRole: workflow.assumedRole ?? '',
  };
}
