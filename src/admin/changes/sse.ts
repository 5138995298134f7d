// Server-Sent Events: the changes of the feed as a stream for one client. A client that does not read is dropped: it can
// come back and go on from the last event that it has seen.
import type { Clock, Timer } from '../../base/clock.js';
import { streamAnswer } from '../http/answer.js';
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
  /** The ID of the last event that the client has seen. */
  readonly since: number | undefined;
}

const HEARTBEAT_MS = 15_000;
/** What may wait for a client to be read. */
const UNREAD_MAX_BYTES = 1_048_576;
const CLIENTS_MAX = 100;
const RETRY_MS = 2000;

export async function eventAnswer(options: EventStreamOptions): Promise<Response> {
  if (options.feed.watcherCount >= CLIENTS_MAX) {
    throw new Refusal(503, 'TOO_MANY_CLIENTS', `This stream already has ${CLIENTS_MAX} clients. Try again later.`);
  }
  const stream = new EventStream(options);
  await stream.begin();
  return streamAnswer(stream.readable, 'text/event-stream; charset=utf-8');
}

class EventStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #options: EventStreamOptions;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #leave: (() => void) | undefined;
  #heartbeat: Timer | undefined;
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

  async begin(): Promise<void> {
    this.#write(`retry: ${RETRY_MS}\n: connected\n\n`);
    const watcher = { tell: (changes: Changes) => this.#tell(changes), end: () => this.#end() };
    const leave = await this.#options.feed.watch(watcher, this.#options.since);
    if (this.#isEnded) return leave();
    this.#leave = leave;
    this.#beat();
  }

  #tell({ at, changes }: Changes): void {
    const wanted = changes.filter((change) => isWanted(change, this.#options.filters));
    this.#write(wanted.map((change) => toEvent(change, at)).join(''));
  }

  #beat(): void {
    this.#heartbeat = this.#options.clock.after(HEARTBEAT_MS, () => {
      this.#write(': heartbeat\n\n');
      if (!this.#isEnded) this.#beat();
    });
  }

  #write(text: string): void {
    if (this.#isEnded || text === '') return;
    // Nothing more fits: the client reads too slowly, or not at all.
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
    this.#leave?.();
  }
}

/** Changes of queues are told to all but those who have asked for workflows alone. */
function isWanted(change: Change, { status, queueName, workflowName, workflowID }: EventFilters): boolean {
  const isOne = (list: readonly string[] | undefined, value: string | null): boolean =>
    list === undefined || (value !== null && list.includes(value));
  const isOfAll = status === undefined && workflowName === undefined;
  switch (change.kind) {
    case 'workflow':
      return (
        isOne(status, change.workflow.status) &&
        isOne(queueName, change.workflow.queueName) &&
        isOne(workflowName, change.workflow.name) &&
        isOne(workflowID, change.workflow.workflowID)
      );
    case 'workflow-deleted':
      return isOne(workflowID, change.workflowID);
    case 'queue':
      return isOfAll && workflowID === undefined && isOne(queueName, change.queue.name);
    case 'queue-deleted':
      return isOfAll && workflowID === undefined && isOne(queueName, change.name);
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
