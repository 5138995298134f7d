// From a claimed row to a run: history and inputs are loaded for all of a claim at once, the dead letters are set aside,
// and the rest is run.
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
import { deadLetterIfOwned, findOwnedWith, handBack } from '../../store/runs/lifecycle.js';
import { loadSteps } from '../../store/runs/steps.js';
import type { Context } from '../runs/ambient.js';
import type { Engine } from '../engine.js';
import type { Queue } from './queues.js';
import { maxRecoveryAttempts, type WorkflowRegistration } from '../registration/registry.js';
import { Run } from '../runs/run.js';
import { argumentsOf } from '../runs/start.js';

interface Callee {
  readonly registration: WorkflowRegistration;
  /** The instance or class that the function is called on. */
  readonly target: unknown;
}

/** What became of a claim. */
export interface ClaimResult {
  readonly taken: number;
  readonly left: ClaimRemainder;
}

/** Claims at most `limit` workflows of a queue and begins to run them. */
export async function claimAndRun(
  engine: Engine,
  queue: Queue,
  limit: number,
  share: Share | undefined,
): Promise<ClaimResult> {
  const [result] = await claimWith(engine, async (terms) => [
    await claimWorkflows(engine.store.database, {
      ...terms,
      queueName: queue.name,
      limits: queue.limits.whole,
      limit,
      share,
    }),
  ]);
  return result as ClaimResult;
}

/** Claims from several partitions of a queue and begins to run what it gets. */
export function claimPartitionsAndRun(
  engine: Engine,
  { name, limits }: Queue,
  partitions: PartitionClaimOptions['partitions'],
): Promise<ClaimResult[]> {
  const options = { queueName: name, limits: limits.whole, partitionLimits: limits.partition ?? UNLIMITED, partitions };
  return claimWith(engine, (terms) => claimPartitions(engine.store.database, { ...terms, ...options }));
}

type Terms = Omit<ClaimOptions, 'queueName' | 'limit' | 'limits' | 'share'>;

async function claimWith(engine: Engine, claim: (terms: Terms) => Promise<readonly Claim[]>): Promise<ClaimResult[]> {
  const owner = engine.newOwner();
  const { executorID, name: applicationName } = engine.config;
  const { applicationVersion } = engine;
  const { workflowKeys: functions, instanceKeys: instances } = engine.registry;
  try {
    const claims = await claim({ owner, executorID, applicationVersion, applicationName, functions, instances });
    await runAll(
      engine,
      claims.flatMap(({ claimed }) => claimed),
    );
    return claims.map(({ claimed, remainder }) => ({ taken: claimed.length, left: remainder }));
  } catch (error) {
    // The claim may have happened although its answer was lost, or its rows could not be loaded. At a shutdown they are
    // left to those who find out that this engine is gone.
    const giveBack = async () => engine.giveBack(await findOwnedWith(engine.store.database, owner));
    await engine.retrying(giveBack, engine.queueing.stopping);
    throw error;
  }
}

async function runAll(engine: Engine, claimed: readonly Claimed[]): Promise<void> {
  if (claimed.length === 0) return;
  const { database } = engine.store;
  const alive = await deadLetterExhausted(engine, claimed);
  const begun = alive.filter(({ hasSteps }) => hasSteps).map(({ workflow }) => workflow.workflowID);
  const histories = groupSteps(begun.length === 0 ? [] : await loadSteps(database, begun));
  // Another library puts the input into a table of its own, also when it puts off a debounced workflow of ours.
  const lacking = alive
    .filter(({ workflow }) => workflow.inputs === null || workflow.isDebounced)
    .map(({ workflow }) => workflow.workflowID);
  const separate = lacking.length === 0 ? new Map<string, string>() : await findSeparateInputs(database, lacking);
  // RETURNING promises no order.
  alive.sort((a, b) => compareTurns(a.workflow, b.workflow));
  for (const one of alive) {
    const { workflow } = one;
    const history = histories.get(workflow.workflowID) ?? new Map<number, StepRecord>();
    const inputs = separate.get(workflow.workflowID) ?? workflow.inputs;
    await runClaimed(engine, one, history, inputs);
  }
}

/** The order in which a claim takes workflows from a queue. */
function compareTurns(a: WorkflowRecord, b: WorkflowRecord): number {
  const byTime = a.priority - b.priority || a.createdAt - b.createdAt;
  if (byTime !== 0) return byTime;
  const [first, second] = [a.creator ?? a.workflowID, b.creator ?? b.workflowID];
  return first < second ? -1 : 1;
}

/** Moves what has been tried too often to the dead letters and returns the rest. */
async function deadLetterExhausted(engine: Engine, claimed: readonly Claimed[]): Promise<Claimed[]> {
  const isDead = ({ workflow }: Claimed): boolean => {
    const registration = engine.registry.findWorkflow(workflow.className, workflow.name);
    return registration !== undefined && workflow.recoveryAttempts > maxRecoveryAttempts(registration) + 1;
  };
  const dead = claimed.filter(isDead);
  if (dead.length === 0) return [...claimed];
  const owned = dead.map(({ workflow }) => ({ workflowID: workflow.workflowID, owner: workflow.owner ?? '' }));
  for (const workflowID of await deadLetterIfOwned(engine.store.database, owned)) {
    engine.logger.error(new DBOSMaxRecoveryAttemptsExceededError(workflowID));
    engine.watches.onEnded(workflowID);
  }
  return claimed.filter((one) => !isDead(one));
}

function groupSteps(steps: readonly StepRecord[]): Map<string, Map<number, StepRecord>> {
  const groups = new Map<string, Map<number, StepRecord>>();
  for (const step of steps) {
    const group = groups.get(step.workflowID) ?? new Map<number, StepRecord>();
    groups.set(step.workflowID, group.set(step.stepID, step));
  }
  return groups;
}

async function runClaimed(
  engine: Engine,
  claimed: Claimed,
  history: ReadonlyMap<number, StepRecord>,
  inputs: string | null,
): Promise<void> {
  const { workflow, remainingMs } = claimed;
  const callee = findCallee(engine, workflow);
  if (!callee) {
    const owned = [{ workflowID: workflow.workflowID, owner: workflow.owner ?? '' }];
    await handBack(engine.store.database, owned);
    return;
  }
  const run = new Run({
    engine,
    registration: callee.registration,
    workflowID: workflow.workflowID,
    owner: workflow.owner ?? '',
    history,
    deadlineAt: workflow.deadlineAt,
    isPortable: workflow.serialization === 'portable_json',
    queueName: workflow.queueName,
    partitionKey: workflow.queuePartitionKey,
  });
  const args = await readArguments(engine, workflow, inputs);
  engine.deadlines.watch(run, remainingMs);
  engine.launchRun({ run, target: callee.target, args, context: contextOf(engine, run, workflow) });
}

function findCallee(engine: Engine, workflow: WorkflowRecord): Callee | undefined {
  const registration = engine.registry.findWorkflow(workflow.className, workflow.name);
  const target =
    registration?.isInstance === true
      ? engine.registry.findInstance(workflow.className ?? '', workflow.configName ?? '')
      : registration?.ownerClass;
  if (registration && (target !== undefined || !registration.isInstance)) {
    return { registration, target };
  }
  engine.logger.warn(
    `Workflow "${workflow.workflowID}" needs ${workflow.className ?? ''}.${workflow.name} of instance ` +
      `"${workflow.configName ?? ''}", which is not registered here. It is left to another executor.`,
  );
  return undefined;
}

/** The arguments, or the error that they cannot be read with. */
async function readArguments(
  engine: Engine,
  workflow: WorkflowRecord,
  inputs: string | null,
): Promise<unknown[] | Error> {
  try {
    if (inputs === null) return [];
    return argumentsOf(await engine.codec.decodeInputs(inputs, workflow.serialization));
  } catch (error) {
    return error as Error;
  }
}

function contextOf(engine: Engine, run: Run, workflow: WorkflowRecord): Context {
  return {
    engine,
    run,
    authenticatedUser: workflow.authenticatedUser ?? '',
    authenticatedRoles: JSON.parse(workflow.authenticatedRoles || '[]') as string[],
    assumedRole: workflow.assumedRole ?? '',
  };
}
