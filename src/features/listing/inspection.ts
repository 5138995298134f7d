// Reads one workflow with its messages, events and streams.
import { listEvents } from '../message/events.sql.js';
import { listMessages } from '../message/messages.sql.js';
import {
  isClosingText,
  listStreamPage,
  listStreamValues,
  type StoredStreamValue,
  type StreamPageQuery,
} from '../message/streams.sql.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import { explainRecords } from './explained-records.js';
import { NO_TOPIC } from '../message/messages.js';
import type { Operator } from '../../operator/operator.js';
import { readable, toStatus, type WorkflowStatus } from './status.js';

/** The workflow's current state; null if it does not exist. */
export async function getWorkflow(operator: Operator, workflowID: string): Promise<WorkflowStatus | null> {
  const [record] = await operator.retrying(() => findWorkflows(operator.database, [workflowID]));
  const [explained] = record ? await explainRecords(operator, [record]) : [];
  return explained ? toStatus(operator.codec, explained) : null;
}

/** A message, as `getAllNotifications` returns it. */
export interface NotificationInfo {
  /** Null for a message without a topic. */
  readonly topic: string | null;
  readonly message: unknown;
  readonly createdAtEpochMs: number;
  readonly consumed: boolean;
}

/** All messages sent to the workflow, oldest first. */
export async function getAllNotifications(operator: Operator, workflowID: string): Promise<NotificationInfo[]> {
  const messages = await operator.retrying(() => listMessages(operator.database, workflowID));
  return Promise.all(
    messages.map(async ({ topic, text, serialization, createdAt, isConsumed }) => ({
      topic: topic === NO_TOPIC ? null : topic,
      message: await read(operator, { text, serialization }),
      createdAtEpochMs: createdAt,
      consumed: isConsumed,
    })),
  );
}

/** The events of the workflow, by key. */
export async function getAllEvents(operator: Operator, workflowID: string): Promise<Record<string, unknown>> {
  const events = await operator.retrying(() => listEvents(operator.database, workflowID));
  const entries = events.map(async (event) => [event.key, await read(operator, event)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

/** The values of each stream of the workflow, up to its end. */
export async function getAllStreamEntries(operator: Operator, workflowID: string): Promise<Record<string, unknown[]>> {
  const values = await operator.retrying(() => listStreamValues(operator.database, workflowID));
  const streams = new Map<string, unknown[]>();
  const closed = new Set<string>();
  for (const value of values) {
    const entries = streams.get(value.key) ?? [];
    streams.set(value.key, entries);
    if (isClosingText(value.text)) closed.add(value.key);
    if (!closed.has(value.key)) entries.push(await read(operator, value));
  }
  return Object.fromEntries(streams);
}

export interface StreamPage {
  readonly values: readonly { readonly offset: number; readonly value: unknown }[];
  /** Pass it as `after` for the next values; null if there are none yet. */
  readonly nextAfter: number | null;
}

/** Some values of a stream, up to its end. */
export async function getStreamPage(operator: Operator, query: StreamPageQuery): Promise<StreamPage> {
  const { limit } = query;
  // One more shows whether there are others behind it.
  const asked = { ...query, limit: limit + 1 };
  const found = await operator.retrying(() => listStreamPage(operator.database, asked));
  const closedAt = found.findIndex(({ text }) => isClosingText(text));
  const open = closedAt < 0 ? found : found.slice(0, closedAt);
  const page = open.slice(0, limit);
  const values = await Promise.all(
    page.map(async ({ offset, ...stored }) => ({ offset, value: await read(operator, stored) })),
  );
  return { values, nextAfter: open.length > limit ? (page.at(-1)?.offset ?? null) : null };
}

async function read({ codec }: Operator, { text, serialization }: StoredStreamValue): Promise<unknown> {
  return readable(text, () => codec.decodeValue(text, serialization));
}
