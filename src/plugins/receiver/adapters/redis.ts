// The adapter for Redis Streams: a consumer group reads a stream. Entries that a consumer has read stay pending until
// it acknowledges them; those of a dead consumer are claimed by another one after a while.
import { Redis, type RedisOptions } from 'ioredis';
import { type DurationText, inMs } from '../../../kernel/base/duration.js';
import { newID } from '../../../kernel/base/ids.js';
import type { Adapter, ConnectContext, ConsumerOptions, Source } from '../adapter.js';
import { checkDuration, Receiver, type ReceiverSettings } from '../receiver.js';

/** An entry of a stream. */
export interface RedisMessage {
  readonly stream: string;
  readonly group: string;
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface RedisConsumerOptions extends ConsumerOptions<RedisMessage> {
  readonly stream: string;
  /** The consumer group, created with the stream if it is missing. Default: named after the function. */
  readonly group?: string;
  /** Where a new group starts: at the first entry, or with new ones only. Default: `first`. */
  readonly startFrom?: 'first' | 'new';
  /** Entries that another consumer has left pending for this long are claimed. Default: 60000. */
  readonly claimAfterMs?: number | DurationText;
  /** A name that survives restarts and that no other process uses. Pending entries are then read first, in order. */
  readonly consumerName?: string;
}

/** The stream for dead letters, with `deadLetter: 'broker'`. */
const DEAD_SUFFIX = ':dead';
const BLOCK_MS = 5_000;
const CLAIM_AFTER_MS = 60_000;
/** A read that is this much later than its block time means that the connection is dead. */
const LATENESS_MAX_MS = 10_000;

/** Removes a consumer unless it has pending entries, which would be lost with it. */
const REMOVE_CONSUMER = `
  if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
    return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
  end`;

type Entry = [id: string, fields: string[] | null];

/** Receives from Redis Streams. `config` is what the constructor of `ioredis` takes. */
export class RedisReceiver extends Receiver<RedisMessage, RedisConsumerOptions> {
  constructor(config: string | RedisOptions, settings?: ReceiverSettings) {
    super(redisAdapter(config), settings);
  }
}

export function redisAdapter(config: string | RedisOptions): Adapter<RedisMessage, RedisConsumerOptions> {
  // Kept across reconnects: pending entries belong to the consumer name.
  const names = new WeakMap<RedisConsumerOptions, string>();
  return {
    name: 'redis',
    optionNames: ['stream', 'group', 'startFrom', 'claimAfterMs', 'consumerName'],
    check: ({ claimAfterMs }) => checkDuration('claimAfterMs', claimAfterMs),
    canReject: true,
    describe: ({ stream }) => `stream "${stream}"`,
    workflowIDOf: ({ stream, group, id }) => `redis-${stream}-${group}-${id}`,
    decode: ({ stream, id, fields }) => [fields, { stream, id }],
    async connect(options, context) {
      const commands = newClient(config);
      const reader = commands.duplicate();
      reader.on('error', ignore);
      try {
        await commands.connect();
        await reader.connect();
        const consumer = options.consumerName ?? names.get(options) ?? newID();
        names.set(options, consumer);
        const source = new StreamSource({ commands, reader, consumer, options, context });
        await source.createGroup();
        return source;
      } catch (error) {
        await Promise.all([disconnect(commands), disconnect(reader)]);
        throw error;
      }
    },
  };
}

function newClient(config: string | RedisOptions): Redis {
  // The kit reconnects, and then sets everything up again. ioredis 6 would speak RESP3, whose answers have other shapes.
  const fixed = { lazyConnect: true, retryStrategy: () => null, protocol: 2 } as const;
  const client =
    typeof config === 'string'
      ? new Redis(config, { ...fixed, maxRetriesPerRequest: 0 })
      : new Redis({ ...config, ...fixed, maxRetriesPerRequest: 0 });
  return client.on('error', ignore);
}

/** Resolves when the connection is closed. */
function disconnect(client: Redis): Promise<void> {
  if (client.status === 'end' || client.status === 'wait') return Promise.resolve();
  return new Promise((resolve) => {
    client.once('end', resolve);
    client.disconnect();
  });
}

/** Errors also reject the command in flight. */
function ignore(): void {}

interface SourceParts {
  readonly commands: Redis;
  /** A separate connection, because a blocking read would hold up other commands. */
  readonly reader: Redis;
  readonly consumer: string;
  readonly options: RedisConsumerOptions;
  readonly context: ConnectContext;
}

class StreamSource implements Source<RedisMessage> {
  readonly #parts: SourceParts;
  readonly #group: string;
  readonly #claimAfterMs: number;
  /** Own pending entries up to this ID have been read again; undefined when all have. */
  #pendingAfter: string | undefined = '0';
  #claimCursor = '0-0';
  #nextClaimAt: number;

  constructor(parts: SourceParts) {
    const { options, context } = parts;
    this.#parts = parts;
    this.#group = options.group ?? `everstep-${context.functionName}`;
    this.#claimAfterMs = inMs(options.claimAfterMs) ?? CLAIM_AFTER_MS;
    this.#nextClaimAt = context.clock.monotonic();
  }

  async createGroup(): Promise<void> {
    const { commands, options } = this.#parts;
    const start = options.startFrom === 'new' ? '$' : '0';
    await commands
      .xgroup('CREATE', options.stream, this.#group, start, 'MKSTREAM')
      .catch((error: Error) => (error.message.startsWith('BUSYGROUP') ? undefined : Promise.reject(error)));
  }

  async fetch(max: number, signal: AbortSignal): Promise<RedisMessage[]> {
    const { reader, context } = this.#parts;
    // A blocking read can only be ended by closing its connection.
    const onAbort = (): void => reader.disconnect();
    signal.throwIfAborted();
    signal.addEventListener('abort', onAbort, { once: true });
    const timer = context.clock.after(BLOCK_MS + LATENESS_MAX_MS, onAbort);
    try {
      const entries = (await this.#readPending(max)) ?? (await this.#claimIdle(max)) ?? (await this.#readNew(max));
      return await this.#withoutDeleted(entries);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #readPending(max: number): Promise<Entry[] | undefined> {
    if (this.#pendingAfter === undefined) return undefined;
    const entries = await this.#read(max, this.#pendingAfter);
    this.#pendingAfter = entries.at(-1)?.[0];
    return entries.length > 0 ? entries : undefined;
  }

  /** Claims entries that other consumers have left pending. */
  async #claimIdle(max: number): Promise<Entry[] | undefined> {
    const { commands, options, context } = this.#parts;
    if (context.clock.monotonic() < this.#nextClaimAt) return undefined;
    const [cursor, entries] = (await commands.xautoclaim(
      options.stream,
      this.#group,
      this.#parts.consumer,
      this.#claimAfterMs,
      this.#claimCursor,
      'COUNT',
      max,
    )) as [string, Entry[]];
    this.#claimCursor = cursor;
    if (cursor === '0-0') this.#nextClaimAt = context.clock.monotonic() + this.#claimAfterMs / 2;
    return entries.length > 0 ? entries : undefined;
  }

  async #readNew(max: number): Promise<Entry[]> {
    return this.#read(max, '>', Math.min(BLOCK_MS, Math.ceil(this.#claimAfterMs / 2)));
  }

  async #read(max: number, after: string, blockMs?: number): Promise<Entry[]> {
    const { reader, options } = this.#parts;
    const wait = blockMs === undefined ? [] : ['BLOCK', blockMs];
    const answer = (await reader.call(
      'XREADGROUP',
      ...['GROUP', this.#group, this.#parts.consumer, 'COUNT', max, ...wait, 'STREAMS', options.stream, after],
    )) as [[string, Entry[]]] | null;
    return answer?.[0][1] ?? [];
  }

  /** Drops and acknowledges entries that were deleted from the stream after they were read: they have no fields. */
  async #withoutDeleted(entries: readonly Entry[]): Promise<RedisMessage[]> {
    const { stream } = this.#parts.options;
    const deleted = entries.filter(([, fields]) => fields === null);
    if (deleted.length > 0) await this.#acknowledge(deleted.map(([id]) => id));
    return entries.flatMap(([id, fields]) =>
      fields ? [{ stream, group: this.#group, id, fields: toRecord(fields) }] : [],
    );
  }

  acknowledge(messages: readonly RedisMessage[]): Promise<void> {
    return this.#acknowledge(messages.map(({ id }) => id));
  }

  async #acknowledge(ids: readonly string[]): Promise<void> {
    const { commands, options } = this.#parts;
    await commands.xack(options.stream, this.#group, ...ids);
  }

  async reject({ id, fields }: RedisMessage, error: Error): Promise<void> {
    const { commands, options } = this.#parts;
    const kept = { ...fields, 'everstep-id': id, 'everstep-error': error.message };
    await commands.xadd(options.stream + DEAD_SUFFIX, '*', ...Object.entries(kept).flat());
    await this.#acknowledge([id]);
  }

  async close(): Promise<void> {
    const { commands, reader, options } = this.#parts;
    await disconnect(reader);
    if (options.consumerName === undefined && commands.status === 'ready') {
      await commands.eval(REMOVE_CONSUMER, 1, options.stream, this.#group, this.#parts.consumer).catch(ignore);
    }
    await disconnect(commands);
  }
}

function toRecord(flat: readonly string[]): Record<string, string> {
  const pairs = Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index], flat[2 * index + 1]]);
  return Object.fromEntries(pairs) as Record<string, string>;
}
