// A debouncer: calls with the same key become one workflow, run with the input of the last one.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import { internals } from '../../kernel/base/internals.js';
import type { UserFunction } from '../../run/registration/registry.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import type { StartWorkflowParams } from '../../run/new-workflow.js';
import { debouncerCheck } from './checks.js';
import { DBOS, type DBOSInstance } from './dbos.js';

export interface DebouncerConfig<Args extends unknown[], Return> {
  readonly workflow: (...args: Args) => Promise<Return>;
  readonly startWorkflowParams?: StartWorkflowParams;
  /** The longest time a workflow can be postponed, from the first call on. */
  readonly debounceTimeoutMs?: number | DurationText;
  readonly applicationName?: string;
}

export class Debouncer<Args extends unknown[], Return> {
  readonly #config: DebouncerConfig<Args, Return>;
  readonly #owner: DBOSInstance;

  constructor(config: DebouncerConfig<Args, Return>, owner: DBOSInstance = DBOS) {
    debouncerCheck.read(config, 'config');
    this.#config = config;
    this.#owner = owner;
  }

  /** Runs the workflow when there has been no call with this key for this long, with the arguments of the last call. */
  async debounce(
    debounceKey: string,
    debouncePeriodMs: number | DurationText,
    ...args: Args
  ): Promise<WorkflowHandle<Return>> {
    const { workflow, startWorkflowParams = {}, debounceTimeoutMs, applicationName } = this.#config;
    return this.#owner[internals].debounceWorkflow<Return>(workflow as unknown as UserFunction, {
      key: debounceKey,
      periodMs: inMs(debouncePeriodMs),
      timeoutMs: inMs(debounceTimeoutMs),
      applicationName,
      params: startWorkflowParams,
      args,
    });
  }
}
