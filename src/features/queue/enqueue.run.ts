// Enqueues workflows by function name, and many workflows in one commit.
import { newID } from '../../kernel/base/ids.js';
import { checkNames, type EnqueueWorkflowOptions } from './enqueue.js';
import { resolveStartConflict } from './start-conflict.js';
import { DBOSInvalidArgumentError, DBOSQueueDuplicatedError } from '../../kernel/errors/errors.js';
import { statementsOf } from '../history/facts.sql.js';
import { startWrite } from '../history/workflow-facts.sql.js';
import type { NewWorkflow } from '../../run/rows/workflows.js';
import { judgeAllStarts, type StartVerdict } from '../../run/writer/writer-verdicts.js';
import { callersOf, contextOf, isWorkflowCode } from '../../run/ambient.js';
import type { Engine } from '../../run/engine.js';
import type { Handle } from '../../run/handles.js';
import {
  checkParams,
  newWorkflow,
  type Parent,
  type StartRequest,
  type StartWorkflowParams,
} from '../../run/new-workflow.js';
import { own, perform } from '../../run/perform.js';
import { authorizeAndEncode, conflictingStartOf, refuseInStep, startWorkflow } from '../../run/start.js';

/** Enqueues a workflow by the name of its function, which need not be registered here. */
export async function enqueueByName<R>(
  engine: Engine,
  options: EnqueueWorkflowOptions,
  args: unknown[],
  namedArgs?: Record<string, unknown>,
): Promise<Handle<R>> {
  checkNames(options);
  return startWorkflow<R>(engine, { ...toRequest(options), args, namedArgs });
}

function toRequest(options: EnqueueWorkflowOptions): Pick<StartRequest, 'callee' | 'params'> {
  const { deduplicationID, priority, queuePartitionKey, delaySeconds, applicationName } = options;
  return {
    callee: {
      name: options.workflowName,
      className: options.workflowClassName || null,
      configName: options.workflowConfigName || null,
      format: options.serializationType,
    },
    params: {
      workflowID: options.workflowID,
      queueName: options.queueName,
      timeoutMS: options.workflowTimeoutMS,
      enqueueOptions: {
        deduplicationID,
        priority,
        queuePartitionKey,
        delaySeconds,
        applicationName,
        applicationVersion: options.appVersion,
      },
      authenticatedUser: options.authenticatedUser,
      authenticatedRoles: options.authenticatedRoles,
      duplicationPolicy: options.duplicationPolicy,
      workflowIDReusePolicy: options.workflowIDReusePolicy,
      workflowAttributes: options.attributes,
    },
  };
}

/** Rows per statement. They share a creation time, and every claim has to sort rows that share one. */
const ROWS_MAX = 200;

/**
 * Enqueues many workflows in one commit: all of them, or none if one is refused. An ID that is in use gives a handle of
 * the existing workflow, as with a single start. In workflow code it is one recorded operation.
 */
export async function startWorkflows<R>(engine: Engine, requests: readonly StartRequest[]): Promise<Handle<R>[]> {
  const context = contextOf(engine.runtime.registry);
  refuseInStep(context, requests[0]?.callee.name ?? 'workflow');
  const run = isWorkflowCode(context) ? context.run : undefined;
  const parent = run && { run, stepID: run.nextStepID() };
  for (const { params } of requests) {
    checkParams(params, context);
    if (params.queueName === undefined && context?.queueName === undefined) {
      throw new DBOSInvalidArgumentError(
        'startWorkflows enqueues workflows, so it needs a queueName.',
        'params.queueName',
      );
    }
  }
  const enqueue = async (): Promise<string[]> => {
    if (requests.length === 0) return [];
    return insertAll(engine, requests, await toRows(engine, requests, parent));
  };
  const operation = { name: 'DBOS.startWorkflows', stepID: parent?.stepID, isEffect: true };
  const workflowIDs = await (parent ? perform(parent.run, operation, own(enqueue)) : enqueue());
  return workflowIDs.map((workflowID) => engine.handleOfExisting<R>(workflowID));
}

async function toRows(
  engine: Engine,
  requests: readonly StartRequest[],
  parent: Parent | undefined,
): Promise<NewWorkflow[]> {
  const context = contextOf(engine.runtime.registry);
  const workflows: NewWorkflow[] = [];
  for (const [index, request] of requests.entries()) {
    const { assumedRole, inputs } = await authorizeAndEncode(engine, request, context);
    // A child's ID is the same after a recovery, so that none is enqueued twice.
    const ownID = parent ? `${parent.run.childPrefix}-${parent.stepID}-${index}` : newID();
    const workflowID = request.params.workflowID ?? ownID;
    workflows.push(newWorkflow(engine.runtime, { request, context, parent, workflowID, assumedRole, inputs }));
  }
  return workflows;
}

/** Returns the workflow ID for each request, its own or that of the deduplication holder. */
async function insertAll(
  engine: Engine,
  requests: readonly StartRequest[],
  workflows: readonly NewWorkflow[],
): Promise<string[]> {
  refuseRepeated(workflows);
  const verdicts = await callersOf(engine.runtime).retrying(() => insertOrRefuse(engine, requests, workflows));
  engine.queues.announce(workflows.filter((_, index) => verdicts[index]?.kind === 'created'));
  return workflows.map((workflow, index) => {
    const verdict = verdicts[index];
    return verdict?.kind === 'duplicated' ? verdict.holderID : workflow.workflowID;
  });
}

async function insertOrRefuse(
  engine: Engine,
  requests: readonly StartRequest[],
  workflows: readonly NewWorkflow[],
): Promise<StartVerdict[]> {
  const { database } = engine.runtime;
  return database.transaction(async (tx) => {
    const written = [];
    for (const chunk of inChunks(workflows)) {
      const [insert, ...others] = statementsOf(tx.dialect, startWrite, chunk);
      if (insert) written.push(...(await tx.run(insert)));
      for (const statement of others) await tx.run(statement);
    }
    // On the same connection: calls that held one each and waited for a second one could deadlock on the pool.
    const verdicts = await judgeAllStarts({ read: (statement) => tx.run(statement) }, workflows, written);
    verdicts.forEach((verdict, index) => {
      const [request, workflow] = [requests[index], workflows[index]];
      if (request && workflow && verdict.kind !== 'created')
        resolveStartConflict(conflictingStartOf({ engine, request, workflow }), verdict);
    });
    return verdicts;
  });
}

export function inChunks(workflows: readonly NewWorkflow[]): NewWorkflow[][] {
  const count = Math.ceil(workflows.length / ROWS_MAX);
  return Array.from({ length: count }, (_, index) => workflows.slice(index * ROWS_MAX, (index + 1) * ROWS_MAX));
}

/** Workflows of one call must not conflict with each other. */
function refuseRepeated(workflows: readonly NewWorkflow[]): void {
  const ids = new Set<string>();
  const keys = new Set<string>();
  for (const { workflowID, queueName, deduplicationID } of workflows) {
    if (ids.has(workflowID)) {
      throw new DBOSInvalidArgumentError(`Workflow ID "${workflowID}" appears twice in one call.`, 'workflowID');
    }
    ids.add(workflowID);
    if (deduplicationID === null) continue;
    const key = JSON.stringify([queueName, deduplicationID]);
    if (keys.has(key)) throw new DBOSQueueDuplicatedError(workflowID, queueName ?? '', deduplicationID);
    keys.add(key);
  }
}

/** One workflow of a bulk start: its arguments, and its own values for the shared parameters. */
export interface BulkStart<Args extends unknown[]> extends StartWorkflowParams {
  readonly args: Args;
}
