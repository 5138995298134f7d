// What a workflow has been told and has told others, for people who want to know. In workflow code each is a step.
import { listMessages } from '../store/messages.js';
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
        message: await readable(text, () => engine.codec.decodeValue(text, serialization)),
        createdAtEpochMs: createdAt,
        consumed: isConsumed,
      })),
    );
  });
}
