// Server-Sent Events: the change feed as a stream for one client. A client that does not read is dropped; it can
// reconnect and continue after the last event it received.
import type { Clock, Timer } from '../../../kernel/base/clock.js';
import { streamResponse } from '../http/response.js';
import type { Change, ChangeFeed, Changes } from './feed.js';
import { Refusal } from '../http/refusal.js';
import { viewChanged } from '../views/workflow-view.js';

export interface EventFilters {
  readonly status?: readonly string[];
  readonly queueName?: readonly string[];
  readonly workflowName?: readonly string[];
  readonly workflowID?: readonly string[];
}

export interface EventStreamOptions {
  readonly feed: ChangeFeed;
  readonly clock: Clock;
  readonly filters: EventFilters;
  /** The ID of the last event the client received. */
  readonly since: number | undefined;
  /** When the client's session is over; undefined for a client with a token. */
  readonly endsAt?: number | undefined;
}

const HEARTBEAT_MS = 15_000;
/** Bytes buffered for a slow client. */
const UNREAD_MAX_BYTES = 1_048_576;
const CLIENTS_MAX = 100;
const RETRY_MS = 2000;

export async function eventResponse(options: EventStreamOptions): Promise<Response> {
  if (options.feed.subscriberCount >= CLIENTS_MAX) {
    throw new Refusal(503, 'TOO_MANY_CLIENTS', `This stream already has ${CLIENTS_MAX} clients. Try again later.`);
  }
  const stream = new EventStream(options);
  await stream.start();
  return streamResponse(stream.readable, 'text/event-stream; charset=utf-8');
}

class EventStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #options: EventStreamOptions;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #unsubscribe: (() => void) | undefined;
  #heartbeat: Timer | undefined;
  #expiry: Timer | undefined;
  #isEnded = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => this.#stop(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_MAX_BYTES }),
    );
  }

  async start(): Promise<void> {
    this.#write(`retry: ${RETRY_MS}\n: connected\n\n`);
    const subscriber = { deliver: (changes: Changes) => this.#deliver(changes), end: () => this.#end() };
    const unsubscribe = await this.#options.feed.subscribe(subscriber, this.#options.since);
    if (this.#isEnded) return unsubscribe();
    this.#unsubscribe = unsubscribe;
    this.#beat();
    const { clock, endsAt } = this.#options;
    if (endsAt !== undefined) this.#expiry = clock.after(Math.max(0, endsAt - clock.now()), () => this.#end());
  }

  #deliver({ at, changes }: Changes): void {
    const wanted = changes.filter((change) => isWanted(change, this.#options.filters));
    // An ID without an event: a client that reconnects says how far it was, even if it has received nothing.
    this.#write(wanted.map((change) => toEvent(change, at)).join('') || `id: ${at}\n\n`);
  }

  #beat(): void {
    this.#heartbeat = this.#options.clock.after(HEARTBEAT_MS, () => {
      this.#write(': heartbeat\n\n');
      if (!this.#isEnded) this.#beat();
    });
  }

  #write(text: string): void {
    if (this.#isEnded || text === '') return;
    // The buffer is full: the client reads too slowly, or not at all.
    if ((this.#controller?.desiredSize ?? 0) <= 0) return this.#end();
    this.#controller?.enqueue(this.#encoder.encode(text));
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#stop();
    this.#controller?.close();
  }

  #stop(): void {
    this.#isEnded = true;
    this.#heartbeat?.cancel();
    this.#expiry?.cancel();
    this.#unsubscribe?.();
  }
}

/** Queue changes pass unless the filters select workflows. */
function isWanted(change: Change, { status, queueName, workflowName, workflowID }: EventFilters): boolean {
  const matches = (list: readonly string[] | undefined, value: string | null): boolean =>
    list === undefined || (value !== null && list.includes(value));
  const isUnfiltered = status === undefined && workflowName === undefined;
  switch (change.kind) {
    case 'workflow':
      return (
        matches(status, change.workflow.status) &&
        matches(queueName, change.workflow.queueName) &&
        matches(workflowName, change.workflow.name) &&
        matches(workflowID, change.workflow.workflowID)
      );
    case 'workflow-deleted':
      return matches(workflowID, change.workflowID);
    case 'queue':
      return isUnfiltered && workflowID === undefined && matches(queueName, change.queue.name);
    case 'queue-deleted':
      return isUnfiltered && workflowID === undefined && matches(queueName, change.name);
    case 'refresh':
      return true;
  }
}

function toEvent(change: Change, at: number): string {
  return `id: ${at}\nevent: ${change.kind}\ndata: ${JSON.stringify(dataOf(change))}\n\n`;
}

function dataOf(change: Change): unknown {
  switch (change.kind) {
    case 'workflow':
      return viewChanged(change.workflow);
    case 'workflow-deleted':
      return { workflowID: change.workflowID };
    case 'queue':
      return change.queue;
    case 'queue-deleted':
      return { name: change.name };
    case 'refresh':
      return {};
  }
}
