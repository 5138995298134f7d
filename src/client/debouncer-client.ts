// A debouncer for programs that do not run the workflow: many calls with one key become one workflow.
import type { WorkflowSerializationFormat } from '../codec/serializer.js';
import { checkDebounce, debounceID, firstDelayMs, refusedOptions } from '../control/debounce.js';
import type { EnqueueWorkflowOptions } from '../control/enqueue.js';
import type { WorkflowHandle } from '../control/outcome.js';
import { INTERNAL_QUEUE } from '../store/lifecycle.js';
import type { DBOSClient } from './client.js';

export interface DebouncerClientConfig {
  readonly workflowName: string;
  readonly workflowClassName?: string;
  /** How the workflow is enqueued. Without a queue it runs as if it had been called. */
  readonly startWorkflowParams?: Partial<Omit<EnqueueWorkflowOptions, 'workflowName' | 'workflowClassName'>>;
  /** The longest time that a workflow can be put off, from the first call on. */
  readonly debounceTimeoutMs?: number;
  readonly serializationType?: WorkflowSerializationFormat;
  readonly applicationName?: string;
}

export class DebouncerClient {
  readonly #client: DBOSClient;
  readonly #config: DebouncerClientConfig;

  constructor(client: DBOSClient, config: DebouncerClientConfig) {
    this.#client = client;
    this.#config = config;
  }

  /** Runs the workflow when no call with this key has come for so long, with the arguments of the last call. */
  async debounce(debounceKey: string, debouncePeriodMs: number, ...args: unknown[]): Promise<WorkflowHandle<unknown>> {
    const { startWorkflowParams = {}, debounceTimeoutMs: timeoutMs } = this.#config;
    const times = { periodMs: debouncePeriodMs, timeoutMs };
    checkDebounce({ key: debounceKey, ...times }, refusedOptions(startWorkflowParams));
    const options = this.#toEnqueue(debounceKey, firstDelayMs(times));
    const deadlineMs = timeoutMs === undefined ? null : Math.ceil(timeoutMs);
    for (;;) {
      const bouncedID = await this.#bounce(options, debouncePeriodMs, args);
      if (bouncedID !== null) return this.#client.retrieveWorkflow(bouncedID);
      try {
        return this.#client.retrieveWorkflow(await this.#client.enqueueDebounced(options, deadlineMs, args));
      } catch (error) {
        // Somebody else was first: put that one off instead.
        if ((error as { code?: unknown }).code !== 'QUEUE_DUPLICATED') throw error;
      }
    }
  }

  #toEnqueue(key: string, delayMs: number): EnqueueWorkflowOptions & { readonly deduplicationID: string } {
    const { workflowName, workflowClassName, startWorkflowParams, serializationType, applicationName } = this.#config;
    return {
      queueName: INTERNAL_QUEUE,
      serializationType,
      ...startWorkflowParams,
      workflowName,
      workflowClassName,
      applicationName,
      deduplicationID: debounceID({ name: workflowName, className: workflowClassName ?? null }, key),
      delaySeconds: delayMs / 1000,
    };
  }

  async #bounce(
    options: EnqueueWorkflowOptions & { readonly deduplicationID: string },
    periodMs: number,
    args: unknown[],
  ): Promise<string | null> {
    const inputs = await this.#client.operator.codec.encodeInputs(args, options.serializationType);
    return this.#client.debounceDelayedWorkflow({
      queueName: options.queueName,
      deduplicationID: options.deduplicationID,
      name: options.workflowName,
      className: options.workflowClassName ?? null,
      applicationName: options.applicationName ?? this.#client.applicationName ?? null,
      periodMs: Math.ceil(periodMs),
      inputs: inputs.text,
      serialization: inputs.serialization,
    });
  }
}
