// The verbs of `DBOS` and `DBOSClient` that read the history of workflows. Their implementations are in the files beside this
// one.
import { internals } from '../../kernel/base/internals.js';
import { filledName } from '../../kernel/check/validation.js';
import { checkHistory } from './history-check.sql.js';
import { ListingVerbs } from '../listing/listing-verbs.js';
import type { Operator } from '../../operator/operator.js';
import * as checks from '../../operator/verb-checks.js';
import { getHistory, type HistoryEvent, type HistoryOptions, tailHistory, type TailOptions } from './history.js';
import { diffEvents, type HistoryDiff } from './history-diff.js';
import { exportEvents } from './history-export.js';
import { type PartitionedHistory, partitionHistory, type PartitionHistoryOptions } from './partitions.js';

export interface ExportHistoryOptions {
  /** Whether to add inputs, results and errors. Default: true. */
  readonly payloads?: boolean;
}

export abstract class HistoryVerbs extends ListingVerbs {
  /** What happened to a workflow, in order. */
  getHistory(workflowID: string, options: HistoryOptions = {}): AsyncGenerator<HistoryEvent, void, undefined> {
    filledName.read(workflowID, 'workflowID');
    checks.historyOptions.read(options, 'options');
    return getHistory(this.#reader('getHistory'), workflowID, options);
  }

  /** The stored events of all workflows as they come, none skipped. Ends with its signal. */
  tailHistory(options: TailOptions = {}): AsyncGenerator<HistoryEvent, void, undefined> {
    checks.tailOptions.read(options, 'options');
    return tailHistory(this.#reader('tailHistory'), options);
  }

  /** The history of a workflow as lines of JSON. */
  exportHistory(workflowID: string, options: ExportHistoryOptions = {}): AsyncGenerator<string, void, undefined> {
    filledName.read(workflowID, 'workflowID');
    checks.exportHistoryOptions.read(options, 'options');
    const { payloads = true } = options;
    return exportEvents(getHistory(this.#reader('exportHistory'), workflowID, { payloads }));
  }

  /** Compares the steps and outcomes of two workflows, such as a fork and its original. */
  async diffHistory(firstID: string, secondID: string): Promise<HistoryDiff> {
    filledName.read(firstID, 'firstID');
    filledName.read(secondID, 'secondID');
    const operator = this.#reader('diffHistory');
    const read = async (workflowID: string): Promise<HistoryEvent[]> => {
      const events: HistoryEvent[] = [];
      for await (const event of getHistory(operator, workflowID, { payloads: true })) events.push(event);
      return events;
    };
    const [first, second] = await Promise.all([read(firstID), read(secondID)]);
    return diffEvents(first, second);
  }

  /**
   * Derives the state of a workflow from its stored events and compares it with the tables. Resolves to what they disagree
   * about. Only for a workflow whose history level was `full` from its start.
   */
  async checkHistory(workflowID: string): Promise<string[]> {
    filledName.read(workflowID, 'workflowID');
    const operator = this.#reader('checkHistory');
    return operator.retrying(() => checkHistory(operator.database, workflowID));
  }

  /**
   * Partitions the stored events by time, while workflows run, so that retention can drop old ones as a whole. Postgres only;
   * needs the role that owns the tables. Call it once: engines create further partitions.
   */
  async partitionHistory(options: PartitionHistoryOptions = {}): Promise<PartitionedHistory> {
    const operator = this[internals].operatorFor('partitionHistory', 'outside workflow code');
    return partitionHistory(operator, options);
  }

  #reader(verb: string): Operator {
    return this[internals].operatorFor(verb, 'outside workflow code');
  }
}
