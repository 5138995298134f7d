// A broker in memory behind the interface of `kafkajs`: one partition a topic, groups with offsets, one member at a time.
import type { Consumer, ConsumerRunConfig, EachBatchPayload } from 'kafkajs';
import type { KafkaClient } from '../../../src/plugins/receiver/adapters/kafka.js';

interface Stored {
  readonly offset: string;
  readonly value: Buffer;
}

export class FakeKafka {
  readonly #topics = new Map<string, Stored[]>();
  /** By group and topic: the next offset to read. */
  readonly #committed = new Map<string, number>();
  /** By group: the members; the first one has the partitions. */
  readonly #members = new Map<string, Member[]>();
  #isUp = true;

  createTopic(topic: string): void {
    this.#topics.set(topic, []);
  }

  publish(topic: string, texts: readonly string[]): void {
    const stored = this.#topics.get(topic) ?? [];
    for (const text of texts) stored.push({ offset: String(stored.length), value: Buffer.from(text) });
    this.#wake();
  }

  /** As if the broker had gone: consumers crash, and nobody can connect. */
  stop(): void {
    this.#isUp = false;
    for (const member of [...this.#members.values()].flat()) member.crash(new Error('ECONNREFUSED'));
    this.#members.clear();
  }

  start(): void {
    this.#isUp = true;
  }

  client(): KafkaClient {
    return { consumer: (config) => new Member(this, config?.groupId ?? '') as unknown as Consumer };
  }

  join(member: Member, topics: readonly string[]): void {
    if (!this.#isUp) throw new Error('ECONNREFUSED');
    const missing = topics.find((topic) => !this.#topics.has(topic));
    if (missing !== undefined) throw new Error(`This server does not host the topic "${missing}"`);
    this.#members.set(member.groupId, [...(this.#members.get(member.groupId) ?? []), member]);
  }

  leave(member: Member): void {
    const left = (this.#members.get(member.groupId) ?? []).filter((other) => other !== member);
    this.#members.set(member.groupId, left);
    this.#wake();
  }

  check(): void {
    if (!this.#isUp) throw new Error('ECONNREFUSED');
  }

  next(member: Member, topic: string): Stored[] {
    if (this.#members.get(member.groupId)?.[0] !== member) return [];
    return this.#topics.get(topic)?.slice(this.#committed.get(`${member.groupId} ${topic}`) ?? 0) ?? [];
  }

  commit(member: Member, topic: string, offset: number): void {
    if (this.#isUp) this.#committed.set(`${member.groupId} ${topic}`, offset + 1);
  }

  #wake(): void {
    for (const member of [...this.#members.values()].flat()) member.wake();
  }
}

class Member {
  readonly events = { CRASH: 'consumer.crash' } as const;
  readonly #broker: FakeKafka;
  readonly #onCrash: ((event: { payload: { error: Error } }) => void)[] = [];
  #topics: string[] = [];
  #loop: Promise<void> = Promise.resolve();
  #isRunning = false;
  #wakeUp: () => void = () => {};

  constructor(
    broker: FakeKafka,
    readonly groupId: string,
  ) {
    this.#broker = broker;
  }

  async connect(): Promise<void> {
    this.#broker.check();
  }

  async subscribe({ topics }: { topics: string[] }): Promise<void> {
    this.#broker.join(this, topics);
    this.#topics = topics;
  }

  on(_: string, listener: (event: { payload: { error: Error } }) => void): void {
    this.#onCrash.push(listener);
  }

  async run(config: ConsumerRunConfig): Promise<void> {
    this.#isRunning = true;
    this.#loop = this.#consume(config);
  }

  async #consume({ eachBatch }: ConsumerRunConfig): Promise<void> {
    while (this.#isRunning) {
      for (const topic of this.#topics) {
        const messages = this.#broker.next(this, topic);
        if (messages.length === 0) continue;
        let resolved = -1;
        await eachBatch?.({
          batch: { topic, partition: 0, messages },
          resolveOffset: (offset: string) => (resolved = Number(offset)),
          heartbeat: async () => {},
          isRunning: () => this.#isRunning,
          isStale: () => false,
        } as unknown as EachBatchPayload);
        if (resolved >= 0) this.#broker.commit(this, topic, resolved);
      }
      const hasMore = this.#topics.some((topic) => this.#broker.next(this, topic).length > 0);
      if (this.#isRunning && !hasMore) await new Promise<void>((resolve) => (this.#wakeUp = resolve));
    }
  }

  wake(): void {
    this.#wakeUp();
  }

  crash(error: Error): void {
    this.#isRunning = false;
    this.wake();
    for (const listener of this.#onCrash) listener({ payload: { error } });
  }

  async disconnect(): Promise<void> {
    this.#isRunning = false;
    this.wake();
    await this.#loop;
    this.#broker.leave(this);
  }
}
