// The base of `DBOS` and `DBOSClient`: every management verb with the same signature in both. It is a chain of classes,
// one for each area; this one adds queues, versions and applications.
import { filledName } from '../kernel/check/validation.js';
import * as checks from './verb-checks.js';
import { internals } from '../kernel/base/internals.js';
import type { QueueRecord } from '../features/queue/queue.js';
import type { Operator } from './operator.js';
import type { Performer } from './performer.js';
import {
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  listQueueRecords,
  pauseQueue,
  type QueueStats,
  type QueueStatsQuery,
  resumeQueue,
} from '../features/queue/queues.js';
import { ScheduleVerbs } from '../features/schedule/schedule-verbs.js';
import {
  type ApplicationRowCounts,
  renameApplication,
  type RenameApplicationOptions,
} from '../features/version/applications.js';
import {
  getLatestApplicationVersion,
  listApplicationVersions,
  setLatestApplicationVersion,
  type SetLatestVersionOptions,
  type VersionInfo,
} from '../features/version/versions.js';

/** `Queue` is the public queue class, which belongs to the facade. */
export interface ManagementPerformer<Queue> extends Performer {
  queueOf(operator: Operator, record: QueueRecord): Queue;
}

export abstract class Management<Queue> extends ScheduleVerbs {
  abstract override readonly [internals]: ManagementPerformer<Queue>;

  /** A queue of the database; null if it does not exist. */
  async retrieveQueue(name: string): Promise<Queue | null> {
    filledName.read(name, 'name');
    const performer = this[internals];
    const operator = performer.operatorFor('retrieveQueue');
    const record = await findQueueRecord(operator, name);
    return record && performer.queueOf(operator, record);
  }

  /** The queues in the database of the named applications, by default of this one, and those without an owner. */
  async listQueues(applicationName?: string | string[]): Promise<Queue[]> {
    checks.optionalNames.read(applicationName, 'applicationName');
    const performer = this[internals];
    const operator = performer.operatorFor('listQueues');
    const records = await listQueueRecords(operator, applicationName);
    return records.map((record) => performer.queueOf(operator, record));
  }

  /**
   * Deletes a queue from the database. Its workflows wait until it is registered again. Resolves to false if the queue does
   * not exist.
   */
  async deleteQueue(name: string): Promise<boolean> {
    filledName.read(name, 'name');
    return deleteQueue(this[internals].operatorFor('deleteQueue'), name);
  }

  /**
   * Stops all processes from claiming workflows of the queue until it is resumed. Running workflows continue. Resolves to
   * false if it was already paused.
   */
  async pauseQueue(name: string): Promise<boolean> {
    filledName.read(name, 'name');
    return pauseQueue(this[internals].operatorFor('pauseQueue'), name);
  }

  /** Resolves to false if the queue was not paused. */
  async resumeQueue(name: string): Promise<boolean> {
    filledName.read(name, 'name');
    return resumeQueue(this[internals].operatorFor('resumeQueue'), name);
  }

  /** Counts enqueued, delayed and running workflows by queue or partition, with the wait of the oldest. */
  async getQueueStats(query: QueueStatsQuery = {}): Promise<QueueStats[]> {
    checks.queueStatsQuery.read(query, 'query');
    return getQueueStats(this[internals].operatorFor('getQueueStats'), query);
  }

  /** The launched versions of the application, latest first. */
  async listApplicationVersions(): Promise<VersionInfo[]> {
    return listApplicationVersions(this[internals].operatorFor('listApplicationVersions'));
  }

  async getLatestApplicationVersion(): Promise<VersionInfo> {
    return getLatestApplicationVersion(this[internals].operatorFor('getLatestApplicationVersion'));
  }

  /** From now on workflows without a version, such as those of schedules, go to this one. */
  async setLatestApplicationVersion(versionName: string, options: SetLatestVersionOptions = {}): Promise<void> {
    filledName.read(versionName, 'versionName');
    checks.versionOptions.read(options, 'options');
    const operator = this[internals].operatorFor('setLatestApplicationVersion');
    return setLatestApplicationVersion(operator, versionName, options);
  }

  /**
   * Moves everything that belongs to an application to another name, which you then configure. No process of either name
   * should be running.
   */
  async renameApplication(
    oldName: string | undefined,
    newName: string,
    options: RenameApplicationOptions = {},
  ): Promise<ApplicationRowCounts> {
    filledName.read(oldName, 'oldName');
    checks.optionsObject.read(options, 'options');
    return this[internals].perform({ name: 'renameApplication', isEffect: true }, (operator) =>
      renameApplication(operator, { oldName, newName }, options),
    );
  }
}
