// Enqueues and sends without an engine's context: in its own commit, or in the caller's transaction.
import { type Arguments, checkNames, type EnqueueWorkflowOptions, toEnqueued } from '../../features/queue/enqueue.js';
import { resolveStartConflict } from '../../features/queue/start-conflict.js';
import {
  type BulkMessage,
  checkMessage,
  encodeMessage,
  keyOfMessage,
  missingDestinations,
} from '../../features/message/messages.js';
import { announceQueued } from '../../operator/announcements.js';
import type { Operator } from '../../operator/operator.js';
import { refuseMissingKey } from '../../features/queue/queue-target.js';
import { DBOSInvalidArgumentError, DBOSInvalidWorkflowTransitionError } from '../../kernel/errors/errors.js';
import { limitsOf } from '../../features/queue/queue.js';
import { borrow, type BorrowedConnection } from '../../database/transactions/borrowed.js';
import type { Reader } from '../../database/database.js';
import { insertMessages, judgeAllMessages } from '../../features/message/messages.sql.js';
import { findQueue } from '../../features/queue/queues.sql.js';
import type { Store } from '../../run/writer/store.js';
import { topics } from '../../database/notify/topics.js';
import { insertWorkflows, type NewWorkflow } from '../../run/rows/workflows.js';
import { judgeAllStarts } from '../../run/writer/writer-verdicts.js';
import type { ClientOperator } from './client-operator.js';

/** An operator that can write: a client, or an engine. */
export interface StoreOperator extends Operator {
  readonly store: Store;
}

export interface Debouncing {
  /** How long calls may postpone the workflow; null for no limit. */
  readonly timeoutMs: number | null;
}

/** Enqueues a workflow and returns its ID, or that of the existing workflow used instead. */
export async function enqueue(
  operator: StoreOperator,
  options: EnqueueWorkflowOptions,
  given: Arguments & { readonly debouncing?: Debouncing },
): Promise<string> {
  checkNames(options);
  refuseLoneDuplicationPolicy(options);
  const { debouncing } = given;
  const row = await toEnqueued(operator, options, given);
  const workflow = debouncing ? { ...row, isDebounced: true, debounceMs: debouncing.timeoutMs } : row;
  await operator.retrying(() => refuseMissingPartition(operator.database, workflow));
  const { writer } = operator.store;
  await writer.room({ isFromOutside: true });
  const verdict = await writer.inTime(workflow, writer.start(workflow, { isFromOutside: true }));
  if (verdict.kind === 'created') {
    announceQueued(operator.bus, [workflow]);
    return workflow.workflowID;
  }
  return resolveStartConflict(conflictingStartOf(operator, options, workflow), verdict);
}

function conflictingStartOf({ logger }: StoreOperator, options: EnqueueWorkflowOptions, workflow: NewWorkflow) {
  const { duplicationPolicy, workflowIDReusePolicy } = options;
  return { logger, workflow, duplicationPolicy, workflowIDReusePolicy };
}

function refuseLoneDuplicationPolicy({ duplicationPolicy, deduplicationID }: EnqueueWorkflowOptions): void {
  if (duplicationPolicy !== 'return-existing' || deduplicationID !== undefined) return;
  throw new DBOSInvalidWorkflowTransitionError("duplicationPolicy 'return-existing' needs a deduplicationID.");
}

/** Refuses a workflow without a key, which would never be claimed from a partitioned queue. */
async function refuseMissingPartition(reader: Reader, { queueName, queuePartitionKey }: NewWorkflow): Promise<void> {
  if (queuePartitionKey !== null || queueName === null) return;
  const record = await findQueue(reader, queueName);
  const isPartitioned = record !== null && limitsOf(record).partition !== null;
  refuseMissingKey({ queueName, partitionKey: queuePartitionKey, isPartitioned });
}

/** Enqueues in the caller's transaction: the workflow exists if and when that commits. */
export async function enqueueIn(
  operator: ClientOperator,
  connection: BorrowedConnection,
  { options, ...given }: Arguments & { readonly options: EnqueueWorkflowOptions },
): Promise<string> {
  if (options.duplicationPolicy === 'return-existing') {
    throw new DBOSInvalidArgumentError(
      "duplicationPolicy 'return-existing' is not supported in a caller's transaction.",
      'options.duplicationPolicy',
    );
  }
  const workflow = await toEnqueued(operator, options, given);
  const tx = await borrow(operator.database, connection);
  // On the same connection: if callers like this one hold the whole pool, waiting for a second one would deadlock.
  const reader: Reader = { read: (statement) => tx.run(statement) };
  await refuseMissingPartition(reader, workflow);
  const written = await tx.run(insertWorkflows([workflow]));
  const [verdict] = await judgeAllStarts(reader, [workflow], written);
  if (verdict && verdict.kind !== 'created')
    return resolveStartConflict(conflictingStartOf(operator, options, workflow), verdict);
  const { status, queueName, queuePartitionKey } = workflow;
  if (status === 'DELAYED') await operator.bus.publishIn(tx, topics.delays, '');
  else await operator.bus.publishIn(tx, topics.work, { queueName, partitionKey: queuePartitionKey });
  return workflow.workflowID;
}

/** Sends a message in a commit shared with the client's other pending writes. */
export async function send(operator: StoreOperator, outgoing: BulkMessage): Promise<void> {
  checkMessage(outgoing);
  const message = await encodeMessage(operator.codec, outgoing, outgoing.serializationType);
  const { writer } = operator.store;
  await writer.room({ isFromOutside: true });
  const sending = { sending: { message }, isAnnounced: true };
  const { sent } = await writer.inTime(sending, writer.send(sending, { isFromOutside: true }));
  if (sent === 'missing') throw missingDestinations([message]);
  operator.watchers.onSent(keyOfMessage(message), { isAnnounced: true });
}

/** Sends in the caller's transaction. On Postgres the table's trigger notifies the receiver at commit. */
export async function sendIn(
  operator: StoreOperator,
  connection: BorrowedConnection,
  outgoing: BulkMessage,
): Promise<void> {
  checkMessage(outgoing);
  const message = await encodeMessage(operator.codec, outgoing, outgoing.serializationType);
  const tx = await borrow(operator.database, connection);
  const written = await tx.run(insertMessages([{ message }]));
  const [verdict] = await judgeAllMessages({ read: (statement) => tx.run(statement) }, [{ message }], written);
  if (verdict === 'missing') throw missingDestinations([message]);
}
