// Rows of `notifications`: messages to workflows. A message is written once, even if the send is retried, and is consumed in
// the commit that holds the receiving step's checkpoint. Consumed messages are kept.
import { UnexplainedRefusalError } from '../../kernel/errors/database-errors.js';
import { nowMs, oneOf, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Executor, Reader, Row } from '../../database/database.js';
import type { Owned } from '../../run/rows/lifecycle.js';
import type { Checkpoint } from '../../run/rows/steps.js';
import { findOwners } from '../../run/rows/owners.js';
import { isOwned } from '../../run/rows/workflows.js';

export interface NewMessage {
  /** Chosen before the write: inserting the same ID again has no effect. */
  readonly messageID: string;
  readonly destinationID: string;
  readonly topic: string;
  readonly text: string;
  readonly serialization: string;
}

/** A message to send; with a sender if it comes from a run. */
export interface Sending {
  readonly message: NewMessage;
  readonly sender?: Owned;
}

/** The result of a send. */
export type SendVerdict =
  /** It is stored, perhaps by an earlier attempt. */
  | 'sent'
  /** The destination does not exist. */
  | 'missing'
  /** The sender no longer owns its workflow. */
  | 'lost';

const newMessageColumns = new TableColumns<NewMessage>([
  ['messageID', 'message_uuid', 'text'],
  ['destinationID', 'destination_uuid', 'text'],
  ['topic', 'topic', 'text'],
  ['text', 'message', 'text'],
  ['serialization', 'serialization', 'text'],
]);

const sendingColumns = [
  ...newMessageColumns.columns,
  { name: 'shift_ms', type: 'bigint' },
  { name: 'workflow_uuid', type: 'text' },
  { name: 'owner_xid', type: 'text' },
] as const;

const messages = table('notifications');
const workflows = table('workflow_status');
const passedColumns = newMessageColumns.pass('r');

/**
 * Inserts the messages whose destination exists and whose sender owns its workflow, and returns their IDs. A message gets a
 * later time than those that are waiting under its key, even within a millisecond.
 */
export function insertMessages(sendings: readonly Sending[]): Sql {
  const shiftsMs = shiftsOf(sendings);
  const data = sendings.map(({ message, sender }, index) => [
    ...newMessageColumns.toValues(message),
    shiftsMs[index] ?? 0,
    sender?.workflowID ?? null,
    sender?.owner ?? null,
  ]);
  return sql`
    INSERT INTO ${messages} (${newMessageColumns.names}, created_at_epoch_ms)
    SELECT ${passedColumns}, r.shift_ms + COALESCE((
      SELECT m.created_at_epoch_ms + 1
      FROM ${messages} AS m
      WHERE m.destination_uuid = r.destination_uuid AND m.topic = r.topic AND m.consumed = FALSE
        AND m.created_at_epoch_ms >= t.now
      ORDER BY m.created_at_epoch_ms DESC, m.message_uuid DESC
      LIMIT 1), t.now)
    FROM ${rows('r', sendingColumns, data)}
    CROSS JOIN (SELECT ${nowMs} AS now) AS t
    WHERE r.destination_uuid = (
      SELECT d.workflow_uuid
      FROM ${workflows} AS d
      WHERE d.workflow_uuid = r.destination_uuid)
      AND (r.workflow_uuid IS NULL OR ${isOwned})
    ON CONFLICT DO NOTHING
    RETURNING message_uuid`;
}

/**
 * Messages of one commit share a time and sort by ID. That is the order in which they were sent, unless the sender chose
 * the IDs: those messages are spaced a millisecond apart.
 */
function shiftsOf(sendings: readonly Sending[]): number[] {
  const lasts = new Map<string, { isChosen: boolean; shiftMs: number }>();
  return sendings.map(({ message }) => {
    const key = messageKey({ workflowID: message.destinationID, topic: message.topic });
    const isChosen = message.messageID.includes('::');
    const last = lasts.get(key);
    const shiftMs = last ? last.shiftMs + (isChosen || last.isChosen ? 1 : 0) : 0;
    lasts.set(key, { isChosen, shiftMs });
    return shiftMs;
  });
}

/**
 * The result of each send, in the same order. Undefined if it was refused without a reason that can be seen, such as a
 * destination that was created meanwhile: the send may be repeated.
 */
export async function judgeMessages(
  database: Reader,
  sendings: readonly Sending[],
  written: readonly Row[],
): Promise<(SendVerdict | undefined)[]> {
  if (written.length === sendings.length) return sendings.map(() => 'sent');
  const sent = new Set(written.map((row) => row['message_uuid'] as string));
  const missing = sendings.filter(({ message }) => !sent.has(message.messageID));
  const there = await database.read(sql`
    SELECT m.message_uuid
    FROM ${messages} AS m
    WHERE m.message_uuid ${oneOf(missing.map(({ message }) => message.messageID))}`);
  for (const row of there) sent.add(row['message_uuid'] as string);
  const workflowIDs = missing.flatMap(({ message, sender }) => [message.destinationID, sender?.workflowID ?? '']);
  const owners = await findOwners(database, workflowIDs);
  const isOwner = ({ workflowID, owner }: Owned): boolean =>
    owners.get(workflowID)?.owner === owner && owners.get(workflowID)?.status === 'PENDING';
  return sendings.map(({ message, sender }): SendVerdict | undefined => {
    if (sent.has(message.messageID)) return 'sent';
    if (sender && !isOwner(sender)) return 'lost';
    return owners.has(message.destinationID) ? undefined : 'missing';
  });
}

/** The same, for callers that can repeat only all sends together. */
export async function judgeAllMessages(
  database: Reader,
  sendings: readonly Sending[],
  written: readonly Row[],
): Promise<SendVerdict[]> {
  const verdicts = await judgeMessages(database, sendings, written);
  return verdicts.map((verdict, index) => {
    if (verdict) return verdict;
    throw new UnexplainedRefusalError(`a message to workflow "${sendings[index]?.message.destinationID}"`);
  });
}

/** Messages per statement of a bulk insert. */
const TOGETHER_MAX = 1000;

/** Inserts all messages in one transaction, or none; then the verdicts say why. `extra` runs in the same transaction. */
export async function insertTogether(
  database: Database,
  sendings: readonly Sending[],
  extra: readonly Sql[] = [],
): Promise<{ readonly verdicts: readonly SendVerdict[]; readonly extra: readonly Row[] }> {
  const refused = new Error('Not all messages could be written.');
  let verdicts: SendVerdict[] = [];
  try {
    return await database.transaction(async (tx) => {
      verdicts = await insertAll(tx, sendings);
      if (verdicts.some((verdict) => verdict !== 'sent')) throw refused;
      const found = [];
      for (const statement of extra) found.push(await tx.run(statement));
      return { verdicts, extra: found[0] ?? [] };
    });
  } catch (error) {
    if (error !== refused) throw error;
    return { verdicts, extra: [] };
  }
}

async function insertAll(tx: Executor, sendings: readonly Sending[]): Promise<SendVerdict[]> {
  const verdicts: SendVerdict[] = [];
  for (let start = 0; start < sendings.length; start += TOGETHER_MAX) {
    const chunk = sendings.slice(start, start + TOGETHER_MAX);
    const written = await tx.run(insertMessages(chunk));
    verdicts.push(...(await judgeAllMessages({ read: (statement) => tx.run(statement) }, chunk, written)));
  }
  return verdicts;
}

/** The key under which a workflow receives messages. */
export interface MessageKey {
  readonly workflowID: string;
  readonly topic: string;
}

/** The key as sent in notifications. */
export function messageKey({ workflowID, topic }: MessageKey): string {
  return `${workflowID}::${topic}`;
}

export interface StoredMessage {
  readonly messageID: string;
  readonly text: string;
  readonly serialization: string | null;
}

const storedMessageColumns = new TableColumns<StoredMessage>([
  ['messageID', 'message_uuid', 'text'],
  ['text', 'message', 'text'],
  ['serialization', 'serialization', 'text'],
]);

const keyColumns = [
  { name: 'ordinal', type: 'int' },
  { name: 'workflow_id', type: 'text' },
  { name: 'topic', type: 'text' },
] as const;

const selectedMessage = storedMessageColumns.select('n');

/** The oldest unconsumed message of each key, in the same order. Uses idx_notifications_unconsumed. */
export async function findOldestMessages(
  database: Reader,
  keys: readonly MessageKey[],
): Promise<(StoredMessage | undefined)[]> {
  const data = keys.map(({ workflowID, topic }, ordinal) => [ordinal, workflowID, topic]);
  const found = await database.read(sql`
    SELECT r.ordinal, ${selectedMessage}
    FROM ${rows('r', keyColumns, data)}
    JOIN ${messages} AS n ON n.message_uuid = (
      SELECT m.message_uuid
      FROM ${messages} AS m
      WHERE m.destination_uuid = r.workflow_id AND m.topic = r.topic AND m.consumed = FALSE
      ORDER BY m.created_at_epoch_ms, m.message_uuid
      LIMIT 1)`);
  const byOrdinal = new Map(found.map((row) => [row['ordinal'], storedMessageColumns.toRecord(row)]));
  return keys.map((_, ordinal) => byOrdinal.get(ordinal));
}

const receiptColumns = [
  { name: 'workflow_uuid', type: 'text' },
  { name: 'owner_xid', type: 'text' },
  { name: 'message_id', type: 'text' },
  { name: 'step_id', type: 'int' },
] as const;

/** Marks the messages in the checkpoints as consumed, unless they already are. Runs before the checkpoints' insert. */
export function consumeMessages(receipts: readonly Checkpoint[]): Sql {
  const data = receipts.map(({ owner, step, receivedID = '' }) => [step.workflowID, owner, receivedID, step.stepID]);
  return sql`
    UPDATE ${messages} AS m
    SET consumed = TRUE, consumed_by_function_id = r.step_id
    FROM ${rows('r', receiptColumns, data)}
    WHERE m.message_uuid = r.message_id AND m.destination_uuid = r.workflow_uuid AND m.consumed = FALSE AND ${isOwned}`;
}

/** A message, for inspection. */
export interface MessageRecord extends Omit<StoredMessage, 'messageID'> {
  readonly topic: string | null;
  readonly createdAt: number;
  readonly isConsumed: boolean;
}

const recordColumns = new TableColumns<MessageRecord>([
  ['topic', 'topic', 'text'],
  ['text', 'message', 'text'],
  ['serialization', 'serialization', 'text'],
  ['createdAt', 'created_at_epoch_ms', 'bigint'],
  ['isConsumed', 'consumed', 'bool'],
]);

const selectedRecord = recordColumns.select('m');

/** All messages to the workflow, oldest first. */
export async function listMessages(database: Database, workflowID: string): Promise<MessageRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedRecord}
    FROM ${messages} AS m
    WHERE m.destination_uuid = ${workflowID}
    ORDER BY m.created_at_epoch_ms, m.message_uuid`);
  return found.map((row) => recordColumns.toRecord(row));
}
