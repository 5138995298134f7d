// A queue service in memory behind the interface of the AWS SDK. What is not deleted comes again when its time is up.
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs';
import { newID } from '../../../src/kernel/base/ids.js';
import type { SQSClientLike } from '../../../src/plugins/receiver/adapters/sqs.js';

interface Stored {
  readonly MessageId: string;
  readonly Body: string;
  ReceiptHandle: string;
  hiddenUntil: number;
}

const VISIBILITY_MS = 1000;

export class FakeSQS {
  readonly #queues = new Map<string, Stored[]>();
  readonly #waiting = new Set<() => void>();
  #isUp = true;
  #onRefused: () => void = () => {};

  createQueue(url: string): void {
    this.#queues.set(url, []);
  }

  publish(url: string, texts: readonly string[]): void {
    const queue = this.#queues.get(url);
    for (const Body of texts) queue?.push({ MessageId: newID(), Body, ReceiptHandle: '', hiddenUntil: 0 });
    this.#wake();
  }

  /** Resolves when somebody has noticed. */
  stop(): Promise<void> {
    this.#isUp = false;
    this.#wake();
    return new Promise((resolve) => (this.#onRefused = resolve));
  }

  start(): void {
    this.#isUp = true;
  }

  client(): SQSClientLike {
    const send = (command: unknown, options?: { abortSignal?: AbortSignal }): Promise<unknown> =>
      this.#send(command, options?.abortSignal);
    return { send } as unknown as SQSClientLike;
  }

  async #send(command: unknown, signal?: AbortSignal): Promise<unknown> {
    const { input } = command as { input: { QueueUrl: string } };
    const queue = this.#queueOf(input.QueueUrl);
    if (command instanceof GetQueueAttributesCommand) return {};
    if (command instanceof DeleteMessageBatchCommand) {
      const handles = new Set(command.input.Entries?.map(({ ReceiptHandle }) => ReceiptHandle));
      const left = queue.filter(({ ReceiptHandle }) => !handles.has(ReceiptHandle));
      queue.splice(0, queue.length, ...left);
      return {};
    }
    if (command instanceof ChangeMessageVisibilityBatchCommand) {
      const handles = new Set(command.input.Entries?.map(({ ReceiptHandle }) => ReceiptHandle));
      for (const message of queue) if (handles.has(message.ReceiptHandle)) message.hiddenUntil = 0;
      this.#wake();
      return {};
    }
    if (command instanceof ReceiveMessageCommand) return this.#receive(command, signal);
    throw new Error('unknown command');
  }

  async #receive({ input }: ReceiveMessageCommand, signal?: AbortSignal): Promise<unknown> {
    const { QueueUrl = '', MaxNumberOfMessages = 1, WaitTimeSeconds = 0 } = input;
    for (;;) {
      signal?.throwIfAborted();
      const now = Date.now();
      const visible = this.#queueOf(QueueUrl)
        .filter(({ hiddenUntil }) => hiddenUntil <= now)
        .slice(0, MaxNumberOfMessages);
      for (const message of visible) {
        Object.assign(message, { ReceiptHandle: newID(), hiddenUntil: now + VISIBILITY_MS });
      }
      if (visible.length > 0 || WaitTimeSeconds === 0) return { Messages: visible.map((one) => ({ ...one })) };
      await this.#arrival(signal);
    }
  }

  /** Something may have come, or come again. */
  async #arrival(signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, VISIBILITY_MS / 10);
      this.#waiting.add(wake);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }

  #queueOf(url: string): Stored[] {
    if (!this.#isUp) {
      this.#onRefused();
      throw new Error('getaddrinfo ENOTFOUND');
    }
    const queue = this.#queues.get(url);
    if (!queue) throw new Error('The specified queue does not exist.');
    return queue;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}
