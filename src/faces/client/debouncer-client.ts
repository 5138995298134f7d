// A debouncer for programs that do not run the workflow: calls with the same key become one workflow.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import { internals } from '../../kernel/base/internals.js';
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import { checkDebounce, debounceID, firstDelayMs, putOff, refusedParams } from '../../features/queue/debounce.js';
import type { EnqueueWorkflowOptions, StartWorkflowParams } from '../../features/queue/enqueue.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import { filledName, nullish, record, storableName } from '../../kernel/check/validation.js';
import { INTERNAL_QUEUE } from '../../features/queue/queue.js';
import type { DBOSClient } from './client.js';
import { enqueue } from './enqueueing.js';

export interface DebouncerClientConfig {
  readonly workflowName: string;
  readonly workflowClassName?: string;
  /** Start options. Without a queue the workflow uses the internal one, which every process serves. */
  readonly startWorkflowParams?: StartWorkflowParams;
  /** The longest time a workflow can be postponed, from the first call on. */
  readonly debounceTimeoutMs?: number | DurationText;
  readonly serializationType?: WorkflowSerializationFormat;
  readonly applicationName?: string;
}

const configCheck = record(
  { workflowName: filledName, workflowClassName: nullish(storableName), applicationName: nullish(filledName) },
  { unknown: 'ignore' },
);

export class DebouncerClient {
  readonly #client: DBOSClient;
  readonly #config: DebouncerClientConfig;

  constructor(client: DBOSClient, config: DebouncerClientConfig) {
    configCheck.read(config, 'config');
    this.#client = client;
    this.#config = config;
  }

  /** Runs the workflow when there has been no call with this key for this long, with the arguments of the last call. */
  async debounce(
    debounceKey: string,
    debouncePeriodMs: number | DurationText,
    ...args: unknown[]
  ): Promise<WorkflowHandle<unknown>> {
    const { startWorkflowParams = {}, debounceTimeoutMs } = this.#config;
    const [periodMs, timeoutMs] = [inMs(debouncePeriodMs), inMs(debounceTimeoutMs)];
    const times = { periodMs, timeoutMs };
    checkDebounce({ key: debounceKey, ...times }, refusedParams(startWorkflowParams));
    const options = this.#toEnqueue(debounceKey, firstDelayMs(times));
    const { operator } = this.#client[internals];
    const debouncing = { timeoutMs: timeoutMs === undefined ? null : Math.ceil(timeoutMs) };
    for (;;) {
      const bouncedID = await this.#bounce(options, periodMs, args);
      if (bouncedID !== null) return operator.handleOfExisting(bouncedID);
      try {
        return operator.handleOfExisting(await enqueue(operator, options, { args, debouncing }));
      } catch (error) {
        // Another caller was first: postpone its workflow instead.
        if ((error as { code?: unknown }).code !== 'QUEUE_DUPLICATED') throw error;
      }
    }
  }

  #toEnqueue(key: string, delayMs: number): EnqueueWorkflowOptions & { readonly deduplicationID: string } {
    const { workflowName, workflowClassName, startWorkflowParams: params = {}, serializationType } = this.#config;
    const { applicationVersion, applicationName } = params.enqueueOptions ?? {};
    return {
      queueName: params.queueName ?? INTERNAL_QUEUE,
      workflowName,
      workflowClassName,
      workflowID: params.workflowID,
      workflowTimeoutMS: params.timeoutMS ?? undefined,
      appVersion: applicationVersion,
      attributes: params.workflowAttributes,
      authenticatedUser: params.authenticatedUser,
      authenticatedRoles: params.authenticatedRoles,
      serializationType,
      applicationName: this.#config.applicationName ?? applicationName,
      deduplicationID: debounceID({ name: workflowName, className: workflowClassName ?? null }, key),
      delaySeconds: delayMs / 1000,
    };
  }

  async #bounce(
    options: EnqueueWorkflowOptions & { readonly deduplicationID: string },
    periodMs: number,
    args: unknown[],
  ): Promise<string | null> {
    const { operator } = this.#client[internals];
    const inputs = await operator.codec.encodeInputs(args, options.serializationType);
    return putOff(operator, {
      queueName: options.queueName,
      deduplicationID: options.deduplicationID,
      name: options.workflowName,
      className: options.workflowClassName ?? null,
      applicationName: options.applicationName ?? operator.applicationName,
      periodMs: Math.ceil(periodMs),
      inputs: inputs.text,
      serialization: inputs.serialization,
    });
  }
}
