// Topics: a name, and the type of the messages published under it.
import type { InputSchema } from '../../run/plugin.js';
import { func, objectWith, optional, record, array, string, checkThat } from '../../kernel/check/validation.js';

/** What is published to and subscribed to. The name is the `queue` of the table. */
export interface Topic<T = unknown> {
  readonly name: string;
  readonly options: TopicOptions<T>;
}

export interface TopicOptions<T> {
  /** Checks bodies before they are published, and before they are handled. An object with `parse`, or a Standard Schema. */
  readonly schema?: InputSchema;
  /** The ordering key of a body. */
  key?(body: T): string | undefined;
  /** Names of subscriptions that other programs serve. Each gets a copy of every message. */
  readonly subscribers?: readonly string[];
}

/** The length of the column. */
export const NAME_MAX = 255;

export const topicName = string({ min: 1, max: NAME_MAX });
const SCHEMA = checkThat<InputSchema>(
  'an object with parse, or a Standard Schema',
  (value) =>
    objectWith('parse').accepts(value) || (typeof value === 'object' && value !== null && '~standard' in value),
);
const OPTIONS = record({
  schema: optional(SCHEMA),
  key: optional(func),
  subscribers: optional(array(topicName)),
});

/** Separates the topic from the subscription in the queue of a copy. */
const SEPARATOR = '#';

export function topic<T = unknown>(name: string, options: TopicOptions<T> = {}): Topic<T> {
  topicName.read(name, 'name');
  OPTIONS.read(options, 'options');
  return { name, options };
}

/** The topic, or the topic of this name. */
export function topicOf<T>(given: Topic<T> | string): Topic<T> {
  return typeof given === 'string' ? topic<T>(given) : given;
}

/** Whether the queue holds copies for one of several subscriptions. */
export function isCopy(queue: string): boolean {
  return queue.includes(SEPARATOR);
}

/** The queue of the copies for one of several subscriptions. */
export function subscriptionQueue(topicName: string, subscription: string): string {
  return `${topicName}${SEPARATOR}${subscription}`;
}
