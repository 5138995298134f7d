// The base of `DBOS` and `DBOSClient`: every management verb with the same signature in both. It is a chain of classes,
// one for each area; this one adds queues, versions and applications.
import { internals } from '../../base/internals.js';
import type { QueueRecord } from '../../model/queues.js';
import type { Operator } from '../operator.js';
import type { Performer } from '../performer.js';
import {
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  listQueueRecords,
  pauseQueue,
  type QueueStats,
  type QueueStatsQuery,
  resumeQueue,
} from '../queues/queues.js';
import { ScheduleVerbs } from '../schedules/schedule-verbs.js';
import { type ApplicationRowCounts, renameApplication, type RenameApplicationOptions } from './applications.js';
import {
  getLatestApplicationVersion,
  listApplicationVersions,
  setLatestApplicationVersion,
  type SetLatestVersionOptions,
  type VersionInfo,
} from './versions.js';

/** `Queue` is the public queue class, which belongs to the facade. */
export interface ManagementPerformer<Queue> extends Performer {
  queueOf(operator: Operator, record: QueueRecord): Queue;
}

export abstract class Management<Queue> extends ScheduleVerbs {
  abstract override readonly [internals]: ManagementPerformer<Queue>;

  /** A queue of the database; null if it does not exist. */
  async retrieveQueue(name: string): Promise<Queue | null> {
    const performer = this[internals];
    const operator = performer.operatorFor('retrieveQueue');
    const record = await findQueueRecord(operator, name);
    return record && performer.queueOf(operator, record);
  }

  /** The queues in the database of the named applications, by default of this one, and those without an owner. */
  async listQueues(applicationName?: string | string[]): Promise<Queue[]> {
    const performer = this[internals];
    const operator = performer.operatorFor('listQueues');
    const records = await listQueueRecords(operator, applicationName);
    return records.map((record) => performer.queueOf(operator, record));
  }

  /**
   * Deletes a queue from the database. Its workflows wait until it is registered again. Resolves to false if the queue does
   * not exist.
   */
  deleteQueue(name: string): Promise<boolean> {
    return deleteQueue(this[internals].operatorFor('deleteQueue'), name);
  }

  /**
   * Stops all processes from claiming workflows of the queue until it is resumed. Running workflows continue. Resolves to
   * false if it was already paused.
   */
  pauseQueue(name: string): Promise<boolean> {
    return pauseQueue(this[internals].operatorFor('pauseQueue'), name);
  }

  /** Resolves to false if the queue was not paused. */
  resumeQueue(name: string): Promise<boolean> {
    return resumeQueue(this[internals].operatorFor('resumeQueue'), name);
  }

  /** Counts enqueued, delayed and running workflows by queue or partition, with the wait of the oldest. */
  getQueueStats(query: QueueStatsQuery = {}): Promise<QueueStats[]> {
    return getQueueStats(this[internals].operatorFor('getQueueStats'), query);
  }

  /** The launched versions of the application, latest first. */
  listApplicationVersions(): Promise<VersionInfo[]> {
    return listApplicationVersions(this[internals].operatorFor('listApplicationVersions'));
  }

  getLatestApplicationVersion(): Promise<VersionInfo> {
    return getLatestApplicationVersion(this[internals].operatorFor('getLatestApplicationVersion'));
  }

  /** From now on workflows without a version, such as those of schedules, go to this one. */
  setLatestApplicationVersion(versionName: string, options: SetLatestVersionOptions = {}): Promise<void> {
    const operator = this[internals].operatorFor('setLatestApplicationVersion');
    return setLatestApplicationVersion(operator, versionName, options);
  }

  /**
   * Moves everything that belongs to an application to another name, which you then configure. No process of either name
   * should be running.
   */
  renameApplication(
    oldName: string | undefined,
    newName: string,
    options: RenameApplicationOptions = {},
  ): Promise<ApplicationRowCounts> {
    return this[internals].perform({ name: 'renameApplication', isEffect: true }, (operator) =>
      renameApplication(operator, { oldName, newName }, options),
    );
  }
}
