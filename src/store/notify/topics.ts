// What processes tell each other: one topic a kind of fact, with its channel and the form of its payload. A notification
// is a hint to look, never the data itself: it can be lost, doubled or forged.
import { INTERNAL_QUEUE } from '../runs/lifecycle.js';

export interface Topic<Payload> {
  /** The Postgres channel that carries it. */
  readonly channel: string;
  encode(payload: Payload): string;
  /** Throws if the text is not of this topic. */
  decode(text: string): Payload;
  /** Set if '' stands for more than can be named: then anything may have changed. */
  readonly isOpen?: true;
}

/** A queue, or one partition of it. Without a name it is the internal queue. */
export interface QueueKey {
  readonly queueName: string | null;
  readonly partitionKey?: string | null;
}

/** Longer keys would not fit into a notification. */
const PARTITION_KEY_MAX = 1000;

export const topics = {
  /** A process waits for the outcome of this workflow. */
  interest: textTopic('everstep_interest'),
  /** This workflow has ended; '' for many. */
  outcomes: { ...textTopic('everstep_outcomes'), isOpen: true },
  /** This workflow was changed from outside its run: cancelled, resumed, rewound, deleted or taken over; '' for many. */
  changes: { ...textTopic('everstep_changes'), isOpen: true },
  /** An engine was launched: its incarnation. */
  executors: textTopic('everstep_executors'),
  /** Work waits in this queue. */
  work: queueTopic('everstep_queues'),
  /** The queues in the database have changed. */
  queueChanges: textTopic('everstep_queue_changes'),
  /** A workflow was delayed, or its delay has changed. */
  delays: textTopic('everstep_delays'),
  /** This schedule has changed; '' for several. */
  schedules: textTopic('everstep_schedules'),
  /** A message waits under this key. This channel and the next two belong to the shared schema. */
  messages: textTopic('dbos_notifications_channel'),
  /** This event was set. */
  events: textTopic('dbos_workflow_events_channel'),
  /** This stream has grown. */
  streams: textTopic('dbos_streams_channel'),
} as const;

export const CHANNELS: readonly string[] = Object.values(topics).map(({ channel }) => channel);

/** The payload is the text itself; '' where the topic alone says it all. */
function textTopic(channel: string): Topic<string> {
  return { channel, encode: (text) => text, decode: (text) => text };
}

function queueTopic(channel: string): Topic<QueueKey> {
  return { channel, encode: encodeQueueKey, decode: decodeQueueKey };
}

/** Without the partition key, engines find out for themselves which partitions have work. */
function encodeQueueKey({ queueName, partitionKey }: QueueKey): string {
  const key = partitionKey != null && partitionKey.length <= PARTITION_KEY_MAX ? partitionKey : undefined;
  return JSON.stringify([queueName ?? INTERNAL_QUEUE, key]);
}

function decodeQueueKey(text: string): QueueKey {
  const [queueName, partitionKey] = JSON.parse(text) as unknown[];
  if (!isKey(queueName)) throw new TypeError('The payload names no queue.');
  // Any role that may connect can send one. A key that Postgres cannot compare would fail every claim of its queue.
  return {
    queueName,
    partitionKey: isKey(partitionKey) && partitionKey.length <= PARTITION_KEY_MAX ? partitionKey : undefined,
  };
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0');
}
