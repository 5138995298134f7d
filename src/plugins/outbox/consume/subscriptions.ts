// The subscriptions of an outbox, and the consumers that serve them.
import type { Handoff, UserFunction } from '../../../run/plugin.js';
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import type { OutboxDataSource } from '../database.js';
import { INTERNAL_TOPIC, workOf } from '../publish/forwarding.js';
import { isCopy, subscriptionQueue, type Topic, topicOf } from '../topic.js';
import type { Consumer, ConsumerHost } from './consumer.js';
import { DueRows } from './due-rows.js';
import { beginHandoff, type Work } from './handoff.js';
import type { Handler } from './handling.js';
import { LeasedConsumer } from './leased-consumer.js';
import { bodyOf, infoOf } from './message.js';
import {
  type HandlerOptions,
  handlerSettings,
  type HandlerSettings,
  WORKFLOW_OPTIONS,
  type WorkflowOptions,
} from './options.js';
import { isPattern, PatternConsumer } from '../relays/pattern-consumer.js';
import { split } from './splitting.js';

export type Subscription =
  | {
      readonly kind: 'handler';
      readonly topic: Topic;
      readonly name: string | undefined;
      readonly handler: Handler<unknown>;
      readonly settings: HandlerSettings;
      /** The handler gets the payload as bytes. */
      readonly isRaw: boolean;
      /** Called after the consumers have stopped. */
      readonly close?: () => Promise<void>;
    }
  | {
      readonly kind: 'workflow';
      readonly topic: Topic;
      readonly name: string | undefined;
      readonly workflow: UserFunction;
      readonly options: WorkflowOptions<unknown>;
    };

/** Messages per transaction of a handoff. The cost per message falls up to about here. */
const HANDOFF_BATCH = 500;
/** Messages per transaction of a split, and of what `start` and `send` have published. */
const BATCH = 100;

export function handlerSubscription(
  source: OutboxDataSource,
  topic: Topic,
  {
    handler,
    options,
    isRaw = false,
    close,
  }: {
    readonly handler: Handler<unknown>;
    readonly options: HandlerOptions;
    readonly isRaw?: boolean;
    readonly close?: () => Promise<void>;
  },
): Subscription {
  const settings = handlerSettings(options, source);
  return { kind: 'handler', topic, name: options.subscription, handler, settings, isRaw, ...(close && { close }) };
}

export function workflowSubscription(
  topic: Topic,
  workflow: UserFunction,
  options: WorkflowOptions<unknown>,
): Subscription {
  WORKFLOW_OPTIONS.read(options, 'options');
  return { kind: 'workflow', topic, name: options.subscription, workflow, options };
}

/** Refuses a second subscription that would compete with the first for the topic's messages. */
export function refuseCompetitor(all: readonly Subscription[], added: Subscription): void {
  const others = all.filter(({ topic }) => topic.name === added.topic.name);
  if (others.every(({ name }) => name !== undefined && name !== added.name) && isNamed(others, added)) return;
  throw new InvalidOutboxError(
    `Topic "${added.topic.name}" has another subscription. Name each with the option subscription, so that both get every message.`,
  );
}

/** Only relays take patterns: a handler expects bodies of one type. */
export function refusePattern({ topic: { name } }: Subscription): void {
  if (!isPattern(name)) return;
  throw new InvalidOutboxError(`"${name}" is a pattern, and only a relay can subscribe to those. Name one topic.`);
}

function isNamed(others: readonly Subscription[], { name }: Subscription): boolean {
  return others.length === 0 || name !== undefined;
}

export interface ServingParts {
  readonly host: ConsumerHost;
  readonly engine: Handoff;
  readonly wake: (queue: string) => void;
  /** Makes the engine serve a queue for the workflows, and returns its name. */
  readonly serveQueue: (functionName: string, options: WorkflowOptions<unknown>) => string;
}

/** The consumers of all subscriptions, and that of what `start` and `send` have published. */
export function consumersOf(parts: ServingParts, subscriptions: readonly Subscription[]): Consumer[] {
  const topics = new Map(subscriptions.map(({ topic }) => [topic.name, topic]));
  const consumers = [forwarder(parts)];
  for (const topic of topics.values()) {
    if (isPattern(topic.name)) continue;
    const own = subscriptions.filter((subscription) => subscription.topic.name === topic.name);
    const names = [...new Set([...own.flatMap(({ name }) => name ?? []), ...(topic.options.subscribers ?? [])])];
    if (names.length > 0) consumers.push(splitter(parts, topic, names));
    for (const subscription of own) consumers.push(consumerOf(parts, subscription, names));
  }
  for (const subscription of subscriptions) {
    if (isPattern(subscription.topic.name)) consumers.push(patternConsumer(parts, subscription, topics));
  }
  return consumers;
}

function consumerOf(parts: ServingParts, subscription: Subscription, names: readonly string[]): Consumer {
  const { topic, name } = subscription;
  if (name === undefined && names.length > 0) {
    throw new InvalidOutboxError(`Topic "${topic.name}" has named subscribers. Name this subscription too.`);
  }
  const queue = name === undefined ? topic.name : subscriptionQueue(topic.name, name);
  if (subscription.kind === 'workflow') return workflowConsumer(parts, queue, subscription);
  const { handler, settings, isRaw } = subscription;
  return new LeasedConsumer(parts.host, { topic, queue, handler, settings, isRaw });
}

/** Topics that have a subscription of their own here, and copies for named subscribers, are left to those. */
function patternConsumer(
  parts: ServingParts,
  subscription: Subscription,
  topics: ReadonlyMap<string, Topic>,
): PatternConsumer {
  return new PatternConsumer(parts.host, {
    pattern: subscription.topic.name,
    isServed: (name) => topics.has(name) || name === INTERNAL_TOPIC.name || isCopy(name),
    consumerOf: (name) => consumerOf(parts, { ...subscription, topic: topicOf(name) }, []),
  });
}

function splitter({ host, wake }: ServingParts, topic: Topic, names: readonly string[]): Consumer {
  const queues = names.map((name) => subscriptionQueue(topic.name, name));
  const { dialect } = host.database;
  return new DueRows(host, {
    topic: topic.name,
    queue: topic.name,
    batch: BATCH,
    begin: async () => (tx, pick) => split(tx, pick, { dialect, queues, wake }),
  });
}

function workflowConsumer(
  { host, engine, serveQueue }: ServingParts,
  queue: string,
  { topic, workflow, options }: Extract<Subscription, { kind: 'workflow' }>,
): Consumer {
  const functionName = engine.fullNameOf(workflow);
  const queueName = serveQueue(functionName, options);
  const isOrdered = options.order === 'key';
  const prepare = async (row: Parameters<typeof infoOf>[0]): Promise<Work> => {
    const body = await bodyOf(row, topic);
    const info = infoOf(row, topic.name);
    const workflowID = options.id?.(body, info) ?? `outbox-${functionName}-${row.messageID}`;
    const queuePartitionKey = isOrdered ? (row.key ?? '') : undefined;
    return {
      kind: 'workflows',
      prepared: [await engine.prepare(workflow, [body, info], { queueName, workflowID, queuePartitionKey })],
    };
  };
  return new DueRows(host, {
    topic: topic.name,
    queue,
    batch: options.batch ?? HANDOFF_BATCH,
    begin: () => beginHandoff({ host, engine, prepare, isOrdered }),
  });
}

/** Serves what `start` and `send` have published. */
function forwarder({ host, engine }: ServingParts): Consumer {
  return new DueRows(host, {
    topic: INTERNAL_TOPIC.name,
    queue: INTERNAL_TOPIC.name,
    batch: BATCH,
    begin: () => beginHandoff({ host, engine, prepare: workOf, isOrdered: false }),
  });
}
