// The members of `DBOS` that workflow code calls: waiting, messages, events, streams, time and randomness. In a workflow they
// are recorded.
import { type DurationText, inMs, inSeconds } from '../../kernel/base/duration.js';
import { systemClock } from '../../kernel/base/clock.js';
import { internals } from '../../kernel/base/internals.js';
import type { WorkflowStatus } from '../../features/listing/status.js';
import { Management } from '../../operator/management.js';
import type { BulkMessage } from '../../features/message/messages.js';
import type { ReadStreamOffsetOptions, ReadStreamOptions } from '../../features/message/streams.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import type { SerializationOptions } from '../../operator/storable.js';
import type { PollingOptions, TimeLimit } from '../../operator/time-limit.js';
import { continueAsNew } from '../../run/history/continue-as-new.js';
import { getEvent, type GetEventOptions, setEvent } from '../../features/message/events.run.js';
import { recv, type RecvOptions, send, sendBulk } from '../../features/message/messages.run.js';
import {
  handleRequests,
  request,
  type RequestFunction,
  type RequestHandlers,
  type RequestOptions,
} from '../../features/message/requests.run.js';
import { closeStream, readStream, readStreamOffset, writeStream } from '../../features/message/streams.run.js';
import { attempted } from '../../run/shielded.js';
import { getResult, type GetResultOptions, getWorkflowStatus } from '../../run/handles.js';
import { durableSleep, operation } from '../../run/operation.js';
import { parallel, type ParallelOptions } from '../../run/parallel.js';
import { deprecatePatch, patch } from '../../run/patch.js';
import { any, race, waitAll, waitFirst, type WaitOptions, waitPromises, type WaitResult } from '../../run/wait.js';
import { filledName, finiteNumber } from '../../kernel/check/validation.js';
import * as checks from './checks.js';
import { type WorkflowQueue } from './workflow-queue.js';
import type { Instance } from './instance.js';

export abstract class Operations extends Management<WorkflowQueue> {
  abstract override readonly [internals]: Instance;

  /** Calls what acts on the calling run. */
  #own<T>(called: string, body: () => Promise<T>): Promise<T> {
    return attempted(() => {
      this[internals].contextFor(called);
      return body();
    });
  }

  // ── Results, waiting, state ────────────────────────────────────────────────────────────────────────────────────

  getWorkflowStatus(workflowID: string): Promise<WorkflowStatus | null> {
    return attempted(() => {
      filledName.read(workflowID, 'workflowID');
      return getWorkflowStatus(this[internals].runtimeFor('getWorkflowStatus'), workflowID);
    });
  }

  /** The result of a workflow, or null on timeout. A number is a timeout in seconds. */
  getResult<T>(workflowID: string, options?: number | DurationText | GetResultOptions): Promise<T | null> {
    return attempted(
      () => getResult(this[internals].runtimeFor('getResult'), workflowID, options) as Promise<T | null>,
    );
  }

  /** Waits for the first of the workflows to end. */
  waitFirst(handles: WorkflowHandle<unknown>[], options?: PollingOptions): Promise<WorkflowHandle<unknown>> {
    return attempted(() => waitFirst(this[internals].runtimeFor('waitFirst'), handles, options));
  }

  /** Waits for all the workflows to end. */
  waitAll<R>(handles: WorkflowHandle<R>[], options?: PollingOptions): Promise<WorkflowHandle<R>[]> {
    return attempted(() => waitAll(this[internals].runtimeFor('waitAll'), handles, options));
  }

  /** Waits for promises and records which have settled, so that a recovered workflow takes the same branch. */
  wait<P extends Promise<unknown>>(promises: readonly P[], options?: WaitOptions): Promise<WaitResult<P>> {
    return attempted(() => {
      checks.promisesCheck.read(promises, 'promises');
      return waitPromises(this[internals].runtimeFor('wait'), promises, options);
    });
  }

  /** `Promise.race` with the winner recorded. */
  race<T extends readonly unknown[] | []>(promises: T): Promise<Awaited<T[number]>> {
    return attempted(() => {
      checks.promisesCheck.read(promises, 'promises');
      return race<T[number]>(this[internals].runtimeFor('race'), promises);
    });
  }

  /** `Promise.any` with the winner recorded. */
  any<T extends readonly unknown[] | []>(promises: T): Promise<Awaited<T[number]>> {
    return attempted(() => {
      checks.promisesCheck.read(promises, 'promises');
      return any<T[number]>(this[internals].runtimeFor('any'), promises);
    });
  }

  /** `Promise.all`; steps started in a fixed order need no record. */
  all<T extends readonly unknown[] | []>(promises: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
    return this.#own('all', () => {
      checks.promisesCheck.read(promises, 'promises');
      return Promise.all(promises);
    });
  }

  /**
   * Runs branches of several operations side by side. Each has numbers of its own, so that a recovered workflow replays
   * them whatever their timing was. Waits for all; if any fail, throws the error of the first of them in the list.
   */
  parallel<T extends readonly (() => Promise<unknown>)[] | []>(
    branches: T,
    options?: ParallelOptions,
  ): Promise<{ -readonly [K in keyof T]: Awaited<ReturnType<T[K]>> }> {
    return this.#own('parallel', () => {
      // The results are those of the branches, in order.
      return parallel(branches, options) as Promise<{ -readonly [K in keyof T]: Awaited<ReturnType<T[K]>> }>;
    });
  }

  /** `Promise.allSettled`; steps started in a fixed order need no record. */
  allSettled<T extends readonly unknown[] | []>(
    promises: T,
  ): Promise<{ -readonly [K in keyof T]: PromiseSettledResult<Awaited<T[K]>> }> {
    return this.#own('allSettled', () => {
      checks.promisesCheck.read(promises, 'promises');
      return Promise.allSettled(promises);
    });
  }

  // ── Messages, events, streams ──────────────────────────────────────────────────────────────────────────────────

  /** Sends a message to a workflow. In workflow code it is recorded, so that the message is sent exactly once. */
  // eslint-disable-next-line max-params -- The signature is that of DBOS.
  send<T>(
    destinationID: string,
    message: T,
    topic?: string,
    idempotencyKey?: string,
    options?: SerializationOptions,
  ): Promise<void> {
    return attempted(() =>
      send(this[internals].runtimeFor('send'), { destinationID, message, topic, idempotencyKey, ...options }),
    );
  }

  /** Sends many messages in one commit: all, or none if a destination does not exist. */
  sendBulk<T>(messages: readonly BulkMessage<T>[]): Promise<void> {
    return attempted(() => sendBulk(this[internals].runtimeFor('sendBulk'), messages));
  }

  /** Receives the oldest message of a topic, in workflow code; null on timeout, by default after 60 s. */
  recv<T>(topic?: string, options?: number | DurationText | RecvOptions): Promise<T | null> {
    return attempted(() => recv(this[internals].runtimeFor('recv'), topic, options) as Promise<T | null>);
  }

  /** Publishes a value under a key, in workflow code. Setting the key again replaces the value. */
  setEvent<T>(key: string, value: T, options?: SerializationOptions): Promise<void> {
    return this.#own('setEvent', () => setEvent(key, value, options));
  }

  /** Waits for an event of a workflow and returns its value; null on timeout, by default after 60 s. */
  getEvent<T>(workflowID: string, key: string, options?: number | DurationText | GetEventOptions): Promise<T | null> {
    return attempted(
      () => getEvent(this[internals].runtimeFor('getEvent'), { workflowID, key }, options) as Promise<T | null>,
    );
  }

  /** Appends a value to a stream of the surrounding workflow, from its code or from a step. */
  writeStream<T>(key: string, value: T, options?: SerializationOptions): Promise<void> {
    return this.#own('writeStream', () => writeStream(key, value, options));
  }

  /** Ends a stream: its readers stop. */
  closeStream(key: string): Promise<void> {
    return this.#own('closeStream', () => closeStream(key));
  }

  /** Reads a stream as it is written, until it is closed or its workflow ends. */
  async *readStream<T>(workflowID: string, key: string, options?: ReadStreamOptions): AsyncGenerator<T, void, unknown> {
    const runtime = this[internals].runtimeFor('readStream');
    yield* readStream(runtime, { workflowID, key }, options) as AsyncGenerator<T, void, unknown>;
  }

  /** Waits for the value at an offset of a stream. */
  readStreamOffset<T>(workflowID: string, key: string, offset: number, options?: ReadStreamOffsetOptions): Promise<T> {
    return attempted(() => {
      const runtime = this[internals].runtimeFor('readStreamOffset');
      return readStreamOffset(runtime, { workflowID, key }, { ...options, offset }) as Promise<T>;
    });
  }

  /** Answers requests in workflow code, one by one, until a handler says `stop` or none comes for the given time. */
  handleRequests<Requests extends Record<string, RequestFunction>>(
    handlers: RequestHandlers<Requests>,
    options?: TimeLimit,
  ): Promise<'stopped' | 'timeout'> {
    return this.#own('handleRequests', () => handleRequests(handlers, options));
  }

  /** Sends a request to a running workflow. Resolves to its answer, or throws its error. */
  sendRequest<F extends RequestFunction = (payload: unknown) => unknown>(
    workflowID: string,
    name: string,
    payload: Parameters<F>[0],
    options?: RequestOptions,
  ): Promise<Awaited<ReturnType<F>>> {
    return attempted(() => {
      const runtime = this[internals].runtimeFor('sendRequest');
      return request(runtime, { workflowID, name, payload, ...options }) as Promise<Awaited<ReturnType<F>>>;
    });
  }

  // ── Durable utilities ──────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Starts the current workflow again under its ID, with these arguments and without a history. For workflows that never end.
   * Return it: the promise never resolves, and nothing more of this run is recorded.
   */
  continueAsNew(...args: unknown[]): Promise<never> {
    return this.#own('continueAsNew', () => continueAsNew(args));
  }

  /** Sleeps; in a workflow the wake-up time is recorded, so that a recovery does not prolong the sleep. */
  sleepms(durationMS: number | DurationText): Promise<void> {
    return attempted(() => {
      const { lifecycle } = this[internals];
      const runtime = this[internals].contextFor('sleep')?.run?.runtime ?? lifecycle.engine?.runtime;
      return durableSleep(runtime?.clock ?? systemClock, inMs(durationMS));
    });
  }

  /** The same as `sleepms`. */
  sleep(durationMS: number | DurationText): Promise<void> {
    return this.sleepms(durationMS);
  }

  sleepSeconds(durationSec: number | DurationText): Promise<void> {
    return attempted(() => {
      const seconds = finiteNumber.read(inSeconds(durationSec), 'durationSec');
      return this.sleepms(seconds * 1000);
    });
  }

  /** The time in epoch milliseconds, recorded in a workflow. */
  now(): Promise<number> {
    return this.#own('now', () => {
      const clock = (this[internals].context?.run ?? this[internals].lifecycle.engine)?.runtime.clock;
      return operation({ name: 'DBOS.now', isEffect: false }, async () => clock?.now() ?? Date.now());
    });
  }

  /** A random UUID, recorded in a workflow. */
  randomUUID(): Promise<string> {
    return this.#own('randomUUID', () =>
      operation({ name: 'DBOS.randomUUID', isEffect: false }, async () => crypto.randomUUID()),
    );
  }

  /** Whether the workflow takes the changed branch of its code; see the guide on changing workflows. */
  patch(patchName: string): Promise<boolean> {
    return this.#own('patch', () => patch(patchName));
  }

  /** Always true: the old branch has been removed. */
  deprecatePatch(patchName: string): Promise<boolean> {
    return this.#own('deprecatePatch', () => deprecatePatch(patchName));
  }
}
