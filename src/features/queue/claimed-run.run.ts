// From a claimed row to a run: finds its function, and reads its arguments and its caller. A row that cannot be read, or
// whose caller lacks the required role, becomes a run that ends with the error. It must not fail the claim of the others.
import { andThen, type MaybePromise, orElse } from '../../kernel/codec/maybe-promise.js';
import { creatorOf } from '../../kernel/workflow/creator.js';
import type { StepRecord, WorkflowRecord } from '../../kernel/workflow/records.js';
import { readRoles } from '../../kernel/workflow/roles.js';
import { findCrossedBranches } from '../../run/history/crossed-branches.js';
import type { History } from '../../run/history/history.js';
import { authorize } from '../../run/registration/authorization.js';
import type { WorkflowRegistration } from '../../run/registration/registry.js';
import type { Context } from '../../run/ambient.js';
import { argumentsOf } from '../../run/arguments.js';
import type { Invocation } from '../../run/execute.js';
import { Run } from '../../run/run.js';
import type { Standing } from '../liveness/lease.run.js';
import type { Runtime } from '../../run/runtime.js';

interface Callee {
  readonly registration: WorkflowRegistration;
  /** What the function is called on: a configured instance, or the class of a static method. */
  readonly target: unknown;
}

/** What an earlier run left, and the input, which may be in a separate table. */
interface ClaimedState {
  readonly history: History;
  readonly inputs: string | null;
  /** Before the claim. */
  readonly standing: Standing;
}

/** What is needed of a row to run it. */
type ClaimedRow = Pick<
  WorkflowRecord,
  | 'workflowID'
  | 'name'
  | 'className'
  | 'configName'
  | 'owner'
  | 'creator'
  | 'deadlineAt'
  | 'serialization'
  | 'queueName'
  | 'queuePartitionKey'
  | 'authenticatedUser'
  | 'authenticatedRoles'
  | 'assumedRole'
> &
  Partial<Pick<WorkflowRecord, 'createdAt' | 'recoveryAttempts'>>;

/** How to run a claimed workflow. Undefined if its function is not registered here. */
export function invocationOf(
  runtime: Runtime,
  workflow: ClaimedRow,
  { history, inputs, standing }: ClaimedState,
): MaybePromise<Invocation | undefined> {
  const callee = findCallee(runtime, workflow);
  if (!callee) return undefined;
  const run = new Run({
    runtime,
    registration: callee.registration,
    workflowID: workflow.workflowID,
    owner: workflow.owner ?? '',
    creator: workflow.creator ?? creatorOf({ creator: null, createdAt: workflow.createdAt ?? 0 }),
    history,
    deadlineAt: workflow.deadlineAt,
    isPortable: workflow.serialization === 'portable_json',
    queueName: workflow.queueName,
    partitionKey: workflow.queuePartitionKey,
    standing,
  });
  run.journal.begin(workflow.recoveryAttempts ?? 1);
  if (!history.isEmpty) warnOfCrossedBranches(runtime, workflow, history.records);
  const { target } = callee;
  const context = contextOf(run, workflow);
  if (context instanceof Error) return { run, target, args: context, context: { runtime, run } };
  return andThen(readArguments(runtime, workflow, inputs), (args) => ({ run, target, args, context }));
}

function findCallee(runtime: Runtime, workflow: ClaimedRow): Callee | undefined {
  const registration = runtime.registry.findWorkflow(workflow.className, workflow.name);
  const isOfInstance = registration?.isInstance === true || (registration?.isMethod === true && !!workflow.configName);
  const target = isOfInstance
    ? runtime.registry.findInstance(workflow.className ?? '', workflow.configName ?? '')
    : registration?.ownerClass;
  if (registration && (target !== undefined || !isOfInstance)) {
    return { registration, target };
  }
  runtime.logger.warn(
    `Workflow "${workflow.workflowID}" needs ${workflow.className ?? ''}.${workflow.name} of instance ` +
      `"${workflow.configName ?? ''}", which is not registered here. It goes back to its queue for another executor.`,
  );
  return undefined;
}

/**
 * The user and roles that the workflow runs for, or why it cannot run for them. Roles are checked again here: a client, SQL
 * or a call by name enqueues without knowing the function.
 */
function contextOf(run: Run, workflow: ClaimedRow): Context | Error {
  const { runtime, registration } = run;
  try {
    const context = {
      runtime,
      run,
      authenticatedUser: workflow.authenticatedUser ?? '',
      authenticatedRoles: readRoles(workflow.authenticatedRoles),
      assumedRole: workflow.assumedRole ?? '',
    };
    const assumedRole = authorize(runtime, registration, context);
    return assumedRole === context.assumedRole ? context : { ...context, assumedRole };
  } catch (error) {
    return error as Error;
  }
}

/** The decoded arguments, or the error of decoding them. */
function readArguments(
  { codec }: Runtime,
  { serialization }: ClaimedRow,
  inputs: string | null,
): MaybePromise<unknown[] | Error> {
  if (inputs === null) return [];
  return orElse<unknown[] | Error>(
    () => andThen(codec.decodeInputs(inputs, serialization), argumentsOf),
    (error) => error as Error,
  );
}

/** The replay cannot tell, so say it here. */
function warnOfCrossedBranches({ logger }: Runtime, { workflowID }: ClaimedRow, history: Iterable<StepRecord>): void {
  const crossed = findCrossedBranches(history);
  if (!crossed) return;
  const { name, stepIDs, besideID } = crossed;
  logger.warn(
    `Workflow "${workflowID}" is recovered, and its operations ${stepIDs.join(' and ')}, both "${name}", ran beside operation ` +
      `${besideID} in an order that depended on timing. If they are in different branches under Promise.all, they may ` +
      "get each other's results. Use DBOS.parallel for branches of several operations.",
  );
}
