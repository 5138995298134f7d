// What processes tell each other: one topic a kind of fact, with its channel and the form of its payload. A notification
// is a hint to look, never the data itself: it can be lost, doubled or forged.
import { newID } from '../../kernel/base/ids.js';
import { INTERNAL_QUEUE } from '../../features/queue/queue.js';

export interface Topic<Payload> {
  /** The Postgres channel that carries it. */
  readonly channel: string;
  encode(payload: Payload): string;
  /** Throws if the text is not of this topic. */
  decode(text: string): Payload;
  /** Names the notification, so that engines can refer to it. */
  name?(payload: Payload): Payload;
  /** What it is about. A notification that has not been sent yet gives way to a later one of the same subject. */
  subject?(payload: Payload): string;
  /** Set if '' stands for more than can be named: then anything may have changed. */
  readonly isOpen?: true;
}

/** A queue, or one partition of it. Without a name it is the internal queue. */
export interface QueueKey {
  readonly queueName: string | null;
  readonly partitionKey?: string | null;
}

/** Work in a queue, as it was announced. Other programs give no name. */
export interface Announcement extends QueueKey {
  readonly name?: string;
}

/** An engine has claimed what was announced under these names. */
export interface Claimed extends QueueKey {
  readonly names: readonly string[];
  /** Stands for the functions and the version of the engine, which can say nothing about other work. */
  readonly ability: string;
}

/** Longer keys would not fit into a notification. */
const PARTITION_KEY_MAX = 1000;
const NAME_MAX = 100;

export const topics = {
  /** A process waits for the outcomes of these workflows. */
  interest: listTopic('everstep_interest'),
  /** This workflow has ended; '' for many. */
  outcomes: { ...textTopic('everstep_outcomes'), isOpen: true },
  /** This workflow was changed from outside its run: cancelled, resumed, rewound, deleted or taken over; '' for many. */
  changes: { ...textTopic('everstep_changes'), isOpen: true },
  /** An engine was launched: its incarnation. */
  executors: textTopic('everstep_executors'),
  /** Work waits in this queue. */
  work: workTopic('everstep_queues'),
  /** Work that was announced has been claimed, and nothing is left. */
  claimed: claimedTopic('everstep_claimed'),
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

function listTopic(channel: string): Topic<readonly string[]> {
  return {
    channel,
    encode: (texts) => JSON.stringify(texts),
    decode: (text) => {
      const texts: unknown = JSON.parse(text);
      if (!Array.isArray(texts)) throw new TypeError('The payload is no list.');
      return texts.filter((one) => typeof one === 'string');
    },
  };
}

const names = { prefix: newID().slice(-8), count: 0 };

function workTopic(channel: string): Topic<Announcement> {
  const subject = ({ queueName, partitionKey }: QueueKey) => JSON.stringify(encodedKey({ queueName, partitionKey }));
  return {
    channel,
    name: (announced) => {
      if (announced.name !== undefined) return announced;
      names.count += 1;
      return { ...announced, name: `${names.prefix}${names.count.toString(36)}` };
    },
    subject,
    encode: ({ name, ...key }) => (name === undefined ? subject(key) : JSON.stringify([...encodedKey(key), name])),
    decode: (text) => {
      const [queueName, partitionKey, name] = JSON.parse(text) as unknown[];
      return { ...decodedKey(queueName, partitionKey), name: isName(name) ? name : undefined };
    },
  };
}

function claimedTopic(channel: string): Topic<Claimed> {
  return {
    channel,
    encode: ({ names: claimed, ability, ...key }) => JSON.stringify([...encodedKey(key), ability, ...claimed]),
    decode: (text) => {
      const [queueName, partitionKey, ability, ...claimed] = JSON.parse(text) as unknown[];
      if (!isName(ability)) throw new TypeError('The payload names no ability.');
      return { ...decodedKey(queueName, partitionKey), names: claimed.filter(isName), ability };
    },
  };
}

/** Without the partition key, engines find out for themselves which partitions have work. */
function encodedKey({ queueName, partitionKey }: QueueKey): [string, string | undefined] {
  const key = partitionKey != null && partitionKey.length <= PARTITION_KEY_MAX ? partitionKey : undefined;
  return [queueName ?? INTERNAL_QUEUE, key];
}

function decodedKey(queueName: unknown, partitionKey: unknown): QueueKey {
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

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= NAME_MAX;
}
