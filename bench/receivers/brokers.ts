// The brokers whose receivers are measured, and how they are filled.
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { connect as connectRabbitMQ } from 'amqplib';
import { Redis } from 'ioredis';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import { NatsReceiver } from '../../src/plugins/receiver/adapters/nats.js';
import { RabbitMQReceiver } from '../../src/plugins/receiver/adapters/rabbitmq.js';
import { RedisReceiver } from '../../src/plugins/receiver/adapters/redis.js';
import { type BrokerServer, startNats, startRabbitMQ, startRedis } from '../../test/plugins/receiver/servers.js';

export type Work = (...args: never[]) => Promise<unknown>;

export interface Place {
  readonly port: number;
  readonly topic: string;
  /** Where the workflows go, and how many may wait there. */
  readonly options?: { readonly queueName: string; readonly maxQueueDepth: number };
}

export interface MeasuredBroker {
  readonly name: string;
  readonly programs: readonly string[];
  start(): Promise<BrokerServer>;
  /** Sends messages of about 100 bytes. */
  fill(port: number, topic: string, count: number): Promise<void>;
  receive(dbos: DBOSInstance, work: Work, place: Place): void;
}

const CHUNK = 500;
const body = (n: number): string => JSON.stringify({ n, text: 'x'.repeat(80) });
const chunks = (count: number): number[][] =>
  Array.from({ length: Math.ceil(count / CHUNK) }, (_, chunk) =>
    Array.from({ length: Math.min(CHUNK, count - chunk * CHUNK) }, (__, index) => chunk * CHUNK + index),
  );

const rabbitmq: MeasuredBroker = {
  name: 'RabbitMQ',
  programs: ['rabbitmq-server', 'epmd'],
  start: startRabbitMQ,
  async fill(port, topic, count) {
    const connection = await connectRabbitMQ(`amqp://127.0.0.1:${port}`);
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue(topic, { durable: true });
    for (const chunk of chunks(count)) {
      for (const n of chunk) {
        channel.sendToQueue(topic, Buffer.from(body(n)), { persistent: true, messageId: String(n) });
      }
      await channel.waitForConfirms();
    }
    await connection.close();
  },
  receive(dbos, work, { port, topic, options }) {
    new RabbitMQReceiver(`amqp://127.0.0.1:${port}`, { dbos }).registerConsumer(work, { queue: topic, ...options });
  },
};

const nats: MeasuredBroker = {
  name: 'NATS JetStream',
  programs: ['nats-server'],
  start: startNats,
  async fill(port, topic, count) {
    const connection = await connectNats({ servers: `127.0.0.1:${port}` });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: topic, subjects: [`${topic}.>`] });
    const stream = jetstream(connection);
    for (const chunk of chunks(count)) await Promise.all(chunk.map((n) => stream.publish(`${topic}.new`, body(n))));
    await connection.close();
  },
  receive(dbos, work, { port, topic, options }) {
    const receiver = new NatsReceiver({ servers: `127.0.0.1:${port}` }, { dbos });
    receiver.registerConsumer(work, { stream: topic, ...options, ackWaitMs: 2000 });
  },
};

const redis: MeasuredBroker = {
  name: 'Redis Streams',
  programs: ['redis-server'],
  start: startRedis,
  async fill(port, topic, count) {
    const client = new Redis(port, '127.0.0.1');
    for (const chunk of chunks(count)) await Promise.all(chunk.map((n) => client.xadd(topic, '*', 'body', body(n))));
    client.disconnect();
  },
  receive(dbos, work, { port, topic, options }) {
    const receiver = new RedisReceiver({ host: '127.0.0.1', port }, { dbos });
    receiver.registerConsumer(work, { stream: topic, ...options, claimAfterMs: 2000 });
  },
};

export const BROKERS: readonly MeasuredBroker[] = [rabbitmq, nats, redis];
