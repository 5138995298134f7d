// A client's handle of a workflow. It waits for the outcome in the database and records nothing.
import { internals } from '../../kernel/base/internals.js';
import { getHistory, type HistoryEvent, type HistoryOptions } from '../../features/history/history.js';
import { historyOptions } from '../../operator/verb-checks.js';
import { recognizeCopies } from '../../kernel/base/copies.js';
import { getWorkflow } from '../../features/listing/inspection.js';
import type { Operator } from '../../operator/operator.js';
import { type KnownWorkflow, readOutcome, type WorkflowHandle } from '../../operator/outcome.js';
import type { WorkflowStatus } from '../../features/listing/status.js';
import { pollMsOfWait, type PollingOptions } from '../../operator/time-limit.js';

export class ClientHandle<R> implements WorkflowHandle<R> {
  static {
    recognizeCopies(this, 'ClientHandle');
  }

  readonly [internals]: KnownWorkflow;
  readonly #operator: Operator;

  constructor(
    operator: Operator,
    readonly workflowID: string,
    known: KnownWorkflow,
  ) {
    this.#operator = operator;
    this[internals] = known;
  }

  getStatus(): Promise<WorkflowStatus | null> {
    return getWorkflow(this.#operator, this.workflowID);
  }

  async getResult(options: PollingOptions = {}): Promise<R> {
    const pollMs = pollMsOfWait(options);
    const { watchers, codec } = this.#operator;
    const lookup = { workflowID: this.workflowID, hasExisted: this[internals].hasExisted };
    return readOutcome(codec, await watchers.outcomes.wait(lookup, { pollMs })) as Promise<R>;
  }

  history(options: HistoryOptions = {}): AsyncGenerator<HistoryEvent, void, undefined> {
    historyOptions.read(options, 'options');
    return getHistory(this.#operator, this.workflowID, options);
  }

  async getWorkflowInputs<T extends unknown[]>(): Promise<T> {
    return ((await this.getStatus())?.input ?? []) as T;
  }
}
