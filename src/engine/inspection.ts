// What a workflow has been told and has told others, for people who want to know. In workflow code each is a step.
import { listEvents } from '../store/events.js';
import { listMessages } from '../store/messages.js';
import { isClosingText, listStreamValues, type StoredStreamValue } from '../store/streams.js';
import type { Engine } from './engine.js';
import { NO_TOPIC } from './messages.js';
import { operation } from './operation.js';
import { readable } from './status.js';

/** A message as `getAllNotifications` shows it. */
export interface NotificationInfo {
  /** null for a message without one. */
  readonly topic: string | null;
  readonly message: unknown;
  readonly createdAtEpochMs: number;
  readonly consumed: boolean;
}

/** All messages to the workflow, the oldest first. */
export function getAllNotifications(engine: Engine, workflowID: string): Promise<NotificationInfo[]> {
  return operation({ name: 'DBOS.getAllNotifications', isEffect: false }, async () => {
    const messages = await engine.retrying(() => listMessages(engine.store.database, workflowID));
    return Promise.all(
      messages.map(async ({ topic, text, serialization, createdAt, isConsumed }) => ({
        topic: topic === NO_TOPIC ? null : topic,
        message: await read(engine, { text, serialization }),
        createdAtEpochMs: createdAt,
        consumed: isConsumed,
      })),
    );
  });
}

/** The events of the workflow, by key. */
export function getAllEvents(engine: Engine, workflowID: string): Promise<Record<string, unknown>> {
  return operation({ name: 'DBOS.getAllEvents', isEffect: false }, async () => {
    const events = await engine.retrying(() => listEvents(engine.store.database, workflowID));
    const entries = events.map(async (event) => [event.key, await read(engine, event)] as const);
    return Object.fromEntries(await Promise.all(entries));
  });
}

/** The values of each stream of the workflow, up to its end. */
export function getAllStreamEntries(engine: Engine, workflowID: string): Promise<Record<string, unknown[]>> {
  return operation({ name: 'DBOS.getAllStreamEntries', isEffect: false }, async () => {
    const values = await engine.retrying(() => listStreamValues(engine.store.database, workflowID));
    const streams = new Map<string, unknown[]>();
    const closed = new Set<string>();
    for (const value of values) {
      const entries = streams.get(value.key) ?? [];
      streams.set(value.key, entries);
      if (isClosingText(value.text)) closed.add(value.key);
      if (!closed.has(value.key)) entries.push(await read(engine, value));
    }
    return Object.fromEntries(streams);
  });
}

async function read(engine: Engine, { text, serialization }: StoredStreamValue): Promise<unknown> {
  return readable(text, () => engine.codec.decodeValue(text, serialization));
}
