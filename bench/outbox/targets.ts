// The brokers that the outbox relays to.
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { connect as connectRabbitMQ } from 'amqplib';
import { Redis } from 'ioredis';
import { nats } from '../../src/plugins/outbox/relays/nats.js';
import { rabbitMQ } from '../../src/plugins/outbox/relays/rabbitmq.js';
import { redisStream } from '../../src/plugins/outbox/relays/redis.js';
import type { RelayTarget } from '../../src/plugins/outbox/relays/target.js';
import type { RelayBroker } from './commands.js';

interface OpenTarget {
  readonly target: RelayTarget<unknown>;
  close(): Promise<void>;
}

export function openTarget(broker: RelayBroker, port: number, topic: string): Promise<OpenTarget> {
  return OPEN[broker](port, topic);
}

const OPEN: Readonly<Record<RelayBroker, (port: number, topic: string) => Promise<OpenTarget>>> = {
  async rabbitmq(port, topic) {
    const connection = await connectRabbitMQ(`amqp://127.0.0.1:${port}`);
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue(topic, { durable: true });
    return { target: rabbitMQ(channel), close: () => connection.close() };
  },
  async nats(port, topic) {
    const connection = await connectNats({ servers: `127.0.0.1:${port}` });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: 'orders', subjects: [topic] });
    return { target: nats(jetstream(connection)), close: () => connection.close() };
  },
  async redis(port, topic) {
    const client = new Redis(port, '127.0.0.1');
    return { target: redisStream(client, { stream: topic }), close: async () => client.disconnect() };
  },
};
